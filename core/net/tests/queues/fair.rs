//! SFQ and DRR: shares, order and overflow, compared with naive transcriptions and manual results.

use crate::harness::{Event, Fate, MS, Machine, RATE, compare, order, packet, play, real};
use narrows_net::testing::TestPacket;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};

fn packet_of(connection: u32, uid: u64, size: u32) -> TestPacket {
    TestPacket {
        connection,
        ..packet(uid, size)
    }
}

/// The discipline that the model follows.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// A turn is over when more than the quantum has been sent; the excess is owed.
    Sfq,
    /// A packet is only sent if the deficit covers it (Shreedhar and Varghese, figure 2).
    Drr,
}

/// One queue for each connection, and the order of turns.
struct Model {
    rule: Rule,
    maximum: usize,
    queues: BTreeMap<u32, VecDeque<TestPacket>>,
    turns: VecDeque<(u32, i64, bool)>,
}

impl Machine for Model {
    fn arrive(&mut self, now: u64, packet: TestPacket, log: &mut Vec<Event>) {
        let number = packet.connection;
        self.queues.entry(number).or_default().push_back(packet);
        if !self.turns.iter().any(|(turn, ..)| *turn == number) {
            let credit = if self.rule == Rule::Sfq { 1500 } else { 0 };
            self.turns.push_back((number, credit, false));
        }
        let total: usize = self.queues.values().map(VecDeque::len).sum();
        if total > self.maximum {
            let length = |number: u32| -> u64 {
                let packets = &self.queues[&number];
                match self.rule {
                    Rule::Sfq => packets.len() as u64,
                    Rule::Drr => packets.iter().map(|packet| u64::from(packet.size)).sum(),
                }
            };
            let longest = self.turns.iter().map(|turn| length(turn.0)).max().unwrap();
            let (victim, ..) = self
                .turns
                .iter()
                .find(|turn| length(turn.0) == longest)
                .unwrap();
            let packets = self.queues.get_mut(victim).unwrap();
            let last = packets.pop_back().unwrap();
            log.push((now, last.uid, Fate::Dropped("queue_full")));
        }
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        loop {
            let (number, credit, begun) = self.turns.front_mut()?;
            let packets = self.queues.get_mut(number).unwrap();
            let Some(next) = packets.front() else {
                self.turns.pop_front();
                continue;
            };
            let size = i64::from(next.size);
            let may = match self.rule {
                Rule::Sfq => *credit > 0,
                Rule::Drr => {
                    if !*begun {
                        *credit += 1500;
                        *begun = true;
                    }
                    size <= *credit
                }
            };
            if !may {
                if self.rule == Rule::Sfq {
                    *credit += 1500;
                }
                *begun = false;
                let turn = self.turns.pop_front().unwrap();
                self.turns.push_back(turn);
                continue;
            }
            *credit -= size;
            let packet = packets.pop_front().unwrap();
            // DRR clears the deficit of a queue when it empties, SFQ when its turn comes.
            if packets.is_empty() && self.rule == Rule::Drr {
                self.turns.pop_front();
            }
            log.push((now, packet.uid, Fate::Left));
            return Some(packet);
        }
    }
}

#[test]
fn decide_as_described() {
    for (rule, kind) in [(Rule::Sfq, "sfq"), (Rule::Drr, "drr")] {
        for maximum in [127, 20] {
            let params = json!({"packets": maximum});
            let model = || Model {
                rule,
                maximum,
                queues: BTreeMap::new(),
                turns: VecDeque::new(),
            };
            let (drops, _) = compare(|| real(kind, &params), || Box::new(model()));
            assert!(drops > 1_000, "{kind}: {drops} drops");
        }
    }
}

/// Packets of 600, 800 and 2000 bytes with a quantum of 1000. Round 1: 1 sends one (400 kept), 2 sends
/// one (200 kept), 3 keeps 1000. Round 2: 1 has 1400, sends two; 2 has 1200, sends one (400 kept);
/// 3 has 2000 and sends. Round 3: 1 has 1200, sends its last; 2 has 1400, sends one.
#[test]
fn deficits_are_kept_as_worked_out_by_hand() {
    let mut queue = real("drr", &json!({"quantum": 1000}));
    let mut log = Vec::new();
    for uid in 0..4 {
        queue.arrive(0, packet_of(1, 10 + uid, 600), &mut log);
        queue.arrive(0, packet_of(2, 20 + uid, 800), &mut log);
        queue.arrive(0, packet_of(3, 30 + uid, 2000), &mut log);
    }
    for _ in 0..8 {
        queue.take(0, &mut log);
    }
    assert_eq!(order(&log), [10, 20, 11, 12, 21, 30, 13, 22]);
}

/// Ten connections send as fast as they are served and one sends twice the link's rate in addition: all obtain an
/// eleventh, within one packet, for any seed of the hash.
#[test]
fn eleven_connections_get_equal_shares_of_an_overloaded_link() {
    for (kind, params) in [
        ("sfq", json!({"packets": 300})),
        ("drr", json!({"packets": 300})),
        (
            "fqcodel",
            json!({"flows": 65_536, "target": 1_000 * MS, "packets": 300}),
        ),
    ] {
        let mut queue = real(kind, &params);
        let mut log = Vec::new();
        let mut uid = 0;
        let mut send = |queue: &mut crate::harness::Real, at, connection, log: &mut Vec<Event>| {
            uid += 1;
            queue.arrive(at, packet_of(connection, uid, 1500), log);
        };
        for connection in 1..=10 {
            for _ in 0..10 {
                send(&mut queue, 0, connection, &mut log);
            }
        }
        let mut shares = BTreeMap::new();
        for round in 0..1_100 {
            for _ in 0..2 {
                send(&mut queue, round * MS, 11, &mut log);
            }
            let served = queue.take(round * MS, &mut log).unwrap();
            *shares.entry(served.connection).or_insert(0) += 1;
            if served.connection != 11 {
                send(&mut queue, round * MS, served.connection, &mut log);
            }
        }
        assert_eq!(shares.len(), 11, "{kind}");
        for (connection, share) in shares {
            assert!(
                (99..=101).contains(&share),
                "{kind}: {connection} got {share} of 1100"
            );
        }
        let lost = log
            .iter()
            .filter(|(.., fate)| matches!(fate, Fate::Dropped(_)));
        assert!(
            lost.count() > 1_500,
            "{kind}: the overload is lost, not queued"
        );
    }
}

/// Small packets and large ones: bytes are shared, not packets.
#[test]
fn bytes_are_shared_not_packets() {
    for (kind, params) in [
        ("sfq", json!({"packets": 10_000, "depth": 10_000})),
        ("drr", json!({})),
    ] {
        let mut queue = real(kind, &params);
        let mut log = Vec::new();
        for uid in 0..120 {
            queue.arrive(0, packet_of(1, uid, 1500), &mut log);
        }
        for uid in 0..15 * 120 {
            queue.arrive(0, packet_of(2, 1_000 + uid, 100), &mut log);
        }
        let mut bytes = [0_u32; 3];
        for _ in 0..800 {
            let served = queue.take(0, &mut log).unwrap();
            bytes[served.connection as usize] += served.size;
        }
        assert!(bytes[1].abs_diff(bytes[2]) <= 3_000, "{kind}: {bytes:?}");
    }
}

/// Number of runs, over many seeds, in which any of 11 connections share a queue.
fn runs_with_collisions(ways: u32) -> usize {
    use narrows_net::{ElementSetup, Outcomes, queues};
    use narrows_units::Time;
    let params = json!({"ways": ways});
    let params = params.as_object().unwrap();
    (0..400)
        .filter(|seed| {
            let setup = ElementSetup::new(*seed, "forward.0");
            let mut queue = queues::build("sfq", params, &setup).unwrap();
            let mut outcomes = Outcomes::new();
            for connection in 1..=11 {
                for uid in 0..2 {
                    let uid = u64::from(connection * 10 + uid);
                    queue.enqueue(Time::ZERO, packet_of(connection, uid, 1500), &mut outcomes);
                }
            }
            // In the first round every queue sends one packet.
            let mut first: Vec<u32> = (0..11)
                .map(|_| queue.dequeue(Time::ZERO, &mut outcomes).unwrap().connection)
                .collect();
            first.sort_unstable();
            first.dedup();
            first.len() < 11
        })
        .count()
}

#[test]
fn a_few_connections_do_not_collide() {
    assert_eq!(runs_with_collisions(8), 0);
    // With a plain hash, 1 - exp(-11 x 10 / 2 / 1024) = 5.2 % of 400 runs; four standard errors.
    let plain = runs_with_collisions(1);
    assert!((4..=39).contains(&plain), "{plain} of 400");
}

#[test]
fn a_new_hash_keeps_the_order_of_each_connection() {
    let mut queue = real(
        "sfq",
        &json!({"perturb": 10 * MS, "packets": 10_000, "buckets": 16, "ways": 1}),
    );
    let script: Vec<_> = (0..4_000_u64)
        .map(|uid| (uid * MS / 2, packet_of((uid % 12) as u32, uid, 1500)))
        .collect();
    let log = play(&mut queue, &script, RATE);
    let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
    for uid in order(&log) {
        let before = newest.insert(uid % 12, uid);
        assert!(before < Some(uid), "{uid} left after {before:?}");
    }
    assert_eq!(log.len(), 4_000);
}

#[test]
fn the_depth_of_a_queue_is_limited() {
    let mut queue = real("sfq", &json!({"depth": 3}));
    let mut log = Vec::new();
    for uid in 0..5 {
        queue.arrive(0, packet_of(1, uid, 1500), &mut log);
    }
    queue.arrive(0, packet_of(2, 10, 1500), &mut log);
    assert_eq!(log.len(), 2, "3 and 4 found three before them");
}
