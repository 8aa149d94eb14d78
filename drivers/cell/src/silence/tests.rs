use super::*;
use narrows_record::{Direction, Versions};
use serde_json::json;

/// A flow of packets of 1500 bytes over these elements, each with its counters: entered, left, dropped.
fn sentence(elements: &[(Value, [u64; 3])], change: impl FnOnce(&mut Value)) -> String {
    let forward: Vec<Value> = elements
        .iter()
        .map(|(element, _)| element.clone())
        .collect();
    let mut cell = json!({
        "scheme": "reno", "duration_ns": 1_000_000_000,
        "network": {"kind": "dumbbell", "forward": forward, "backward": []},
        "flows": [{"flow": 1, "scheme": "reno", "stop_ns": 1_000_000_000}]
    });
    change(&mut cell);
    let mut run = RunDocument::new(cell, "simulate", Versions::default());
    for (place, (element, [entered, left, dropped])) in elements.iter().enumerate() {
        let kind = element["kind"].as_str().unwrap();
        let mut own = ElementCounters::new(&format!("forward.{place}"), kind, Direction::Forward);
        (own.in_packets, own.in_bytes) = (*entered, entered * 1500);
        (own.out_packets, own.dropped_packets) = (*left, *dropped);
        own.held_packets = entered - left - dropped;
        own.capacity_bytes = element["capacity"].as_u64();
        run.elements.push(own);
    }
    Silence::new(&run).sentence("No data of flow 1", 1)
}

#[test]
fn a_silent_flow_has_its_cause() {
    let bottleneck = |rate: Value, room: u64, capacity: u64| {
        json!({"kind": "bottleneck", "rate": rate, "capacity": capacity,
               "queue": {"kind": "droptail", "bytes": room}})
    };
    let constant = |bps: u64| json!({"kind": "constant", "rate": bps});
    let trace = json!({"kind": "trace", "file": "x"});
    let cases = [
        (
            bottleneck(constant(12_000_000), 1000, 0),
            [9, 0, 9],
            "the queue of forward.0 has room for 1 kB, and its packets have 1.5 kB",
        ),
        (
            bottleneck(constant(8_000), 60_000, 1000),
            [9, 0, 0],
            "forward.0 could carry 1 kB from the start of the flow to the end, and its packets have 1.5 kB",
        ),
        (
            bottleneck(trace, 60_000, 0),
            [9, 0, 2],
            "forward.0 could carry 0 B in the whole run, and its packets have 1.5 kB",
        ),
        (
            json!({"kind": "loss", "ratio": 1.0}),
            [9, 0, 9],
            "forward.0 (loss) dropped all packets that entered it (9)",
        ),
        (
            json!({"kind": "gate", "open": false}),
            [9, 0, 0],
            "all packets that entered forward.0 (gate) were still there at the end (9)",
        ),
        (
            json!({"kind": "outage", "start": 0, "length": 2_000_000_000}),
            [9, 0, 9],
            "the outage forward.0 lasts from 0 s to the end of the run",
        ),
        (
            json!({"kind": "mtu", "bytes": 1400}),
            [9, 0, 9],
            "forward.0 drops packets above 1.4 kB, and its packets have 1.5 kB",
        ),
        (
            json!({"kind": "delay", "delay": 1_500_000_000}),
            [9, 0, 0],
            "the delays on its way are 1.5 s, and the run ended 1 s after its start",
        ),
        (
            json!({"kind": "loss", "ratio": 0.0}),
            [0, 0, 0],
            "its sender sent nothing",
        ),
    ];
    for (element, counters, cause) in cases {
        let found = sentence(&[(element, counters)], |_| {});
        assert_eq!(found, format!("No data of flow 1 arrived: {cause}."));
    }
}

#[test]
fn the_first_obstacle_on_the_way_is_the_cause() {
    let elements = [
        (json!({"kind": "loss", "ratio": 0.5}), [9, 4, 5]),
        (json!({"kind": "gilbert"}), [4, 0, 4]),
        (json!({"kind": "loss", "ratio": 1.0}), [0, 0, 0]),
    ];
    let found = sentence(&elements, |_| {});
    assert!(found.contains("forward.1 (gilbert) dropped all"), "{found}");
}

#[test]
fn an_element_that_other_flows_passed_is_no_cause() {
    let elements = [(json!({"kind": "loss", "ratio": 0.5}), [9, 4, 5])];
    assert_eq!(sentence(&elements, |_| {}), "No data of flow 1 arrived.");
}

#[test]
fn a_late_flow_has_less_time_for_the_delays() {
    let elements = [(json!({"kind": "delay", "delay": 100_000_000}), [9, 0, 0])];
    let found = sentence(&elements, |cell| {
        cell["flows"][0]["start_ns"] = 950_000_000.into();
    });
    assert!(
        found.contains("are 0.1 s, and the run ended 0.05 s after its start"),
        "{found}"
    );
}

#[test]
fn what_a_timeline_changes_is_judged_by_its_counters_alone() {
    let elements = [(json!({"kind": "mtu", "bytes": 1400}), [9, 0, 9])];
    let found = sentence(&elements, |cell| {
        cell["timeline"] = json!([{"at_ns": 1, "element": "forward.0", "set": {"bytes": 1300}}]);
    });
    assert!(found.contains("forward.0 (mtu) dropped all"), "{found}");
}

#[test]
fn a_run_without_a_network_has_no_cause() {
    let run = RunDocument::new(json!({}), "emulate", Versions::default());
    let found = Silence::new(&run).sentence("No packet of flow 1", 1);
    assert_eq!(found, "No packet of flow 1 arrived.");
}
