//! Schemes that do what a model says, with the published models: single steps of flows. What flows come to is in
//! `single_flows`.
//!
//! The project ships no models: see `narrows_tests::models` for where they are looked for. The expected numbers come from
//! a packet simulation of the published senders (packets of 1500 bytes, unlimited queue, the delay split evenly, no
//! jitter).

use narrows_cell::Cell;
use narrows_record::read;
use narrows_tests::Dumbbell;
use narrows_tests::models::content;
use narrows_units::Files;
use serde_json::{Value, json};

/// Payload bytes of a full packet.
const PAYLOAD: f64 = 1448.0;

/// The windows of one flow in packets, one after the other, sampled each millisecond.
fn windows(model: Vec<u8>, mbps: f64, rtt_ms: f64, seconds: f64) -> Vec<f64> {
    let mut json: Value = Dumbbell {
        mbps,
        rtt_ms,
        seconds,
        schemes: vec!["indigo"],
        ..Dumbbell::default()
    }
    .json();
    json["network"]["forward"][0]["queue"] = json!({"kind": "unlimited"});
    json["sample_ns"] = json!(1_000_000);
    json["flows"][0]["params"] = json!({"model": {"name": "a.model", "sha256": "a"}});
    let mut files = Files::default();
    files.insert("a", model);
    let cell = Cell::parse_with(&json.to_string(), |_| Ok(files)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("cell");
    narrows_sim::run(&cell, &out, &mut |_| true).unwrap();
    let record = narrows_cell::open_record(&out).unwrap();
    let rows = read::read_states(record.states.unwrap()).unwrap();
    let windows = rows.iter().filter_map(|row| row.cwnd_bytes);
    let mut windows: Vec<f64> = windows.map(|bytes| bytes as f64 / PAYLOAD).collect();
    windows.dedup();
    windows
}

#[test]
fn indigo_finds_its_window_in_steps_of_its_actions() {
    let Some(model) = content("indigo-1-32") else {
        return;
    };
    let found = windows(model, 50.0, 40.0, 2.0);
    println!("{found:?}");
    // 10 is the first; later the two simulations go their ways.
    let wanted = [20.0, 40.0, 80.0, 160.0, 320.0, 160.0];
    assert_eq!(found[1..=wanted.len()], wanted);
}
