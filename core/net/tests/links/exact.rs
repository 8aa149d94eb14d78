//! Deterministic elements compared with their documentation.

use super::{MS, element, packet, play, setup, stream};
use narrows_net::testing::TestPacket;
use narrows_net::{Change, Outcomes, links};
use narrows_units::{Span, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn planned_losses_are_exact() {
    let dropped = |name, params: Value| {
        let out = play(&mut *element(name, &params), stream(20, 1_000));
        out.drops.iter().map(|(_, uid)| *uid).collect::<Vec<_>>()
    };
    assert_eq!(dropped("periodicloss", json!({"every": 6})), [6, 12, 18]);
    assert_eq!(
        dropped("periodicloss", json!({"every": 6, "offset": 1})),
        [7, 13, 19]
    );
    assert_eq!(
        dropped("losslist", json!({"packets": [9, 2, 3, 40, 2]})),
        [2, 3, 9]
    );
    assert_eq!(
        dropped("gate", json!({"open": false})),
        (1..=20).collect::<Vec<_>>()
    );
    assert!(dropped("gate", json!({})).is_empty());
    let out = play(
        &mut *element("mtu", &json!({"bytes": 1280})),
        [(0, packet(1, 1280)), (0, packet(2, 1281))],
    );
    assert_eq!((out.times(), out.drops), (vec![(0, 1)], vec![(0, 2)]));
}

#[test]
fn a_delay_line_has_as_many_places_as_its_limit() {
    // A packet per millisecond into 5 ms: five are in flight, and the sixth arrives as the first leaves.
    let dropped = |limit: u64, delay: u64| {
        let params = json!({"delay": delay, "limit": limit});
        let out = play(&mut *element("delay", &params), stream(12, MS));
        assert!(
            out.left
                .iter()
                .all(|&(at, packet)| at == (packet.uid - 1) * MS + delay)
        );
        out.drops
    };
    assert_eq!(dropped(5, 5 * MS), []);
    let late: Vec<(u64, u64)> = [3, 4, 8, 9].map(|at| (at * MS, at + 1)).into();
    assert_eq!(dropped(3, 5 * MS), late);
    // netem's default on a long path: 1000 packets in 1 s, the rest is lost.
    let params = json!({"delay": 1000 * MS, "limit": 1000});
    let out = play(&mut *element("delay", &params), stream(4000, MS / 2));
    assert_eq!((out.left.len(), out.drops.len()), (2000, 2000));
}

#[test]
fn outages_drop_or_hold() {
    let times = |params: Value| {
        let script = (0..12).map(|ms| (ms * MS, packet(ms, 1000)));
        let out = play(&mut *element("outage", &params), script);
        let dropped: Vec<u64> = out.drops.iter().map(|(_, uid)| *uid).collect();
        (
            out.left.iter().map(|(at, _)| at / MS).collect::<Vec<_>>(),
            dropped,
        )
    };
    let once = json!({"start": 2 * MS, "length": 3 * MS});
    assert_eq!(
        times(once),
        (vec![0, 1, 5, 6, 7, 8, 9, 10, 11], vec![2, 3, 4])
    );
    let again = json!({"start": 2 * MS, "length": 3 * MS, "period": 5 * MS, "mode": "hold"});
    assert_eq!(
        times(again),
        (vec![0, 1, 5, 5, 5, 5, 6, 10, 10, 10, 10, 11], vec![])
    );
}

#[test]
fn delays_follow_their_plan() {
    let at = |name, params: Value, times: &[u64]| {
        let script = (1..)
            .zip(times)
            .map(|(uid, ms)| (ms * MS, packet(uid, 1000)));
        let out = play(&mut *element(name, &params), script);
        out.left
            .iter()
            .map(|(at, packet)| (at / MS, packet.uid))
            .collect::<Vec<_>>()
    };
    let steps = json!({"steps": [[0, 20 * MS], [100 * MS, 5 * MS]]});
    // The third waits for the second, which is still in flight.
    assert_eq!(
        at("delaysteps", steps, &[0, 99, 100, 120]),
        [(20, 1), (119, 2), (119, 3), (125, 4)]
    );
    let free =
        json!({"steps": [[0, 20 * MS], [100 * MS, 5 * MS]], "reorder": true, "period": 200 * MS});
    assert_eq!(
        at("delaysteps", free, &[0, 99, 100, 230]),
        [(20, 1), (105, 3), (119, 2), (250, 4)]
    );
    let trace = json!({"file": {"name": "delays.csv", "sha256": "00"}});
    for name in ["delaytrace", "jittertrace"] {
        let found = at(name, trace.clone(), &[0, 150, 299, 300, 400]);
        assert_eq!(found, [(20, 1), (155, 2), (304, 3), (320, 4), (405, 5)]);
    }
    let once = json!({"file": {"name": "delays.csv", "sha256": "00"}, "loop": false});
    assert_eq!(at("delaytrace", once, &[300]), [(305, 1)]);
    let drift = json!({"delay": 20 * MS, "slope": 0.01, "amplitude": 10 * MS, "period": 1000 * MS});
    // A quarter of a period later: 20 + 2.5 + 10; three quarters: 20 + 7.5 - 10.
    assert_eq!(
        at("drift", drift, &[0, 250, 750]),
        [(20, 1), (282, 2), (767, 3)]
    );
    // At 1, 11, 21, ... ms: packets that arrived within a tick leave together, and none is early.
    let ticks = json!({"delay": 20 * MS, "tick": 10 * MS, "phase": 21 * MS});
    assert_eq!(
        at("delayticks", ticks.clone(), &[0, 1, 2, 11, 12, 40]),
        [(21, 1), (21, 2), (31, 3), (31, 4), (41, 5), (61, 6)]
    );
    let at_once = json!({"delay": 0, "tick": 10 * MS, "phase": 3 * MS});
    assert_eq!(
        at("delayticks", at_once, &[0, 3, 4]),
        [(3, 1), (3, 2), (13, 3)]
    );
    assert_eq!(
        element("delayticks", &ticks).propagation(),
        Span::from_ms(20)
    );
    assert_eq!(
        element("delaytrace", &trace).propagation(),
        Span::from_ms(5)
    );
    assert_eq!(element("jittertrace", &trace).propagation(), Span::ZERO);
}

#[test]
fn a_policer_lets_a_burst_pass_and_then_its_rate() {
    // A byte per microsecond, two packets deep.
    let params = json!({"rate": 8_000_000, "burst": 3_000});
    let times = [0, 0, 0, 1_499, 1_500, 2_999, 3_000, 10_000, 10_000, 10_000];
    let script = || {
        (1..)
            .zip(times)
            .map(|(uid, us)| (us * 1_000, packet(uid, 1500)))
    };
    let out = play(&mut *element("policer", &params), script());
    let passed: Vec<u64> = out.left.iter().map(|(_, packet)| packet.uid).collect();
    assert_eq!(passed, [1, 2, 5, 7, 8, 9]);
    assert!(
        out.left
            .iter()
            .all(|(at, packet)| *at == times[packet.uid as usize - 1] * 1_000)
    );
    let remark = json!({"rate": 8_000_000, "burst": 3_000, "action": "remark", "dscp": 8});
    let out = play(&mut *element("policer", &remark), script());
    let marked: Vec<u64> = out
        .left
        .iter()
        .filter(|(_, packet)| packet.dscp == 8)
        .map(|(_, packet)| packet.uid)
        .collect();
    assert_eq!((out.left.len(), marked), (10, vec![3, 4, 6, 10]));
}

proptest! {
    /// The token bucket of RFC 2697 in exact fractions: at each arrival it holds
    /// min(burst, held + rate x time) and a packet passes if that is not less than its size.
    #[test]
    fn a_policer_is_a_token_bucket(
        rate in 1u64..1_000_000_000,
        burst in 1u64..30_000,
        arrivals in prop::collection::vec((0u64..5_000_000, 20u32..3_000), 1..100),
    ) {
        let (mut now, mut uid) = (0, 0);
        let script: Vec<_> = arrivals.iter().map(|(gap, size)| {
            now += gap;
            uid += 1;
            (now, packet(uid, *size))
        }).collect();
        let out = play(&mut *element("policer", &json!({"rate": rate, "burst": burst})), script.clone());
        let passed: Vec<u64> = out.left.iter().map(|(_, packet)| packet.uid).collect();
        // In units of 1 / (8 x 10^9) byte.
        let full = u128::from(burst) * 8_000_000_000;
        let (mut held, mut last) = (full, 0);
        let mut expected = Vec::new();
        for (at, packet) in &script {
            held = full.min(held + u128::from(at - last) * u128::from(rate));
            last = *at;
            let cost = u128::from(packet.size) * 8_000_000_000;
            if held >= cost {
                held -= cost;
                expected.push(packet.uid);
            }
        }
        prop_assert_eq!(passed, expected);
    }

    /// Pantheon's aggregation paths are traces: the element agrees with a link with that trace.
    #[test]
    fn aggregation_is_what_a_trace_of_equal_lines_does(
        (packets, ms) in prop::sample::select(vec![(1u64, 100u64), (10, 200), (3, 7)]),
        arrivals in prop::collection::vec((prop_oneof![Just(0u64), 0u64..40_000_000], prop::sample::select(vec![40u32, 52, 1500, 4000])), 1..100),
    ) {
        let (mut now, mut uid) = (0, 0);
        let script: Vec<_> = arrivals.iter().map(|(gap, size)| {
            now += gap;
            uid += 1;
            (now, packet(uid, *size))
        }).collect();
        let grouped = play(&mut *element("ackaggregation", &json!({"packets": packets, "time": ms * MS})), script.clone());
        let mut setup = setup();
        let lines = format!("{ms}\n").repeat(packets as usize);
        setup.files.insert("11", lines.into_bytes());
        let file = json!({"file": {"name": "groups.trace", "sha256": "11"}});
        let mut traced = narrows_net::Bottleneck::new(
            narrows_net::queues::build("unlimited", &serde_json::Map::new(), &setup).unwrap(),
            narrows_net::rates::build("trace", file.as_object().unwrap(), &setup).unwrap(),
            &narrows_units::Params::resolve(narrows_net::BOTTLENECK_PARAMS, []).unwrap(),
        );
        prop_assert_eq!(grouped.times(), play(&mut traced, script).times());
    }
}

#[test]
fn aggregation_can_count_packets() {
    let params = json!({"packets": 2, "time": 10 * MS, "bytes": 0});
    let out = play(&mut *element("ackaggregation", &params), stream(5, 5 * MS));
    // Three arrived at 0, 5 and 10 ms, of which two leave at 10 ms; the last of five finds no room at 20.
    let times: Vec<u64> = out.left.iter().map(|(at, _)| at / MS).collect();
    assert_eq!(times, [10, 10, 20, 20, 30]);
}

#[test]
fn decimation_keeps_every_nth_acknowledgement_of_each_connection() {
    let ack = |uid: u64, connection: u32| TestPacket {
        ack: true,
        connection,
        ..packet(uid, 52)
    };
    let script = [
        (0, ack(1, 1)),
        (MS, ack(2, 1)),
        (2 * MS, packet(3, 1500)), // data passes immediately
        (3 * MS, ack(4, 2)),       // another connection
        (4 * MS, ack(5, 1)),       // the third of connection 1: goes on at once
        (5 * MS, ack(6, 1)),       // begins a new group and waits until 15 ms
        (9 * MS, ack(7, 1)),
    ];
    let params = json!({"keep": 3, "hold": 10 * MS});
    let out = play(&mut *element("ackdecimation", &params), script);
    assert_eq!(
        out.times(),
        [(2 * MS, 3), (4 * MS, 5), (13 * MS, 4), (15 * MS, 7)]
    );
    assert_eq!(out.drops, [(MS, 1), (4 * MS, 2), (9 * MS, 6)]);
}

#[test]
fn a_changed_policer_keeps_what_is_in_its_bucket() {
    let mut policer = element("policer", &json!({"rate": 8_000_000, "burst": 3_000}));
    let mut outcomes = Outcomes::new();
    policer.push(Time::ZERO, packet(1, 2_000), &mut outcomes);
    // 1000 bytes remain; at the new rate of two bytes per microsecond 500 us add 1000 more.
    let params = json!({"rate": 16_000_000, "burst": 2_500});
    let params = links::params("policer", params.as_object().unwrap()).unwrap();
    policer
        .change(Time::ZERO, Change::Params(params), &mut outcomes)
        .unwrap();
    let at = Time::from_ns(500_000);
    policer.push(at, packet(2, 2_001), &mut outcomes);
    policer.push(at, packet(3, 2_000), &mut outcomes);
    assert_eq!(
        outcomes
            .drops
            .iter()
            .map(|drop| drop.packet.uid)
            .collect::<Vec<_>>(),
        [2]
    );
}
