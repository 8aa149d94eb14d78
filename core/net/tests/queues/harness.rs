//! Arrival scripts, a server, and the log of the fate of each packet.

use narrows_net::testing::TestPacket;
use narrows_net::{Ecn, ElementSetup, Outcomes, Queue, queues};
use narrows_units::{Stream, Time};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SEED: u64 = 11;
pub(crate) const NAME: &str = "forward.0";

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Left,
    LeftMarked,
    Dropped(&'static str),
}

/// Time, packet and fate.
pub(crate) type Event = (u64, u64, Fate);

/// Anything that stores packets and decides about them.
pub(crate) trait Machine {
    fn arrive(&mut self, now: u64, packet: TestPacket, log: &mut Vec<Event>);
    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket>;
}

/// A discipline from the registry as a machine.
pub(crate) struct Real {
    pub(crate) queue: Box<dyn Queue<TestPacket>>,
    outcomes: Outcomes<TestPacket>,
    came_as: BTreeMap<u64, Ecn>,
}

pub(crate) fn real(kind: &str, params: &Value) -> Real {
    let params = params.as_object().unwrap();
    Real {
        queue: queues::build(kind, params, &ElementSetup::new(SEED, NAME)).unwrap(),
        outcomes: Outcomes::new(),
        came_as: BTreeMap::new(),
    }
}

/// The random numbers that the discipline under test draws.
pub(crate) fn chance() -> Stream {
    ElementSetup::new(SEED, NAME).stream()
}

impl Real {
    fn report(&mut self, now: u64, log: &mut Vec<Event>) {
        for drop in self.outcomes.drops.drain(..) {
            assert_eq!(drop.at.ns(), now);
            log.push((now, drop.packet.uid, Fate::Dropped(drop.reason.0)));
        }
    }

    /// Changes all parameters.
    pub(crate) fn change(&mut self, now: u64, kind: &str, params: &Value, log: &mut Vec<Event>) {
        let params = queues::params(kind, params.as_object().unwrap()).unwrap();
        let now_time = Time::from_ns(now);
        let done = self.queue.change(now_time, &params, &mut self.outcomes);
        done.unwrap();
        self.report(now, log);
    }
}

impl Machine for Real {
    fn arrive(&mut self, now: u64, packet: TestPacket, log: &mut Vec<Event>) {
        self.came_as.insert(packet.uid, packet.ecn);
        let now_time = Time::from_ns(now);
        self.queue.enqueue(now_time, packet, &mut self.outcomes);
        self.report(now, log);
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        let packet = self.queue.dequeue(Time::from_ns(now), &mut self.outcomes);
        self.report(now, log);
        let packet = packet?;
        let marked = self.came_as[&packet.uid] != packet.ecn;
        assert!(!marked || packet.ecn == Ecn::Ce);
        let fate = if marked { Fate::LeftMarked } else { Fate::Left };
        log.push((now, packet.uid, fate));
        Some(packet)
    }
}

/// Plays arrivals into a machine before a server of `rate` bit/s, until all have left.
pub(crate) fn play(
    machine: &mut dyn Machine,
    script: &[(u64, TestPacket)],
    rate: u64,
) -> Vec<Event> {
    let mut log = Vec::new();
    let mut free_at: Option<u64> = None;
    let serve = |machine: &mut dyn Machine, now: u64, log: &mut Vec<Event>| {
        machine
            .take(now, log)
            .map(|packet| now + u64::from(packet.size) * 8 * 1_000_000_000 / rate)
    };
    for &(at, packet) in script {
        while let Some(free) = free_at.filter(|&free| free <= at) {
            free_at = serve(machine, free, &mut log);
        }
        machine.arrive(at, packet, &mut log);
        if free_at.is_none() {
            free_at = serve(machine, at, &mut log);
        }
    }
    while let Some(free) = free_at {
        free_at = serve(machine, free, &mut log);
    }
    log
}

pub(crate) fn packet(uid: u64, size: u32) -> TestPacket {
    TestPacket {
        uid,
        size,
        flow: 1,
        connection: 1,
        ..TestPacket::default()
    }
}

pub(crate) type Script = Vec<(u64, TestPacket)>;

/// Numbers the packets in order of time.
fn finish(mut script: Script) -> Script {
    script.sort_by_key(|(at, _)| *at);
    for ((_, packet), uid) in script.iter_mut().zip(1..) {
        packet.uid = uid;
    }
    script
}

/// The rate for which the scripts are made.
pub(crate) const RATE: u64 = 12_000_000;

/// Recorded arrivals, by name.
pub(crate) fn scripts() -> Vec<(&'static str, Script)> {
    let mut stream = Stream::new(4, "recorded arrivals");
    let mut all = Vec::new();
    // 1500 bytes every 0.8 ms, each of which takes 1 ms: steady overload by a quarter. Arrivals are shifted by up to 2
    // us, so that no waiting time is a round number: at ties, the order of additions in floating-point arithmetic would
    // decide.
    let mut jitter = Stream::new(5, "jitter");
    let mut steady = |from: u64, until: u64, gap: usize| {
        (from..until)
            .step_by(gap)
            .map(|at| (at + jitter.below(2_000), packet(0, 1500)))
            .collect::<Script>()
    };
    let mut overload = |from: u64, until: u64| steady(from, until, 800_000);
    all.push(("steady overload", finish(overload(0, 4_000 * MS))));

    let mut gaps = overload(0, 1_500 * MS);
    gaps.extend(overload(1_900 * MS, 3_000 * MS));
    gaps.extend(overload(9_000 * MS, 9_900 * MS));
    gaps.extend(overload(60_000 * MS, 60_700 * MS));
    all.push(("idle gaps", finish(gaps)));

    let mut mixed = [
        ("mixed ECN", overload(0, 6_000 * MS)),
        ("mixed ECN, little overload", steady(0, 6_000 * MS, 960_000)),
    ];
    for (name, script) in &mut mixed {
        for (_, packet) in script.iter_mut() {
            packet.ecn = Ecn::from_bits(stream.below(4) as u8);
        }
        all.push((*name, finish(script.clone())));
    }

    let mut bursts = Script::new();
    for burst in 0..40 {
        let at = burst * 150 * MS + stream.below(20 * MS);
        for _ in 0..80 + stream.below(90) {
            bursts.push((at + stream.below(3 * MS), packet(0, 1500)));
        }
    }
    all.push(("bursts", finish(bursts)));

    let mut small = Script::new();
    let mut at = 0;
    while at < 3_000 * MS {
        let size = 60 + stream.below(140) as u32;
        small.push((at, packet(0, size)));
        at += u64::from(size) * 8 * 1_000_000_000 / RATE * 8 / 10;
    }
    all.push(("small packets", finish(small)));

    // Poisson arrivals whose load changes every 300 ms between half and twice the rate.
    let mut wild = Script::new();
    let (mut at, mut load, mut next) = (0.0, 1.0, 0.0);
    while at < 12e9 {
        if at >= next {
            load = [0.5, 0.9, 1.1, 1.4, 2.0][stream.below(5) as usize];
            next += 3e8;
        }
        let size = [52, 576, 1280, 1500][stream.below(4) as usize];
        let mut one = packet(0, size);
        one.ecn = [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][stream.below(4) as usize];
        one.connection = 1 + stream.below(6) as u32;
        wild.push((at as u64, one));
        at += stream.exponential(852.0 * 8e9 / (RATE as f64 * load));
    }
    all.push(("changing load", finish(wild)));
    all
}

/// Plays every script into both machines and compares the fate of each packet and its time. Returns the numbers of
/// dropped and marked packets.
pub(crate) fn compare(
    mut tested: impl FnMut() -> Real,
    mut model: impl FnMut() -> Box<dyn Machine>,
) -> (usize, usize) {
    let (mut drops, mut marks) = (0, 0);
    for (name, script) in scripts() {
        let got = play(&mut tested(), &script, RATE);
        let expected = play(&mut *model(), &script, RATE);
        assert_eq!(
            expected.len(),
            script.len(),
            "{name}: all packets accounted for"
        );
        for (number, (one, other)) in got.iter().zip(&expected).enumerate() {
            assert_eq!(one, other, "{name}: decision {number}");
        }
        assert_eq!(got.len(), expected.len(), "{name}");
        drops += got
            .iter()
            .filter(|(_, _, fate)| matches!(fate, Fate::Dropped(_)))
            .count();
        marks += got
            .iter()
            .filter(|(_, _, fate)| *fate == Fate::LeftMarked)
            .count();
    }
    (drops, marks)
}

/// Times at which packets were dropped for `reason`.
pub(crate) fn drop_times(log: &[Event], reason: &str) -> Vec<u64> {
    log.iter()
        .filter(|(_, _, fate)| matches!(fate, Fate::Dropped(why) if *why == reason))
        .map(|(at, ..)| *at)
        .collect()
}

/// Packets in the order in which they left.
pub(crate) fn order(log: &[Event]) -> Vec<u64> {
    log.iter()
        .filter(|(_, _, fate)| !matches!(fate, Fate::Dropped(_)))
        .map(|(_, uid, _)| *uid)
        .collect()
}
