//! The trace link compared with the definition of mahimahi's format, implemented by a model that shares no code with it
//! and iterates over all opportunities one by one.

use narrows_net::testing::TestPacket;
use narrows_net::{Files, Network, Outcomes, Plan};
use narrows_units::{Stream, Time};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;

/// The times (ns) of all opportunities before `end`, as the format defines them: one per line, repeated at the end,
/// shifted by the last time stamp.
fn opportunities(lines: &[u64], end: u64) -> Vec<u64> {
    let last = lines[lines.len() - 1];
    let mut times = Vec::new();
    for round in 0.. {
        for ms in lines {
            let at = (round * last + ms) * MS;
            if at >= end {
                return times;
            }
            times.push(at);
        }
    }
    times
}

/// Results by the definition: (departure, number) of each packet, and the numbers of dropped ones.
///
/// An opportunity moves 1500 bytes of the packets that wait at its instant; a packet has left the queue once its first
/// byte has moved, and has left the link once its last byte has.
#[derive(Default)]
struct Model {
    queue: VecDeque<(u64, u64)>,
    /// Number and remaining bytes of the packet that has moved partly.
    begun: Option<(u64, u64)>,
    /// Remaining bytes of the opportunities of this instant.
    left_over: u64,
    departures: Vec<(u64, u64)>,
}

impl Model {
    fn move_bytes(&mut self, at: u64, mut budget: u64) {
        while budget > 0 {
            let Some((uid, missing)) = self.begun.take().or_else(|| self.queue.pop_front()) else {
                break;
            };
            let moved = missing.min(budget);
            budget -= moved;
            if moved == missing {
                self.departures.push((at, uid));
            } else {
                self.begun = Some((uid, missing - moved));
            }
        }
        self.left_over = budget;
    }
}

fn by_definition(
    lines: &[u64],
    arrivals: &[(u64, u64)],
    limit: usize,
    end: u64,
) -> (Vec<(u64, u64)>, Vec<u64>) {
    let mut model = Model::default();
    let mut drops = Vec::new();
    let times = opportunities(lines, end);
    let mut instants: Vec<u64> = times
        .iter()
        .copied()
        .chain(arrivals.iter().map(|a| a.0))
        .collect();
    instants.sort_unstable();
    instants.dedup();
    for now in instants.into_iter().filter(|at| *at < end) {
        model.left_over = 0;
        let count = times.iter().filter(|at| **at == now).count() as u64;
        model.move_bytes(now, count * 1500);
        for (uid, (_, size)) in (1..).zip(arrivals).filter(|(_, (at, _))| *at == now) {
            if model.queue.len() + 1 > limit {
                drops.push(uid);
                continue;
            }
            model.queue.push_back((uid, *size));
            let budget = model.left_over;
            model.move_bytes(now, budget);
        }
    }
    (model.departures, drops)
}

fn text(lines: &[u64]) -> String {
    let lines: Vec<String> = lines.iter().map(|ms| format!("{ms}\n")).collect();
    lines.concat()
}

/// Results of the trace link.
fn by_link(
    lines: &[u64],
    arrivals: &[(u64, u64)],
    queue: &Value,
    end: u64,
) -> (Vec<(u64, u64)>, Vec<u64>) {
    let mut files = Files::default();
    files.insert("00", text(lines).into_bytes());
    let network = json!({"kind": "dumbbell", "backward": [], "forward": [
        {"kind": "bottleneck", "queue": queue,
         "rate": {"kind": "trace", "file": {"name": "test.trace", "sha256": "00"}}}]});
    let mut network: Network<TestPacket> = Network::new(&Plan {
        network: &network,
        timeline: &Value::Null,
        flows: &[],
        seed: 1,
        files: &files,
    })
    .unwrap();
    let mut outcomes = Outcomes::new();
    for (uid, (at, size)) in (1..).zip(arrivals) {
        let packet = TestPacket {
            uid,
            size: *size as u32,
            ..TestPacket::default()
        };
        network.push(Time::from_ns(*at), packet, &mut outcomes);
    }
    network.advance(Time::from_ns(end - 1), &mut outcomes);
    let left = std::iter::from_fn(|| network.pop()).map(|(at, packet)| (at.ns(), packet.uid));
    let drops = outcomes.drops.iter().map(|drop| drop.packet.uid);
    (left.collect(), drops.collect())
}

#[test]
fn packets_share_opportunities_and_span_them() {
    // One opportunity at 2 ms and two at 5 ms, periodically.
    let lines = [2, 5, 5];
    let arrivals = [
        (0, 700),         // with the next one at 2 ms
        (MS, 800),        // 700 + 800 fill it
        (MS + 1, 1500),   // first opportunity at 5 ms
        (3 * MS, 2000),   // 1500 of it by the second one at 5 ms, the rest at 7 ms
        (6 * MS, 1000),   // what is left at 7 ms
        (7 * MS + 1, 40), // too late for that: 10 ms
        (10 * MS, 2900),  // both that fall at 10 ms have 2960 bytes left
        (12 * MS, 1500),  // at the instant of an opportunity
    ];
    let unlimited = json!({"kind": "unlimited"});
    let (left, drops) = by_link(&lines, &arrivals, &unlimited, 20 * MS);
    let times: Vec<u64> = left.iter().map(|(at, _)| at / MS).collect();
    assert_eq!(times, [2, 2, 5, 7, 7, 10, 10, 12]);
    assert!(drops.is_empty());
    assert_eq!(
        by_definition(&lines, &arrivals, usize::MAX, 20 * MS),
        (left, drops)
    );
}

#[test]
fn a_packet_that_waits_for_an_opportunity_counts_for_the_limit() {
    // The queue of one packet on Pantheon's links: a packet that waits for the next millisecond occupies it.
    let arrivals = [(100, 1500), (200, 1500), (MS + 100, 1500)];
    let one = json!({"kind": "droptail", "packets": 1});
    let (left, drops) = by_link(&[1], &arrivals, &one, 10 * MS);
    assert_eq!(left, [(MS, 1), (2 * MS, 3)]);
    assert_eq!(drops, [2]);
}

#[test]
fn throughput_is_the_mean_of_the_trace() {
    // 2786 opportunities in 60.027 s, at random times.
    let mut stream = Stream::new(4, "trace");
    let mut lines: Vec<u64> = (0..2785).map(|_| stream.below(60_027)).collect();
    lines.push(60_027);
    lines.sort_unstable();
    let rounds = 3;
    let end = rounds * 60_027 * MS + 1;
    let arrivals: Vec<(u64, u64)> = (0..2786 * rounds + 10).map(|_| (0, 1500)).collect();
    let (left, _) = by_link(&lines, &arrivals, &json!({"kind": "unlimited"}), end);
    let bits = left.len() as f64 * 12_000.0;
    let throughput = bits / (end as f64 / 1e9);
    let mean = 2786.0 * 12_000.0 / 60.027;
    assert!(
        (throughput / mean - 1.0).abs() < 0.001,
        "{throughput} {mean}"
    );
    assert_eq!(left.len(), 2786 * 3);
}

proptest! {
    #[test]
    fn every_packet_leaves_at_the_opportunity_of_the_definition(
        gaps in prop::collection::vec(prop_oneof![Just(0u64), 0u64..4, 0u64..60], 1..20),
        arrivals in prop::collection::vec((prop_oneof![Just(0u64), 0u64..3_000_000], prop::sample::select(vec![40u64, 52, 700, 1500, 4000])), 1..80),
        on_ticks: bool,
        limit in prop_oneof![Just(usize::MAX), 1usize..10],
    ) {
        let mut at = 0;
        let mut lines: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
        if at == 0 {
            lines.push(1);
        }
        let mut now = 0;
        let arrivals: Vec<(u64, u64)> = arrivals.iter().map(|(gap, size)| {
            now += gap;
            (if on_ticks { now / MS * MS } else { now }, *size)
        }).collect();
        let queue = match limit {
            usize::MAX => json!({"kind": "unlimited"}),
            limit => json!({"kind": "droptail", "packets": limit}),
        };
        let end = now + 300 * MS;
        prop_assert_eq!(
            by_link(&lines, &arrivals, &queue, end),
            by_definition(&lines, &arrivals, limit, end)
        );
    }
}
