//! The step compared with the marking rule of DCTCP.

use crate::harness::{Fate, MS, Machine, packet, play, real, scripts};
use narrows_net::testing::TestPacket;
use narrows_net::{Ecn, ElementSetup, queues};
use serde_json::{Value, json};

fn capable(uid: u64) -> TestPacket {
    TestPacket {
        ecn: Ecn::Ect0,
        ..packet(uid, 1500)
    }
}

/// The fates of ten packets that arrive together and leave one per millisecond.
fn fates(params: &Value, packet: impl Fn(u64) -> TestPacket) -> Vec<(u64, Fate)> {
    let mut queue = real("step", params);
    let mut log = Vec::new();
    for uid in 1..=10 {
        queue.arrive(0, packet(uid), &mut log);
    }
    let mut now = 0;
    while queue.take(now, &mut log).is_some() {
        now += MS;
    }
    log.sort_by_key(|&(_, uid, _)| uid);
    log.into_iter().map(|(_, uid, fate)| (uid, fate)).collect()
}

fn signalled(fates: &[(u64, Fate)], signal: Fate) -> Vec<u64> {
    let with = fates.iter().filter(|(_, fate)| *fate == signal);
    with.map(|(uid, _)| *uid).collect()
}

#[test]
fn what_finds_more_than_the_threshold_is_marked() {
    // The fifth packet finds four, which is not more than four.
    let marked = |params| signalled(&fates(&params, capable), Fate::LeftMarked);
    assert_eq!(marked(json!({"threshold": 4})), [6, 7, 8, 9, 10]);
    assert_eq!(marked(json!({"threshold_bytes": 7500})), [7, 8, 9, 10]);
    assert_eq!(
        marked(json!({"threshold": 4, "threshold_bytes": 3000})),
        [4, 5, 6, 7, 8, 9, 10]
    );
    // The sixth packet leaves after 5 ms, which is not more than 5 ms.
    assert_eq!(marked(json!({"threshold_time": 5 * MS})), [7, 8, 9, 10]);
    assert_eq!(
        marked(json!({"threshold": 0})),
        (2..=10).collect::<Vec<_>>()
    );
}

#[test]
fn what_cannot_be_marked_is_dropped_and_keeps_the_queue_at_the_threshold() {
    let plain = |uid| packet(uid, 1500);
    let dropped = |params, packet: &dyn Fn(u64) -> TestPacket| {
        signalled(&fates(&params, packet), Fate::Dropped("step"))
    };
    assert_eq!(dropped(json!({"threshold": 4}), &plain), [6, 7, 8, 9, 10]);
    assert_eq!(
        dropped(json!({"threshold": 4, "ecn": false}), &capable),
        [6, 7, 8, 9, 10]
    );
    // A drop at departure takes no link time: the next packet is considered immediately.
    assert_eq!(
        dropped(json!({"threshold_time": 5 * MS}), &plain),
        [7, 8, 9, 10]
    );
}

#[test]
fn without_room_everything_is_dropped() {
    let fates = fates(&json!({"threshold": 4, "packets": 8}), capable);
    assert_eq!(signalled(&fates, Fate::LeftMarked), [6, 7, 8]);
    assert_eq!(signalled(&fates, Fate::Dropped("queue_full")), [9, 10]);
}

/// Each packet of the recorded arrivals is marked if and only if more than the threshold waited.
#[test]
fn marks_follow_the_instantaneous_queue() {
    let mut marks = 0;
    for (name, mut script) in scripts() {
        for (_, packet) in &mut script {
            packet.ecn = Ecn::Ect0;
        }
        let log = play(
            &mut real("step", &json!({"threshold": 9})),
            &script,
            12_000_000,
        );
        let left: std::collections::BTreeMap<u64, (u64, Fate)> = log
            .iter()
            .map(|&(at, uid, fate)| (uid, (at, fate)))
            .collect();
        for (at, packet) in &script {
            // Packets that arrived before and were not yet in service; one that leaves at the same instant makes room.
            let found = (1..packet.uid)
                .rev()
                .take_while(|uid| left[uid].0 > *at)
                .count();
            let marked = left[&packet.uid].1 == Fate::LeftMarked;
            assert_eq!(marked, found > 9, "{name}: packet {}", packet.uid);
            marks += usize::from(marked);
        }
    }
    assert!(marks > 1000, "{marks}");
}

#[test]
fn a_threshold_is_asked_for() {
    let build = |params: Value| {
        let params = params.as_object().unwrap().clone();
        queues::build::<TestPacket>("step", &params, &ElementSetup::default()).map(|_| ())
    };
    let error = build(json!({"packets": 5})).unwrap_err().to_string();
    assert!(error.starts_with("step: a threshold is missing"), "{error}");
    assert!(build(json!({"threshold_time": 1000})).is_ok());
}
