//! Sides without a tunnel.

use crate::common::tunnel::AGENT;
use crate::common::{Folder, MS, failure, my_turn};
use crate::side::{Side, cell, make_record};
use narrows_cell::open_record;
use narrows_record::metrics;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn without_a_tunnel_flows_run_between_the_addresses_of_machines() {
    let _turn = my_turn();
    let folder = Folder::new("side-bare");
    let mut cell = cell(&["<linux:reno", "cubic"], 800);
    for (flow, bytes) in [(0, 3_000_000), (1, 200_000)] {
        cell["flows"][flow]["traffic"] = json!({"kind": "transfer", "bytes": bytes});
    }
    let addresses = ["127.0.0.1", "127.0.0.2"];
    let start = |host: u16, here: &str, there: &str| {
        let agent = [AGENT.to_owned()];
        let bare = json!({"tunnel": null, "addresses": {"here": here, "there": there}});
        Side::start_with(&agent, &folder, host, &cell, &bare)
    };
    let mut foreign = start(0, "192.0.2.1", addresses[1]);
    let message = failure(&foreign.output(), 4, "unavailable");
    assert!(message.contains("192.0.2.1 is not an address"), "{message}");
    let mut zero = start(0, addresses[0], addresses[1]);
    let mut one = start(1, addresses[1], addresses[0]);
    zero.until("prepared");
    one.until("prepared");
    assert_eq!(one.until("ready")["inside"], addresses[1]);
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = now.as_nanos() as u64 + 400 * MS;
    for side in [&mut zero, &mut one] {
        side.order(&json!({"order": "start", "real_ns": at, "error_ns": 3 * MS}));
    }
    for side in [&mut zero, &mut one] {
        side.end_well();
        let document = side.json("side.json");
        let started = document["start_real_ns"].as_u64().unwrap();
        // Both readings of the clock are exact to a microsecond or so.
        assert!(started.abs_diff(at) < 20_000, "{started} {at}");
        assert_eq!(document["tunnel"], false);
        assert!(!side.folder.join("tunnel.json").exists());
        for end in document["ends"].as_array().unwrap() {
            assert_eq!(end["failure"], Value::Null, "{end}");
            assert_eq!(end["outcome"]["problem"], Value::Null, "{end}");
        }
    }
    // The server of each transfer has seen its last byte.
    for (side, flow) in [(&zero, 0), (&one, 1)] {
        let end = side.json("side.json")["ends"][flow].clone();
        assert_eq!(end["role"], "receiver");
        assert_eq!(
            end["outcome"]["ended"].as_array().unwrap().len(),
            1,
            "{end}"
        );
    }
    the_ends_are_recorded(&folder, &cell, &zero.folder, &one.folder);
    // A time of the other clock is not known here.
    std::fs::remove_dir_all(&zero.folder).unwrap();
    let mut alone = start(0, addresses[0], addresses[1]);
    alone.until("prepared");
    alone.order(&json!({"order": "start", "at_ns": at}));
    let message = failure(&alone.output(), 3, "input");
    assert!(message.contains("which only a tunnel relates"), "{message}");
}

/// The record of two sides without a tunnel has the reports of their ends, and no packets.
fn the_ends_are_recorded(folder: &Folder, cell: &Value, zero: &Path, one: &Path) {
    let output = make_record(folder, cell, zero, one);
    assert!(output.status.success(), "{output:?}");
    let record = open_record(&folder.path().join("record")).unwrap();
    let run = &record.run;
    let failed: Vec<_> = run.checks.iter().filter(|check| !check.ok).collect();
    assert!(run.has_only_ends() && failed.is_empty(), "{failed:#?}");
    for check in run
        .checks
        .iter()
        .filter(|it| ["tunnel", "endpoints"].contains(&&*it.name))
    {
        assert!(check.skipped, "{check:?}");
    }
    assert!(
        run.reasons.iter().all(|reason| reason.code != "silent"),
        "{:#?}",
        run.reasons
    );
    assert!(run.reasons.iter().any(|it| it.code == "ends_only"));
    assert_eq!(run.clock.error_ns, 3 * MS);
    let measured = metrics::measure(&record).unwrap();
    for (flow, bytes) in [(0, 3_000_000.0), (1, 200_000.0)] {
        let of = |name: &str| measured["flows"][flow]["metrics"][name].as_f64();
        // All of it, within the duration of the flow.
        let seconds = 0.8 - 0.1 * flow as f64;
        let goodput = of("goodput_bps").unwrap();
        assert!(
            (goodput * seconds / 8.0 / bytes - 1.0).abs() < 0.01,
            "{measured:#}"
        );
        for name in [
            "throughput_bps",
            "delay_p95_ns",
            "queueing_delay_p95_ns",
            "loss_ratio",
        ] {
            assert_eq!(of(name), None, "{name}: {measured:#}");
            let row = &measured["flows"][flow]["flow"];
            let why = measured["absent"][row.as_str().unwrap()][name].as_str();
            assert!(why.unwrap().contains("there was no tunnel"), "{why:?}");
        }
    }
}
