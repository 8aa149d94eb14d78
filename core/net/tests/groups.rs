//! The independent parts of a network, and a network restricted to one of them.

use narrows_net::testing::TestPacket;
use narrows_net::{Files, Network, Outcomes, Plan};
use narrows_units::{Span, Time};
use serde_json::{Value, json};

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn build(network: &Value, timeline: &Value) -> Network<TestPacket> {
    Network::new(&Plan {
        network,
        timeline,
        flows: &[],
        seed: 1,
        files: &Files::default(),
    })
    .unwrap()
}

#[test]
fn what_hosts_of_different_groups_send_meets_nowhere() {
    let link = |name: &str, from: &str, to: &str, us: u64| {
        let delay = json!({"name": name, "kind": "delay", "delay": us * 1_000});
        json!({"name": name, "from": from, "to": to, "elements": [delay]})
    };
    let route =
        |from: &str, to: &str, links: &[&str]| json!({"from": from, "to": to, "links": links});
    let names = ["a", "b", "c", "d", "idle"].map(|name| json!({"name": name}));
    // a and b send over the same link to c, c answers both; d sends to c over a separate link.
    let graph = json!({"kind": "graph", "hosts": names, "routers": ["r"],
        "links": [link("a-r", "a", "r", 1), link("b-r", "b", "r", 2), link("r-c", "r", "c", 3),
                  link("c-r", "c", "r", 4), link("r-a", "r", "a", 5), link("d-c", "d", "c", 6),
                  link("c-d", "c", "d", 7)],
        "routes": [route("a", "c", &["a-r", "r-c"]), route("b", "c", &["b-r", "r-c"]),
                   route("c", "a", &["c-r", "r-a"]), route("d", "c", &["d-c"])]});
    let change = |at: u64, name: &str| json!({"at_ns": at, "element": name, "set": {"delay": 500}});
    let timeline = json!([change(1_000, "d-c"), change(2_000, "r-c")]);
    let mut network = build(&graph, &timeline);
    assert_eq!(network.groups(), [0, 0, 1, 2, 3]);
    assert_eq!(network.least_propagation(), us(4).since(Time::ZERO));
    network.keep(|host| host == 3);
    assert_eq!(network.least_propagation(), us(6).since(Time::ZERO));
    let kept: Vec<bool> = (0..7).map(|link| network.keeps(link)).collect();
    assert_eq!(kept, [false, false, false, false, false, true, false]);
    assert_eq!(network.next_wakeup(), us(1));
    network.advance(us(1), &mut Outcomes::new());
    assert_eq!(
        network.next_wakeup(),
        Time::FAR,
        "other links do not change here"
    );
    assert_eq!(network.least_propagation(), Span::from_ns(500));

    let dumbbell = json!({"kind": "dumbbell", "forward": [], "backward": []});
    let network = build(&dumbbell, &Value::Null);
    assert_eq!(network.groups(), [0, 1]);
}
