//! Paths and networks: exact departure times, drops, order, counters, late drivers.

use narrows_net::testing::TestPacket;
use narrows_net::{Direction, Files, FlowSetup, Network, NetworkError, Outcomes, Plan};
use narrows_units::{Span, Stream, Time};
use serde_json::{Value, json};

fn packet(uid: u64, size: u32) -> TestPacket {
    TestPacket {
        uid,
        size,
        flow: 1,
        ..TestPacket::default()
    }
}

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn network(forward: &Value, flows: &[(u16, u64)]) -> Network<TestPacket> {
    let flows: Vec<FlowSetup> = flows
        .iter()
        .map(|&(flow, extra)| FlowSetup {
            flow,
            extra_rtt: Span::from_ns(extra),
        })
        .collect();
    let json = json!({"kind": "dumbbell", "forward": forward, "backward": []});
    build(&json, &Value::Null, &flows).unwrap()
}

fn build(
    network: &Value,
    timeline: &Value,
    flows: &[FlowSetup],
) -> Result<Network<TestPacket>, NetworkError> {
    let files = &Files::default();
    Network::new(&Plan {
        network,
        timeline,
        flows,
        seed: 1,
        files,
    })
}

fn bottleneck(rate: u64, queue: &Value) -> Value {
    json!({"kind": "bottleneck", "rate": {"kind": "constant", "rate": rate}, "queue": queue})
}

/// Pushes `(time, packet)` pairs and returns departures as `(time, uid)`, and drops.
fn play(
    network: &mut Network<TestPacket>,
    script: &[(Time, TestPacket)],
) -> (Vec<(Time, u64)>, Vec<u64>) {
    let path = network;
    let mut outcomes = Outcomes::new();
    for (at, packet) in script {
        path.push(*at, *packet, &mut outcomes);
    }
    path.advance(Time::from_ns(u64::MAX - 1), &mut outcomes);
    let left = std::iter::from_fn(|| path.pop())
        .map(|(at, packet)| (at, packet.uid))
        .collect();
    (
        left,
        outcomes.drops.iter().map(|drop| drop.packet.uid).collect(),
    )
}

#[test]
fn a_bottleneck_and_a_delay_give_exact_times() {
    // 12 Mbit/s: 1500 bytes take 1 ms.
    let path = json!([bottleneck(12_000_000, &json!({"kind": "unlimited"})), {"kind": "delay", "delay": 20_000_000}]);
    let mut network = network(&path, &[]);
    let script = [
        (us(0), packet(1, 1500)),
        (us(0), packet(2, 1500)),
        (us(5_000), packet(3, 750)),
    ];
    let (left, drops) = play(&mut network, &script);
    assert_eq!(left, [(us(21_000), 1), (us(22_000), 2), (us(25_500), 3)]);
    assert!(drops.is_empty());
}

#[test]
fn the_packet_in_service_is_not_in_the_queue() {
    let path = json!([bottleneck(
        12_000_000,
        &json!({"kind": "droptail", "bytes": 3000})
    )]);
    let mut network = network(&path, &[]);
    let script: Vec<_> = (1..=4).map(|uid| (us(0), packet(uid, 1500))).collect();
    let (left, drops) = play(&mut network, &script);
    assert_eq!(left.iter().map(|x| x.1).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(drops, [4]);
}

#[test]
fn a_departure_makes_room_for_an_arrival_at_the_same_instant() {
    let path = json!([bottleneck(
        12_000_000,
        &json!({"kind": "droptail", "packets": 1})
    )]);
    let mut network = network(&path, &[]);
    let script = [
        (us(0), packet(1, 1500)),
        (us(0), packet(2, 1500)),
        (us(999), packet(3, 1500)),
        (us(1_000), packet(4, 1500)),
    ];
    let (left, drops) = play(&mut network, &script);
    assert_eq!(drops, [3]);
    assert_eq!(left, [(us(1_000), 1), (us(2_000), 2), (us(3_000), 4)]);
}

#[test]
fn limits_in_bytes_and_packets_both_hold() {
    let path = json!([bottleneck(
        12_000_000,
        &json!({"kind": "droptail", "bytes": 2000, "packets": 3})
    )]);
    let mut network = network(&path, &[]);
    let sizes = [1500, 500, 500, 500, 500, 1500];
    let script: Vec<_> = sizes
        .iter()
        .zip(1..)
        .map(|(size, uid)| (us(0), packet(uid, *size)))
        .collect();
    let (_, drops) = play(&mut network, &script);
    // 1 is in service; 2, 3 and 4 fill three places with 1500 bytes; 5 finds no room.
    assert_eq!(drops, [5, 6]);
}

#[test]
fn propagating_packets_are_not_queued() {
    let path = json!([
        {"kind": "delay", "delay": 100_000_000},
        bottleneck(12_000_000, &json!({"kind": "droptail", "packets": 1})),
    ]);
    let mut network = network(&path, &[]);
    let script: Vec<_> = (0..50).map(|i| (us(i * 1_000), packet(i, 1500))).collect();
    let (left, drops) = play(&mut network, &script);
    assert_eq!((left.len(), drops.len()), (50, 0));
}

#[test]
fn extra_round_trip_time_is_split_and_reorders_only_between_flows() {
    let flows = [(1, 0), (2, 10_000_001)];
    let json = json!({"kind": "dumbbell", "forward": [], "backward": []});
    let setups: Vec<FlowSetup> = flows
        .iter()
        .map(|&(flow, ns)| FlowSetup {
            flow,
            extra_rtt: Span::from_ns(ns),
        })
        .collect();
    for direction in Direction::BOTH {
        let path = &mut build(&json, &Value::Null, &setups).unwrap();
        let mut outcomes = Outcomes::new();
        let route = direction as u16;
        let (first, second) = (packet(1, 100), packet(2, 100));
        path.push(
            us(0),
            TestPacket {
                flow: 2,
                route,
                ..second
            },
            &mut outcomes,
        );
        path.push(us(1), TestPacket { route, ..first }, &mut outcomes);
        path.advance(us(100_000), &mut outcomes);
        assert_eq!(path.pop().map(|(at, p)| (at, p.uid)), Some((us(1), 1)));
        let expected = if direction == Direction::Forward {
            5_000_000
        } else {
            5_000_001
        };
        assert_eq!(
            path.pop().map(|(at, p)| (at, p.uid)),
            Some((Time::from_ns(expected), 2))
        );
        assert_eq!(path.next_wakeup(), Time::FAR);
    }
}

#[test]
fn random_loss_has_its_ratio_and_its_own_stream() {
    let lossy = |name: &str| {
        let path = json!([{"kind": "loss", "ratio": 0.1, "name": name}]);
        let mut network = network(&path, &[]);
        let script: Vec<_> = (0..100_000).map(|i| (us(i), packet(i, 100))).collect();
        play(&mut network, &script).1
    };
    let drops = lossy("forward.0");
    // Five standard deviations of a binomial with n = 100 000, p = 0.1.
    assert!(
        (drops.len() as f64 - 10_000.0).abs() < 5.0 * 94.9,
        "{}",
        drops.len()
    );
    assert_eq!(drops, lossy("forward.0"));
    assert_ne!(drops, lossy("forward.1"));
}

/// A driver that is late by random amounts has the same model times as one that is never late.
#[test]
fn lateness_of_the_driver_does_not_enter_the_model() {
    let path = json!([
        bottleneck(10_000_000, &json!({"kind": "droptail", "bytes": 15_000})),
        {"kind": "loss", "ratio": 0.05},
        {"kind": "delay", "delay": 3_000_000},
    ]);
    let mut stream = Stream::new(9, "script");
    let mut at = Time::ZERO;
    let script: Vec<_> = (0..5_000)
        .map(|uid| {
            at += Span::from_us(stream.below(2_000));
            (at, packet(uid, [52, 700, 1500][stream.below(3) as usize]))
        })
        .collect();
    let punctual = play(&mut network(&path, &[]), &script);

    let mut late = network(&path, &[]);
    let path = &mut late;
    let mut outcomes = Outcomes::new();
    let mut left = Vec::new();
    let mut next = 0;
    let mut now = Time::ZERO;
    while next < script.len() || path.next_wakeup() != Time::FAR {
        // Wakes up late, finds several arrivals with their stamps, then releases packets that are
        // due.
        now += Span::from_us(stream.below(5_000));
        while next < script.len() && script[next].0 <= now {
            path.push(script[next].0, script[next].1, &mut outcomes);
            next += 1;
        }
        path.advance(now, &mut outcomes);
        left.extend(std::iter::from_fn(|| path.pop()).map(|(at, packet)| (at, packet.uid)));
    }
    let drops: Vec<u64> = outcomes.drops.iter().map(|drop| drop.packet.uid).collect();
    assert_eq!((left, drops), punctual);
}

#[test]
fn counters_balance() {
    let path = json!([
        bottleneck(10_000_000, &json!({"kind": "droptail", "packets": 5})),
        {"kind": "loss", "ratio": 0.3},
        {"kind": "delay", "delay": 50_000_000},
    ]);
    let mut network = network(&path, &[]);
    let path = &mut network;
    let mut outcomes = Outcomes::new();
    for uid in 0..1_000 {
        path.push(us(uid * 700), packet(uid, 1000), &mut outcomes);
    }
    for stage in path.stages() {
        let (counters, held) = (stage.counters, stage.element.held());
        assert_eq!(
            counters.in_packets,
            counters.out_packets + counters.dropped_packets + u64::from(held.packets)
        );
        assert_eq!(
            counters.in_bytes,
            counters.out_bytes + counters.dropped_bytes + held.bytes
        );
        assert!(counters.dropped_packets > 0 || stage.index == 2);
    }
    let mut held = 0;
    path.visit_held(&mut |_, _| held += 1);
    assert!(held > 0);
}

#[test]
fn descriptions_are_refused_with_the_place() {
    let refuse = |forward: Value| {
        let json = json!({"forward": forward, "backward": []});
        build(&json, &Value::Null, &[]).err().unwrap().to_string()
    };
    assert!(
        refuse(json!([{"kind": "dealy"}]))
            .starts_with("forward.0: unknown link element 'dealy'; known: delay, delaysteps,")
    );
    assert!(refuse(json!([{"kind": "delay"}])).contains("parameter 'delay' is missing"));
    assert!(refuse(json!([{"kind": "bottleneck"}])).contains("'rate' must be an object"));
    assert!(refuse(json!([7])).contains("an element must be an object"));
    let json = json!({"kind": "star"});
    let error = build(&json, &Value::Null, &[]).err().unwrap().to_string();
    assert_eq!(
        error,
        "network.kind: 'star' is not known; known: dumbbell, graph"
    );
}

/// A chain of two links with a bottleneck each, and the return path.
fn chain() -> Value {
    let slow = |rate: u64| bottleneck(rate, &json!({"kind": "unlimited"}));
    json!({"kind": "graph", "hosts": [{"name": "a"}, {"name": "b"}], "routers": ["r"],
        "links": [
            {"name": "a-r", "from": "a", "to": "r", "elements": [slow(12_000_000)]},
            {"name": "r-b", "from": "r", "to": "b",
             "elements": [slow(6_000_000), {"kind": "delay", "delay": 1_000_000}]},
            {"name": "b-a", "from": "b", "to": "a", "elements": [{"kind": "delay", "delay": 5}]},
        ],
        "routes": [{"from": "a", "to": "b", "links": ["a-r", "r-b"]},
                   {"from": "b", "to": "a", "links": ["b-a"]}]})
}

#[test]
fn packets_follow_their_route_over_all_links() {
    let mut network = build(&chain(), &Value::Null, &[]).unwrap();
    assert_eq!(
        (network.route(0, 1), network.route(1, 0)),
        (Some(0), Some(1))
    );
    let names: Vec<_> = network
        .stages()
        .map(|stage| stage.name.to_owned())
        .collect();
    assert_eq!(names, ["a-r.0", "r-b.0", "r-b.1", "b-a.0"]);
    let back = TestPacket {
        route: 1,
        ..packet(3, 40)
    };
    let script = [
        (us(0), packet(1, 1500)),
        (us(0), packet(2, 1500)),
        (us(0), back),
    ];
    let (left, _) = play(&mut network, &script);
    // 1 ms on the first link, 2 ms on the second, where the second packet waits for the first.
    assert_eq!(
        left,
        [(Time::from_ns(5), 3), (us(4_000), 1), (us(6_000), 2)]
    );
}

#[test]
fn a_timeline_changes_a_packet_in_service() {
    let timeline = json!([
        {"at_ns": 500_000, "element": "a-r.0", "set": {"rate": {"kind": "constant", "rate": 1_500_000}}},
        {"at_ns": 6_000_000, "element": "r-b.1", "set": {"delay": 0}},
    ]);
    let mut network = build(&chain(), &timeline, &[]).unwrap();
    let (left, _) = play(&mut network, &[(us(0), packet(1, 1500))]);
    // Half of it is served in 0.5 ms, the other 750 bytes take 4 ms; then 2 ms and no delay.
    assert_eq!(left, [(us(6_500), 1)]);
}

#[test]
fn a_timeline_changes_a_packet_in_service_more_than_once() {
    let rate = |at: u64, rate: u64| json!({"at_ns": at, "element": "a-r.0", "set": {"rate": {"kind": "constant", "rate": rate}}});
    let timeline = json!([rate(500_000, 1_500_000), rate(2_500_000, 3_000_000)]);
    let mut network = build(&chain(), &timeline, &[]).unwrap();
    let (left, _) = play(&mut network, &[(us(0), packet(1, 1500))]);
    // 750 bytes in 0.5 ms, 375 in 2 ms, the other 375 in 1 ms; then 2 ms and 1 ms of delay.
    assert_eq!(left, [(us(6_500), 1)]);
}

#[test]
fn a_network_goes_on_with_the_timeline_of_another_as_if_it_had_been_planned() {
    let rate = |at: u64, rate: u64| json!({"at_ns": at, "element": "a-r.0", "set": {"rate": {"kind": "constant", "rate": rate}}});
    let before = json!([rate(500_000, 1_500_000), rate(4_000_000, 12_000_000)]);
    let after = json!([rate(500_000, 1_500_000), rate(2_500_000, 3_000_000)]);
    let mut network = build(&chain(), &before, &[]).unwrap();
    let mut outcomes = Outcomes::new();
    network.push(us(0), packet(1, 1500), &mut outcomes);
    network.advance(us(2_000), &mut outcomes);
    let other = build(&chain(), &after, &[]).unwrap();
    network.continue_with(other.into_changes(us(2_100)));
    let (left, _) = play(&mut network, &[]);
    // By hand, as above: the second change of the old timeline, at 4 ms, is gone.
    assert_eq!(left, [(us(6_500), 1)]);
}

#[test]
fn the_fixed_delay_of_a_route_is_that_of_its_links_as_they_are_now() {
    let timeline = json!([{"at_ns": 6_000_000, "element": "r-b.1", "set": {"delay": 0}}]);
    let mut network = build(&chain(), &timeline, &[]).unwrap();
    let route = network.route(0, 1).unwrap();
    assert_eq!(network.route_propagation(route), Span::from_us(1_000));
    network.advance(us(6_000), &mut Outcomes::new());
    assert_eq!(network.route_propagation(route), Span::ZERO);
}

#[test]
fn propagation_is_that_of_the_fastest_route_as_it_is_now() {
    let delay = |name: &str, us: u64| json!({"name": name, "kind": "delay", "delay": us * 1_000});
    let jitter = json!({"kind": "jitter", "law": "uniform", "spread": 9_000});
    let json = json!({"kind": "dumbbell",
        "forward": [bottleneck(1_000_000, &json!({"kind": "droptail", "bytes": 9_000})),
                    delay("one", 700), delay("two", 200)],
        "backward": [delay("back", 5_000), jitter]});
    let timeline = json!([{"at_ns": 2_000_000, "element": "one", "set": {"delay": 50_000}}]);
    let mut network = build(&json, &timeline, &[]).unwrap();
    assert_eq!(network.least_propagation(), Span::from_us(900));
    let each = |network: &Network<_>| Direction::BOTH.map(|d| network.propagation(d));
    assert_eq!(each(&network), [Span::from_us(900), Span::from_us(5_000)]);
    network.advance(us(1_999), &mut Outcomes::new());
    assert_eq!(network.least_propagation(), Span::from_us(900));
    network.advance(us(2_000), &mut Outcomes::new());
    assert_eq!(network.least_propagation(), Span::from_us(250));
    assert_eq!(each(&network), [Span::from_us(250), Span::from_us(5_000)]);
    let nothing = json!({"kind": "dumbbell", "forward": [], "backward": [delay("back", 5_000)]});
    let network = build(&nothing, &Value::Null, &[]).unwrap();
    assert_eq!(network.least_propagation(), Span::ZERO);
}

#[test]
fn graphs_and_timelines_are_refused_with_the_place() {
    let refuse = |change: &dyn Fn(&mut Value), timeline: Value| {
        let mut json = chain();
        change(&mut json);
        build(&json, &timeline, &[]).err().unwrap().to_string()
    };
    let routes = |json: &mut Value| json["routes"][0]["links"] = json!(["r-b"]);
    assert_eq!(
        refuse(&routes, Value::Null),
        "route from a to b: the link 'r-b' does not start at a"
    );
    let short = |json: &mut Value| json["routes"][0]["links"] = json!(["a-r"]);
    assert_eq!(
        refuse(&short, Value::Null),
        "route from a to b: it ends at r"
    );
    let same = |json: &mut Value| json["routers"][0] = json!("a");
    assert_eq!(refuse(&same, Value::Null), "a: two nodes have this name");
    let nobody = json!([{"at_ns": 1, "element": "x", "set": {}}]);
    assert_eq!(
        refuse(&|_| (), nobody),
        "timeline: the element 'x' does not exist"
    );
    let wrong = json!([{"at_ns": 1, "element": "r-b.1", "set": {"dely": 1}}]);
    assert!(refuse(&|_| (), wrong).contains("unknown parameter 'dely'"));
}
