//! Drop-head, one packet, strict priority, and changes while packets wait.

use crate::harness::{Fate, MS, Machine, order, packet, real};
use narrows_net::testing::TestPacket;
use narrows_net::{ElementSetup, queues};
use serde_json::{Value, json};

fn dropped(log: &[crate::harness::Event]) -> Vec<u64> {
    log.iter()
        .filter(|(.., fate)| matches!(fate, Fate::Dropped("queue_full")))
        .map(|(_, uid, _)| *uid)
        .collect()
}

#[test]
fn drop_head_accepts_the_newcomer_and_discards_the_oldest() {
    let mut queue = real("drophead", &json!({"bytes": 3_000, "packets": 4}));
    let mut log = Vec::new();
    for (uid, size) in [
        (1, 1500),
        (2, 1000),
        (3, 1500),
        (4, 100),
        (5, 100),
        (6, 100),
    ] {
        queue.arrive(uid, packet(uid, size), &mut log);
    }
    // With 3 there are 4000 bytes: 1 is dropped. 2, 3, 4, 5 are four packets; 6 is the fifth: 2 is dropped.
    assert_eq!(dropped(&log), [1, 2]);
    queue.arrive(7, packet(7, 3_001), &mut log);
    assert_eq!(dropped(&log), [1, 2, 3, 4, 5, 6, 7], "too large by itself");
    assert_eq!(queue.take(8, &mut log), None);
}

#[test]
fn one_packet_waits() {
    let mut queue = real("onepacket", &json!({}));
    let mut log = Vec::new();
    for uid in 1..=3 {
        queue.arrive(0, packet(uid, 9000), &mut log);
    }
    queue.take(1, &mut log);
    queue.arrive(2, packet(4, 40), &mut log);
    queue.take(3, &mut log);
    assert_eq!((order(&log), dropped(&log)), (vec![1, 4], vec![2, 3]));
}

fn with_dscp(uid: u64, dscp: u8) -> TestPacket {
    TestPacket {
        dscp,
        ..packet(uid, 1000)
    }
}

fn served(params: &Value) -> Vec<u64> {
    let mut queue = real("priority", params);
    let mut log = Vec::new();
    // LE, CS1, default, AF41, CS5, EF, CS6.
    for (uid, dscp) in (1..).zip([1, 8, 0, 34, 40, 46, 48]) {
        queue.arrive(0, with_dscp(uid, dscp), &mut log);
    }
    while queue.take(0, &mut log).is_some() {}
    order(&log)
}

#[test]
fn bands_are_served_in_order() {
    assert_eq!(served(&json!({})), [5, 6, 7, 3, 4, 1, 2]);
    assert_eq!(served(&json!({"bands": 1})), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(served(&json!({"bands": 2})), [5, 6, 7, 1, 2, 3, 4]);
    let af41_first = json!({"map": [34, 0, 46, 1]});
    assert_eq!(served(&af41_first), [4, 5, 7, 3, 6, 1, 2]);
}

#[test]
fn each_band_has_its_own_limit() {
    let mut queue = real("priority", &json!({"packets": 2}));
    let mut log = Vec::new();
    for (uid, dscp) in (1..).zip([0, 0, 0, 46, 46, 46]) {
        queue.arrive(0, with_dscp(uid, dscp), &mut log);
    }
    assert_eq!(dropped(&log), [3, 6]);
}

/// Every discipline accepts new values of all its parameters while packets wait, and loses no packet without reporting
/// it.
#[test]
fn what_waits_survives_a_change() {
    let cases = [
        ("droptail", json!({"packets": 50}), json!({"packets": 5})),
        ("drophead", json!({"packets": 50}), json!({"packets": 5})),
        ("onepacket", json!({}), json!({})),
        (
            "red",
            json!({"packets": 50}),
            json!({"bytes": 9000, "adaptive": true}),
        ),
        (
            "codel",
            json!({}),
            json!({"target": 1, "interval": 1, "packets": 3}),
        ),
        (
            "pie",
            json!({}),
            json!({"target": 1000, "tupdate": 100_000, "packets": 3}),
        ),
        (
            "fqcodel",
            json!({}),
            json!({"flows": 3, "packets": 10, "quantum": 300}),
        ),
        (
            "sfq",
            json!({}),
            json!({"buckets": 3, "ways": 1, "packets": 10}),
        ),
        ("drr", json!({}), json!({"quantum": 64, "packets": 10})),
        (
            "dualpi2",
            json!({}),
            json!({"tupdate": 100_000, "classic_share": 0.5, "signals": "random"}),
        ),
        ("priority", json!({}), json!({"bands": 8, "map": [0, 7]})),
    ];
    for (kind, before, after) in cases {
        for (first, second) in [(&before, &after), (&after, &before)] {
            let mut queue = real(kind, first);
            let mut log = Vec::new();
            let mut sent = 0;
            let feed =
                |queue: &mut crate::harness::Real, from: u64, log: &mut Vec<_>, sent: &mut u64| {
                    for k in 0..60 {
                        *sent += 1;
                        let one = TestPacket {
                            connection: (*sent % 9) as u32,
                            dscp: (*sent % 64) as u8,
                            ..packet(*sent, 700)
                        };
                        queue.arrive(from + k * MS, one, log);
                        if k % 2 == 0 {
                            queue.take(from + k * MS, log);
                        }
                    }
                };
            feed(&mut queue, 0, &mut log, &mut sent);
            queue.change(60 * MS, kind, second, &mut log);
            feed(&mut queue, 61 * MS, &mut log, &mut sent);
            let mut now = 121 * MS;
            while queue.queue.backlog().packets > 0 {
                queue.take(now, &mut log);
                now += MS;
            }
            let mut seen: Vec<u64> = log.iter().map(|(_, uid, _)| *uid).collect();
            seen.sort_unstable();
            assert_eq!(seen, (1..=sent).collect::<Vec<_>>(), "{kind}");
        }
    }
}

#[test]
fn contradictions_are_refused_in_one_sentence() {
    let refuse = |kind: &str, params: Value| {
        let params = params.as_object().unwrap();
        match queues::build::<TestPacket>(kind, params, &ElementSetup::new(1, "forward.0")) {
            Ok(_) => panic!("{kind} {params:?} was accepted"),
            Err(error) => error.to_string(),
        }
    };
    assert!(refuse("red", json!({})).contains("a limit is missing"));
    assert!(
        refuse(
            "red",
            json!({"packets": 9, "min_threshold": 5, "max_threshold": 5})
        )
        .contains("the lower threshold (5) must be below the upper one (5)")
    );
    assert!(
        refuse(
            "red",
            json!({"packets": 9, "min_threshold": 5, "max_bytes": 5})
        )
        .contains("thresholds count packets or bytes")
    );
    assert!(
        refuse("red", json!({"packets": 9, "min_bytes": 5})).contains("upper threshold is missing")
    );
    assert!(refuse("priority", json!({"map": [1]})).contains("even number"));
    assert!(refuse("priority", json!({"map": [1, 3]})).contains("the last band is 2"));
    assert!(refuse("priority", json!({"map": [64, 0]})).contains("between 0 and 63"));
    assert!(refuse("dualpi2", json!({"ramp": 3_000_000})).contains("begin below zero"));
    assert!(refuse("codel", json!({"interval": 0})).contains("between 1"));
    assert!(refuse("fqcodel", json!({"flows": 0})).contains("between 1"));
}
