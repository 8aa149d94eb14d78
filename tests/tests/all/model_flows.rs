//! Model-based schemes with the published models: single steps of flows. Results of flows are in `single_flows`.
//!
//! The project ships no models: see `narrows_tests::models` for where they are searched. The expected numbers come from
//! a packet simulation of the published senders (packets of 1500 bytes, unlimited queue, the delay split evenly, no
//! jitter).

use narrows_record::read;
use narrows_tests::models::{self, content};
use narrows_tests::{Dumbbell, recorded_with};
use serde_json::{Value, json};

/// Payload bytes of a full packet.
const PAYLOAD: f64 = 1448.0;

/// The windows in packets, one after the other, of a flow that begins at `start_ns` on 50 Mbit/s and 40 ms, sampled
/// each millisecond.
fn windows(model: &[u8], start_ns: u64) -> Vec<f64> {
    let mut json: Value = Dumbbell {
        mbps: 50.0,
        seconds: 2.0,
        schemes: vec!["indigo"],
        ..Dumbbell::default()
    }
    .json();
    json["network"]["forward"][0]["queue"] = json!({"kind": "unlimited"});
    json["sample_ns"] = json!(1_000_000);
    json["flows"][0]["start_ns"] = json!(start_ns);
    json["flows"][0]["params"] = json!({"model": models::reference()});
    let record = recorded_with(&json, models::files(model));
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
    let wanted = [
        20.0, 40.0, 80.0, 160.0, 320.0, 160.0, 320.0, 160.0, 170.0, 180.0, 190.0, 95.0,
    ];
    // The sender's clock has steps of 1 ms, and rounding there decides the seventh action, 320 or 80: both occur for
    // other starts within one step, or round trips different by a tenth of a millisecond.
    let mut same = 0;
    let starts = 10;
    for start in 0..starts {
        let found = windows(&model, 100_000 * start);
        println!("{found:?}");
        // The initial window is 10.
        assert_eq!(found[1..7], wanted[..6]);
        same += u64::from(found[1..=wanted.len()] == wanted);
    }
    assert!(same > 0 && same < starts, "{same} of {starts}");
}
