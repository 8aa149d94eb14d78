//! Scripts of packets through whole networks, by punctual drivers and by late ones.

use super::{Dice, TestPacket, example_files};
use crate::{Network, NetworkError, Outcomes, Plan};
use narrows_units::{Span, Time};
use serde_json::Value;

/// Fate of the packets of a script. Packets, including copies, are numbered from 1 in the order in
/// which they enter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Packets that reached the end of their route, with the model time at which they did.
    pub left: Vec<(Time, TestPacket)>,
    /// Packets that were dropped: time, number, element, reason.
    pub drops: Vec<(Time, u64, u16, &'static str)>,
    /// Copies: time, number, number of the original.
    pub copies: Vec<(Time, u64, u64)>,
    /// Packets that are still inside at the end: number, element that holds it.
    pub held: Vec<(u64, u16)>,
}

/// `count` packets of random kinds at random times (a millisecond apart on average, in bursts), on
/// route 0.
pub fn script(seed: u64, count: u32) -> Vec<(Time, TestPacket)> {
    let mut dice = Dice::random(seed, count);
    let mut at = Time::ZERO;
    let mut script = Vec::new();
    while dice.step() {
        // Often at the same instant as the one before.
        if dice.percent(70) {
            at += Span::from_us(dice.below(2_800));
        }
        let packet = dice.packet(0);
        script.push((at, packet));
    }
    script
}

/// A dumbbell with `forward` as forward path, [`example_files`] and an optional timeline.
///
/// # Errors
/// Missing part of the description.
pub fn network(forward: &Value, timeline: &Value) -> Result<Network<TestPacket>, NetworkError> {
    let json = serde_json::json!({"kind": "dumbbell", "forward": forward, "backward": []});
    Network::new(&Plan {
        network: &json,
        timeline,
        flows: &[],
        seed: 7,
        files: &example_files(),
    })
}

/// Plays `script` until `end`. A punctual driver acts after each arrival; one with `lateness` wakes
/// up late by up to 5 ms and then finds several arrivals with their stamps.
///
/// # Panics
/// If an element of the network does not account for the packets that it received.
pub fn play(
    network: &mut Network<TestPacket>,
    script: &[(Time, TestPacket)],
    mut lateness: Option<&mut Dice>,
    end: Time,
) -> Played {
    let mut player = Player {
        outcomes: Outcomes::new(),
        played: Played::default(),
        uid: 0,
    };
    let mut next = 0;
    let mut now = Time::ZERO;
    while now < end {
        let due = script.get(next).map_or(end, |(at, _)| (*at).min(end));
        now = match &mut lateness {
            Some(dice) => (now + Span::from_us(dice.below(5_000))).min(end),
            None => due,
        };
        while let Some((stamp, packet)) = script.get(next).filter(|(stamp, _)| *stamp <= now) {
            player.advance(network, *stamp);
            player.uid += 1;
            let packet = TestPacket {
                uid: player.uid,
                ..*packet
            };
            network.push(*stamp, packet, &mut player.outcomes);
            player.settle(network);
            next += 1;
        }
        player.advance(network, now);
    }
    network.catch_up(end);
    for stage in network.stages() {
        let (seen, held) = (stage.counters, stage.element.held());
        assert_eq!(
            (
                seen.in_packets + seen.copied_packets,
                seen.in_bytes + seen.copied_bytes
            ),
            (
                seen.out_packets + seen.dropped_packets + u64::from(held.packets),
                seen.out_bytes + seen.dropped_bytes + held.bytes
            ),
            "{} accounts for every packet",
            stage.name
        );
    }
    let held = &mut player.played.held;
    network.visit_held(&mut |element, packet| held.push((packet.uid, element)));
    player.played
}

struct Player {
    outcomes: Outcomes<TestPacket>,
    played: Played,
    uid: u64,
}

impl Player {
    fn advance(&mut self, network: &mut Network<TestPacket>, now: Time) {
        while network.next_wakeup() <= now {
            network.advance(now, &mut self.outcomes);
            self.settle(network);
        }
    }

    /// Takes packets that left or were dropped, and assigns identities to copies.
    fn settle(&mut self, network: &mut Network<TestPacket>) {
        loop {
            self.played
                .left
                .extend(std::iter::from_fn(|| network.pop()));
            let drops = self.outcomes.drops.drain(..);
            self.played
                .drops
                .extend(drops.map(|drop| (drop.at, drop.packet.uid, drop.element, drop.reason.0)));
            let copies = std::mem::take(&mut self.outcomes.copies);
            if copies.is_empty() {
                return;
            }
            for copied in copies {
                self.uid += 1;
                self.played
                    .copies
                    .push((copied.at, self.uid, copied.packet.uid));
                let packet = TestPacket {
                    uid: self.uid,
                    ..copied.packet
                };
                network.inject(copied.element, copied.at, packet, &mut self.outcomes);
            }
        }
    }
}
