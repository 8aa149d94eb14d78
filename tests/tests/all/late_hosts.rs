//! Simulated hosts with scheduling delays: the effects of noise on a world, and effects that it must not have.

use narrows_record::{RunDocument, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// 50 Mbit/s and 20 ms: bulk data, requests over short connections, and a real-time scheme.
fn mixed(noise: Option<&str>) -> Value {
    let flow = |number: u16, scheme: &str, traffic: Value| {
        let mut flow = json!({"flow": number, "scheme": scheme, "params": {}, "direction": "forward",
            "start_ns": 200_000_000 * u64::from(number), "stop_ns": 4_500_000_000_u64});
        if !traffic.is_null() {
            flow["traffic"] = traffic;
        }
        flow
    };
    let settings = noise.map_or(json!({}), |noise| json!({"noise": noise}));
    let hosts = ["sender", "receiver"].map(|name| json!({"name": name, "settings": settings}));
    json!({
        "format": "narrows/cell/1", "id": "late-r1", "scheme": "mixed", "run": 1, "where": "simulate",
        "seed": 1, "duration_ns": 5_000_000_000_u64, "record": "packets", "bin_ns": 100_000_000,
        "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell", "hosts": hosts,
            "forward": [
                {"name": "forward.0", "kind": "bottleneck",
                 "rate": {"kind": "constant", "rate": 50_000_000},
                 "queue": {"kind": "droptail", "bytes": 125_000}},
                {"name": "forward.1", "kind": "delay", "delay": 10_000_000}],
            "backward": [{"name": "backward.0", "kind": "delay", "delay": 10_000_000}]},
        "flows": [
            flow(1, "bbr1", Value::Null),
            flow(2, "cubic", json!({"kind": "requests", "response": 60_000, "persistent": false})),
            flow(3, "sprout", Value::Null),
            flow(4, "udp", json!({"kind": "cbr", "rate": 1_000_000})),
        ],
        "transport": {"ack_every": 1},
    })
}

fn run(json: &Value, out: &Path) -> RunDocument {
    narrows_sim::run(&narrows_tests::cell(json), out, &mut |_| true).expect("the cell runs")
}

/// All files of the record but the document, which repeats the cell.
fn tables(json: &Value) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("cell");
    run(json, &out);
    let entries = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().is_file() && entry.file_name() != "run.json");
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    };
    files.map(read).collect()
}

#[test]
fn noise_repeats_itself_and_no_noise_changes_nothing() {
    let noisy = tables(&mixed(Some("linux-vm")));
    assert!(
        noisy == tables(&mixed(Some("linux-vm"))),
        "not the same bytes"
    );
    let quiet = tables(&mixed(None));
    assert!(quiet == tables(&mixed(Some("none"))), "none is not nothing");
    assert!(quiet != noisy, "noise has no effect");
}

#[test]
fn records_of_late_hosts_are_whole() {
    // The verifier counts what endpoints have sent and received against the packets of the record: packets that wait in
    // a socket at the end have arrived.
    for record in ["packets", "bins"] {
        let folder = tempfile::tempdir().unwrap();
        let mut cell = mixed(Some("linux-vm"));
        cell["record"] = record.into();
        let run = run(&cell, &folder.path().join("cell"));
        assert_eq!(
            run.verdict,
            Verdict::Ok,
            "{:?} {:?}",
            run.reasons,
            run.checks
        );
        let received = |flow: usize| run.flows[flow].receiver.received_packets.unwrap();
        assert!((0..4).all(|flow| received(flow) > 100), "{record}");
    }
}

/// Packets that one flow of a scheme received, and acknowledgements that its sender did, at 200 Mbit/s.
fn acknowledged(noise: &str) -> (u64, u64) {
    let mut cell = mixed(Some(noise));
    cell["flows"].as_array_mut().unwrap().truncate(1);
    cell["network"]["forward"][0]["rate"]["rate"] = 200_000_000.into();
    cell["network"]["forward"][0]["queue"]["bytes"] = 500_000.into();
    let folder = tempfile::tempdir().unwrap();
    let run = run(&cell, &folder.path().join("cell"));
    let back = run
        .elements
        .iter()
        .find(|element| element.name == "backward.0");
    (
        run.flows[0].receiver.received_packets.unwrap(),
        back.unwrap().in_packets,
    )
}

#[test]
fn what_is_read_together_is_acknowledged_together() {
    let (packets, acks) = acknowledged("none");
    // The last ones are still in flight when the flow stops.
    assert!(packets.abs_diff(acks) < 10, "{packets} {acks}");
    // A packet comes every 60 us. Half of the reads are later than 53 us and so occasionally find a second one, one in
    // a hundred later than 0.2 ms: the mean of 1 + delay/60 us over the shipped quantiles is about 2.
    let (packets, acks) = acknowledged("linux-vm");
    let together = packets as f64 / acks as f64;
    assert!((1.3..3.0).contains(&together), "{packets} {acks}");
}
