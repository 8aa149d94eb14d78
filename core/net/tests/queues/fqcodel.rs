//! FQ-CoDel compared with RFC 8290.

use crate::codel;
use crate::harness::{Event, Fate, MS, Machine, RATE, compare, order, packet, play, real};
use narrows_net::Ecn;
use narrows_net::testing::TestPacket;
use serde_json::json;
use std::collections::BTreeMap;

/// Section 4 with one queue for each connection: the scripts are played with so many buckets that their few connections
/// do not collide.
struct Model {
    queues: BTreeMap<u32, (codel::Model, i64)>,
    new: Vec<u32>,
    old: Vec<u32>,
    maximum: usize,
    came_as: BTreeMap<u64, Ecn>,
}

impl Model {
    fn new(maximum: usize) -> Self {
        Model {
            queues: BTreeMap::new(),
            new: Vec::new(),
            old: Vec::new(),
            maximum,
            came_as: BTreeMap::new(),
        }
    }
}

impl Machine for Model {
    fn arrive(&mut self, now: u64, packet: TestPacket, log: &mut Vec<Event>) {
        self.came_as.insert(packet.uid, packet.ecn);
        let number = packet.connection;
        let fresh = || (codel::Model::new(5, 100, true), 0);
        let (queue, credits) = self.queues.entry(number).or_insert_with(fresh);
        queue.queue.push((now, packet));
        if !self.new.contains(&number) && !self.old.contains(&number) {
            *credits = 1500;
            self.new.push(number);
        }
        let total: usize = self
            .queues
            .values()
            .map(|(queue, _)| queue.queue.len())
            .sum();
        if total > self.maximum {
            // Among equals, the one whose turn comes first.
            let turns: Vec<u32> = self.new.iter().chain(&self.old).copied().collect();
            let bytes = |number: &u32| -> u32 {
                let packets = &self.queues[number].0.queue;
                packets.iter().map(|(_, packet)| packet.size).sum()
            };
            let maximum = turns.iter().map(bytes).max().unwrap();
            let fattest = *turns
                .iter()
                .find(|number| bytes(number) == maximum)
                .unwrap();
            let packets = &mut self.queues.get_mut(&fattest).unwrap().0.queue;
            let batch = packets.len().div_ceil(2).min(64);
            for (_, packet) in packets.drain(..batch) {
                log.push((now, packet.uid, Fate::Dropped("queue_full")));
            }
        }
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let number = *list.first()?;
            let (queue, credits) = self.queues.get_mut(&number).unwrap();
            if *credits <= 0 {
                *credits += 1500;
                list.remove(0);
                self.old.push(number);
                continue;
            }
            let Some(packet) = queue.dequeue(now, log) else {
                list.remove(0);
                if from_new {
                    self.old.push(number);
                }
                continue;
            };
            *credits -= i64::from(packet.size);
            let marked = self.came_as[&packet.uid] != packet.ecn;
            let fate = if marked { Fate::LeftMarked } else { Fate::Left };
            log.push((now, packet.uid, fate));
            return Some(packet);
        }
    }
}

#[test]
fn decides_as_the_rfc_describes() {
    for maximum in [10_240, 100] {
        let params = json!({"packets": maximum, "flows": 65_536});
        let (drops, marks) = compare(
            || real("fqcodel", &params),
            || Box::new(Model::new(maximum)),
        );
        assert!(drops > 200, "{drops} drops");
        assert!(marks > 100 || maximum == 100, "{marks} marks");
    }
}

#[test]
fn one_bucket_is_one_codel_queue() {
    let script: Vec<_> = (0..3_000)
        .map(|k| {
            let connection = k as u32 % 7;
            (
                k * MS / 2,
                TestPacket {
                    connection,
                    ..packet(k, 1500)
                },
            )
        })
        .collect();
    // Whole packets of one quantum: the turns of a single queue change nothing.
    let one = play(&mut real("fqcodel", &json!({"flows": 1})), &script, RATE);
    let plain = play(&mut real("codel", &json!({})), &script, RATE);
    assert_eq!(one, plain);
}

fn packet_of(connection: u32, uid: u64, size: u32) -> TestPacket {
    TestPacket {
        connection,
        ..packet(uid, size)
    }
}

/// Two bulk connections wait with five packets each; a sparse one sends a packet after two have left. New queues go
/// first: 1 and 2 are new at the start and send one packet each, which is a quantum; then the sparse one is new and
/// overtakes all waiting packets.
#[test]
fn a_sparse_connection_is_served_first() {
    let mut queue = real("fqcodel", &json!({}));
    let mut log = Vec::new();
    for uid in 0..5 {
        queue.arrive(0, packet_of(1, 10 + uid, 1500), &mut log);
        queue.arrive(0, packet_of(2, 20 + uid, 1500), &mut log);
    }
    queue.take(MS, &mut log);
    queue.take(2 * MS, &mut log);
    queue.arrive(2 * MS, packet_of(3, 30, 100), &mut log);
    for at in 3..12 {
        queue.take(at * MS, &mut log);
    }
    assert_eq!(order(&log), [10, 20, 30, 11, 21, 12, 22, 13, 23, 14, 24]);
}

/// A connection that sends one packet at a time is not new each time: having emptied as a new queue it
/// stays among the old ones for a round. 1 sends three packets, a quantum; then 3 is first and is
/// found empty with the next request, which puts it behind 1; its second packet finds it there.
#[test]
fn an_emptied_new_queue_waits_a_round_among_the_old_ones() {
    let mut queue = real("fqcodel", &json!({}));
    let mut log = Vec::new();
    for uid in 10..18 {
        queue.arrive(0, packet_of(1, uid, 500), &mut log);
    }
    queue.take(0, &mut log);
    queue.arrive(0, packet_of(3, 30, 1000), &mut log);
    for _ in 0..4 {
        queue.take(0, &mut log);
    }
    queue.arrive(0, packet_of(3, 31, 1000), &mut log);
    for _ in 0..5 {
        queue.take(0, &mut log);
    }
    assert_eq!(order(&log), [10, 11, 12, 30, 13, 14, 15, 31, 16, 17]);
}

#[test]
fn overload_drops_a_batch_from_the_head_of_the_fattest_queue() {
    let mut queue = real("fqcodel", &json!({"packets": 200}));
    let mut log = Vec::new();
    for uid in 0..50 {
        queue.arrive(0, packet_of(1, uid, 1500), &mut log);
    }
    for uid in 1000..1150 {
        queue.arrive(0, packet_of(2, uid, 1500), &mut log);
    }
    assert!(log.is_empty());
    queue.arrive(0, packet_of(1, 50, 1500), &mut log);
    let dropped: Vec<u64> = log.iter().map(|(_, uid, _)| *uid).collect();
    assert_eq!(dropped, (1000..1064).collect::<Vec<_>>(), "64 of 150");
    log.clear();
    let mut queue = real("fqcodel", &json!({"memory": 15_000}));
    for uid in 0..11 {
        queue.arrive(0, packet_of(1, uid, 1500), &mut log);
    }
    assert_eq!(log.len(), 6, "half of eleven, from the head");
}
