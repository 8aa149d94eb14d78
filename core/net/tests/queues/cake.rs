//! CAKE compared with its paper: service order, shares of hosts and classes, and times of COBALT's signals.

use crate::harness::{Event, Fate, MS, Machine, drop_times, order, packet, play, real};
use narrows_net::testing::TestPacket;
use narrows_net::{Ecn, ElementSetup, Files, Network, Outcomes, Plan, Queue, queues};
use narrows_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn packet_of(connection: u32, uid: u64) -> TestPacket {
    TestPacket {
        connection,
        ..packet(uid, 1500)
    }
}

/// Bytes of each route among the first `count` packets, with a backlog in every connection.
fn shares(
    params: &Value,
    hosts: &[(u16, u16)],
    connections: &[(u16, u8)],
    count: u32,
) -> BTreeMap<(u16, u8), u32> {
    let setup = ElementSetup {
        hosts: hosts.into(),
        ..ElementSetup::new(3, "x")
    };
    let params = params.as_object().unwrap();
    let mut queue: Box<dyn Queue<TestPacket>> = queues::build("cake", params, &setup).unwrap();
    let mut outcomes = Outcomes::new();
    let mut uid = 0;
    let mut arrive =
        |queue: &mut dyn Queue<TestPacket>, now: u64, index: usize, outcomes: &mut _| {
            let (route, dscp) = connections[index];
            uid += 1;
            let packet = TestPacket {
                route,
                dscp,
                ..packet_of(index as u32 + 1, uid)
            };
            queue.enqueue(Time::from_ns(now), packet, outcomes);
        };
    for index in 0..connections.len() {
        for _ in 0..5 {
            arrive(&mut *queue, 0, index, &mut outcomes);
        }
    }
    let mut sent = BTreeMap::new();
    // So fast that no packet waits for 5 ms; packets that leave are replaced.
    for step in 0..u64::from(count) {
        let packet = queue.dequeue(Time::from_ns(step), &mut outcomes).unwrap();
        *sent.entry((packet.route, packet.dscp)).or_insert(0) += 1;
        arrive(
            &mut *queue,
            step,
            packet.connection as usize - 1,
            &mut outcomes,
        );
    }
    assert!(outcomes.drops.is_empty());
    sent
}

#[test]
fn a_hundred_connections_have_a_queue_each() {
    let mut queue = real("cake", &json!({}));
    let mut log = Vec::new();
    for round in 0..5 {
        for connection in 0..100 {
            let uid = round * 100 + u64::from(connection);
            queue.arrive(uid, packet_of(connection * 77, uid), &mut log);
        }
    }
    while queue.take(1000, &mut log).is_some() {}
    // With a plain hash into 1024 queues some would share one with a probability of 99 %.
    for round in order(&log).chunks(100) {
        let mut seen: Vec<u64> = round.iter().map(|uid| uid % 100).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn a_connection_that_sends_little_is_served_first() {
    let mut queue = real("cake", &json!({}));
    let mut log = Vec::new();
    for uid in 0..20 {
        queue.arrive(0, packet_of(1, uid), &mut log);
    }
    for now in 1..4 {
        queue.take(now, &mut log);
    }
    queue.arrive(4, packet_of(2, 100), &mut log);
    queue.take(5, &mut log);
    assert_eq!(order(&log), [0, 1, 2, 100]);
}

#[test]
fn hosts_share_before_their_connections_do() {
    // One connection of host 0; nine of host 1, to nine other hosts.
    let hosts: Vec<(u16, u16)> = (0..10).map(|n| (u16::from(n > 0), 10 + n)).collect();
    let connections: Vec<(u16, u8)> = (0..10).map(|n| (n, 0)).collect();
    let first = |isolation: &str| {
        let params = json!({"isolation": isolation});
        f64::from(shares(&params, &hosts, &connections, 20_000)[&(0, 0)]) / 20_000.0
    };
    // A turn more or less, and the random rounding of quanta.
    for (isolation, share) in [
        ("triple", 0.5),
        ("source", 0.5),
        ("destination", 0.1),
        ("flows", 0.1),
    ] {
        let got = first(isolation);
        assert!((got - share).abs() < 0.01, "{isolation}: {got}");
    }
    // To the same host all are its connections, and triple isolation is that of the busier end.
    let hosts: Vec<(u16, u16)> = (0..10).map(|n| (u16::from(n > 0), 10)).collect();
    let got = shares(&json!({}), &hosts, &connections, 20_000)[&(0, 0)];
    assert!(got.abs_diff(2_000) < 200, "{got}");
    let got = shares(
        &json!({"isolation": "source"}),
        &hosts,
        &connections,
        20_000,
    )[&(0, 0)];
    assert!(got.abs_diff(10_000) < 200, "{got}");
}

#[test]
fn classes_share_by_their_weights() {
    let share = |classes: &str, dscps: &[u8]| {
        let connections: Vec<(u16, u8)> = dscps.iter().map(|&dscp| (0, dscp)).collect();
        let got = shares(
            &json!({"classes": classes}),
            &[(0, 1)],
            &connections,
            42_000,
        );
        dscps
            .iter()
            .map(|&dscp| got[&(0, dscp)])
            .collect::<Vec<_>>()
    };
    let near = |got: &[u32], weights: &[u32]| {
        let all: u32 = weights.iter().sum();
        for (got, weight) in got.iter().zip(weights) {
            // A packet of each class may be ahead.
            assert!(got.abs_diff(42_000 * weight / all) <= 4, "{got} {weight}");
        }
    };
    near(&share("diffserv3", &[0, 8, 46]), &[1024, 64, 256]);
    near(&share("diffserv4", &[0, 1, 34, 48]), &[1024, 64, 512, 256]);
    near(&share("besteffort", &[0, 8, 46]), &[1, 1, 1]);
    // AF4x is best effort if it has no class.
    near(&share("diffserv3", &[0, 34]), &[1, 1]);
}

/// 1500 bytes every 0.8 ms, each of which takes 1 ms to serve, for `ms`.
fn overload(ms: u64, ecn: Ecn) -> Vec<(u64, TestPacket)> {
    let one = |uid: u64| TestPacket {
        ecn,
        ..packet_of(1, uid)
    };
    (1..=ms * 5 / 4)
        .map(|uid| ((uid - 1) * 800_000, one(uid)))
        .collect()
}

#[test]
fn cobalt_signals_at_the_times_of_its_law() {
    // The first packet that has waited more than 5 ms leaves 26 ms after the start: the n-th, from 0, waits n * 0.2 ms.
    // After that 100 ms, 100 / sqrt(2) more, 100 / sqrt(3) more, and the next packet.
    let log = play(
        &mut real("cake", &json!({})),
        &overload(2_000, Ecn::NotEct),
        12_000_000,
    );
    let drops = drop_times(&log, "cobalt");
    let (mut due, mut expected) = (26.0, Vec::new());
    for count in 1..=12 {
        due += 100.0 / f64::from(count).sqrt();
        expected.push(f64::ceil(due) as u64 * MS);
    }
    assert_eq!(drops[..12], expected);
    let log = play(
        &mut real("cake", &json!({})),
        &overload(2_000, Ecn::Ect0),
        12_000_000,
    );
    let marked: Vec<u64> = with(&log, Fate::LeftMarked);
    assert_eq!(marked[..12], expected);
    assert!(drop_times(&log, "cobalt").is_empty());
}

/// Times at which packets had this fate.
fn with(log: &[Event], fate: Fate) -> Vec<u64> {
    let found = log.iter().filter(|event| event.2 == fate);
    found.map(|event| event.0).collect()
}

#[test]
fn the_count_falls_as_it_rose() {
    let mut script = overload(1_000, Ecn::NotEct);
    let last = script.len() as u64;
    let after = |wait: u64, script: &[(u64, TestPacket)]| {
        let mut all = script.to_vec();
        let from = 1_100 * MS + wait;
        let again = overload(1_000, Ecn::NotEct).into_iter();
        all.extend(again.map(|(at, packet)| {
            (
                at + from,
                TestPacket {
                    uid: packet.uid + last,
                    ..packet
                },
            )
        }));
        let log = play(&mut real("cake", &json!({})), &all, 12_000_000);
        let drops = drop_times(&log, "cobalt");
        let first = drops.iter().position(|&at| at > from).unwrap();
        (drops[first] - from) / MS
    };
    // Soon after, the count is still high and the first signal comes sooner; after 10 s it has restarted.
    assert!(after(0, &script) < 100, "{}", after(0, &script));
    assert_eq!(after(10_000 * MS, &script), 126);
    script.clear();
    assert_eq!(after(0, &script), 126);
}

#[test]
fn overflow_takes_the_oldest_of_the_longest_and_wakes_blue() {
    let mut queue = real("cake", &json!({"memory": 15_000}));
    let mut log = Vec::new();
    for uid in 1..=10 {
        queue.arrive(0, packet_of(if uid < 8 { 1 } else { 2 }, uid), &mut log);
    }
    queue.arrive(1, packet_of(2, 11), &mut log);
    assert_eq!(log, [(1, 1, Fate::Dropped("queue_full"))]);
    // Senders that ignore all signals: random drops take over from marks. With an excess of 20 %, overflows raise the
    // probability until it drops about as much as COBALT's schedule leaves.
    let log = play(
        &mut real("cake", &json!({"memory": 60_000})),
        &overload(20_000, Ecn::Ect0),
        12_000_000,
    );
    let blue = drop_times(&log, "blue").len();
    assert!(blue > 1_000, "{blue}");
}

/// A network passes the hosts at the ends of its routes to its elements.
#[test]
fn hosts_are_those_of_the_routes_of_a_network() {
    let link = |from: &str, to: &str, elements: Value| json!({"name": format!("{from}-{to}"), "from": from, "to": to, "elements": elements});
    let bottleneck = json!([{"name": "x", "kind": "bottleneck", "rate": {"kind": "constant", "rate": 120_000_000},
                             "queue": {"kind": "cake"}}]);
    let mut links = vec![
        link("a", "r", json!([])),
        link("b", "r", json!([])),
        link("r", "s", bottleneck),
    ];
    let ends = [("a", "c"), ("b", "d"), ("b", "e"), ("b", "f")];
    links.extend(ends.map(|(_, to)| link("s", to, json!([]))));
    let route = |(from, to): (&str, &str)| {
        let way = [format!("{from}-r"), "r-s".to_owned(), format!("s-{to}")];
        json!({"from": from, "to": to, "links": way})
    };
    let hosts = ["a", "b", "c", "d", "e", "f"].map(|name| json!({ "name": name }));
    let network = json!({"kind": "graph", "hosts": hosts, "routers": ["r", "s"], "links": links,
                         "routes": ends.map(route)});
    let plan = Plan {
        network: &network,
        timeline: &Value::Null,
        flows: &[],
        seed: 1,
        files: &Files::default(),
    };
    let mut network: Network<TestPacket> = Network::new(&plan).unwrap();
    let mut outcomes = Outcomes::new();
    for uid in 0..400 {
        let route = (uid % 4) as u16;
        let packet = TestPacket {
            route,
            ..packet_of(u32::from(route) + 1, uid)
        };
        network.push(Time::ZERO, packet, &mut outcomes);
    }
    // Packets take 0.1 ms each.
    network.advance(Time::from_ns(10 * MS), &mut outcomes);
    let mut left = [0; 4];
    while let Some((_, packet)) = network.pop() {
        left[usize::from(packet.route)] += 1;
    }
    assert_eq!(left.iter().sum::<u32>(), 100);
    // Three turns of a third are rounded at random.
    assert!(left[0].abs_diff(50) <= 4, "{left:?}");
}
