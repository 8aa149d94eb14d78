//! Every link element, queue and rate in a whole simulation: two flows, a change of the element while they run, and a
//! record that passes the verifier.

use narrows_cell::Cell;
use narrows_net::testing::{Case, cases, example_files};
use serde_json::json;

fn cell(case: &Case) -> Cell {
    let flow = |flow: u16, scheme: &str| {
        json!({"flow": flow, "scheme": scheme, "params": {}, "start_ns": 0,
               "stop_ns": 2_000_000_000_u64, "direction": "forward", "extra_rtt_ns": 0})
    };
    let text = json!({
        "format": "narrows/cell/1", "id": "test-r1", "scheme": "cubic+reno", "run": 1,
        "where": "simulate", "seed": 3, "duration_ns": 2_000_000_000_u64, "record": "packets",
        "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell", "forward": case.forward,
                    "backward": [{"name": "backward.0", "kind": "delay", "delay": 10_000_000}]},
        "timeline": case.timeline,
        "flows": [flow(1, "cubic"), flow(2, "reno")], "transport": {},
    });
    Cell::parse_with(&text.to_string(), |_| Ok(example_files()))
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

#[test]
fn records_of_every_element_are_believed() {
    let folder = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        let out = folder.path().join(format!("cell-{index}"));
        let run = narrows_sim::run(&cell(case), &out, &mut |_| true)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert!(!run.checks.is_empty());
        for check in run.checks.iter().filter(|check| !check.ok) {
            faults.push(format!("{}: {}: {}", case.name, check.name, check.detail));
        }
        std::fs::remove_dir_all(&out).unwrap();
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
