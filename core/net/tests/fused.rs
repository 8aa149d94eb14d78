//! A network with fused elements treats every packet like the same network without fusing.

use narrows_net::testing::TestPacket;
use narrows_net::testing::play::{Played, play};
use narrows_net::{Backlog, ElementCounters, Files, Network, NetworkError, Plan};
use narrows_units::{Stream, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// Elements whose times are whole milliseconds for the packets of [`script`], so that many events coincide.
fn elements(dice: &mut Stream) -> Value {
    let count = 1 + dice.below(4);
    let element = |dice: &mut Stream| match dice.below(8) {
        0..=1 => json!({"kind": "delay", "delay": dice.below(4) * MS}),
        2 => {
            json!({"kind": "delayticks", "delay": dice.below(4) * MS, "tick": (1 + dice.below(4)) * MS,
                    "phase": dice.below(3) * MS})
        }
        3 => json!({"kind": "bottleneck", "rate": {"kind": "constant", "rate": 10_000_000},
                    "queue": {"kind": "unlimited"}}),
        4 => json!({"kind": "duplicate", "ratio": 0.1}),
        5 => json!({"kind": "bottleneck", "rate": {"kind": "constant", "rate": 7_654_321},
                    "queue": {"kind": "codel", "packets": 9}, "overhead": 38}),
        _ => json!({"kind": "bottleneck", "rate": {"kind": "constant", "rate": 10_000_000},
                    "queue": {"kind": "droptail", "bytes": 2500 + dice.below(9000), "packets": 1 + dice.below(6)},
                    "atm": dice.below(4) == 0}),
    };
    (0..count).map(|_| element(dice)).collect()
}

/// Routes that share links, one of them in an order in which a link acts before one that it passes packets to.
fn graph(dice: &mut Stream) -> Value {
    let hosts = ["a", "b", "c", "d"].map(|name| json!({"name": name}));
    let ends = [
        ("a", "p"),
        ("p", "q"),
        ("q", "b"),
        ("c", "p"),
        ("q", "s"),
        ("s", "t"),
        ("t", "d"),
    ];
    let links: Vec<Value> = ends
        .iter()
        .map(|(from, to)| {
            let elements = elements(dice);
            json!({"name": format!("{from}-{to}"), "from": from, "to": to, "elements": elements})
        })
        .collect();
    json!({"kind": "graph", "hosts": hosts, "routers": ["p", "q", "s", "t"], "links": links, "routes": [
        {"from": "a", "to": "b", "links": ["a-p", "p-q", "q-b"]},
        {"from": "c", "to": "d", "links": ["c-p", "p-q", "q-s", "s-t", "t-d"]}]})
}

fn script(dice: &mut Stream) -> Vec<(Time, TestPacket)> {
    let mut at = 0;
    let packet = |uid| {
        at += dice.below(2) * dice.below(4) * MS;
        let packet = TestPacket {
            uid,
            size: 1250 >> dice.below(2),
            flow: 1,
            route: dice.below(2) as u16,
            ..TestPacket::default()
        };
        (Time::from_ns(at), packet)
    };
    (0..300).map(packet).collect()
}

/// Events until `end`, and the visible state of each element then.
type Seen = (Played, Vec<(Backlog, Backlog, ElementCounters)>);

fn seen(mut network: Network<TestPacket>, script: &[(Time, TestPacket)], end: Time) -> Seen {
    let mut played = play(&mut network, script, None, end);
    played.held.sort_unstable();
    let stages = network.stages();
    let views = stages.map(|stage| (stage.element.queued(), stage.element.held(), stage.counters));
    let views = views.collect();
    (played, views)
}

proptest! {
    #[test]
    fn a_fused_network_is_the_same_network(seed: u64, end in 1u64..400, changes: bool) {
        let mut dice = Stream::new(seed, "fused");
        let network = graph(&mut dice);
        let delay = json!([{"at_ns": 50 * MS, "element": "p-q.0", "set": {"delay": 3 * MS}}]);
        let is_delay = network["links"][1]["elements"][0]["kind"] == "delay";
        let timeline = if changes && is_delay { delay } else { Value::Null };
        let script = script(&mut dice);
        let built = |build: fn(&Plan) -> Result<Network<TestPacket>, NetworkError>| {
            let files = &Files::default();
            build(&Plan { network: &network, timeline: &timeline, flows: &[], seed, files }).unwrap()
        };
        let end = Time::from_ns(end * MS);
        prop_assert_eq!(seen(built(Network::fused), &script, end), seen(built(Network::new), &script, end));
    }
}
