//! Cells that are measured in memory: the same numbers, verdicts and findings as through a record on disk, for all
//! schemes, networks and kinds of records; limits are kept; memory is released.

use narrows_cell::Cell;
use narrows_sim::{CellFailure, Limits, Summary, summarise};
use narrows_tests::{Dumbbell, cell, measured_on_disk};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: Limits<'static> = Limits {
    memory: u64::MAX,
    stop: &|| false,
};

fn in_memory(cell: &Cell) -> Summary {
    summarise(cell, &FREE).expect("the cell runs")
}

/// Asserts that a cell has the same results both ways, to the last bit.
fn same(json: &Value) {
    let (written, _) = measured_on_disk(json);
    let kept = in_memory(&cell(json));
    assert_eq!(
        kept.measured.to_string(),
        written.json.to_string(),
        "{json}"
    );
    assert_eq!(kept.verdict, written.run.verdict, "{json}");
    assert_eq!(kept.reasons, written.run.reasons, "{json}");
}

/// A path on which packets are lost, reordered and copied, over two bottlenecks.
fn rough(scheme: &str, record: &'static str) -> Value {
    let dumbbell = Dumbbell {
        mbps: 6.0,
        seconds: 3.0,
        record,
        ..Dumbbell::default()
    };
    let mut json = dumbbell.json();
    json["flows"][0]["scheme"] = scheme.into();
    json["flows"][0]["params"] = narrows_tests::needed(scheme);
    json["measure"] = json!({"links": ["forward.0"], "from_ns": 500_000_000});
    let forward = json["network"]["forward"].as_array_mut().unwrap();
    forward.push(json!({"name": "forward.2", "kind": "loss", "ratio": 0.01}));
    forward.push(json!({"name": "forward.3", "kind": "duplicate", "ratio": 0.01}));
    forward.push(json!({"name": "forward.4", "kind": "bottleneck",
        "rate": {"kind": "constant", "rate": 5_000_000}, "queue": {"kind": "codel"}}));
    json
}

#[test]
fn every_scheme_on_every_kind_of_record() {
    let ours = narrows_cc::schemes::ALL.iter().map(|scheme| scheme.name);
    for scheme in ours.chain(narrows_media::schemes::ALL.iter().map(|scheme| scheme.name)) {
        for record in ["packets", "bins"] {
            let mut json = Dumbbell {
                mbps: 4.0,
                seconds: 3.0,
                schemes: vec![scheme, scheme],
                interval_s: 0.5,
                extra_rtt_ms: vec![0.0, 30.0],
                record,
                ..Dumbbell::default()
            }
            .json();
            same(&json);
            json["network"]["forward"][0]["rate"] =
                json!({"kind": "poisson", "rate": 4_000_000, "packet": 1500});
            same(&json);
            same(&rough(scheme, record));
        }
    }
}

#[test]
fn whatever_applications_keep_of_their_transfers() {
    for transfers in ["all", "bins", "none"] {
        let mut json = Dumbbell {
            seconds: 4.0,
            ..Dumbbell::default()
        }
        .json();
        json["transfers"] = transfers.into();
        json["flows"][0]["traffic"] = json!({"kind": "web", "users": 5});
        same(&json);
    }
}

#[test]
fn a_cell_that_takes_more_memory_than_it_may_fails_alone() {
    let json = Dumbbell {
        mbps: 1000.0,
        ..Dumbbell::default()
    };
    let limits = Limits {
        memory: 20_000_000,
        ..FREE
    };
    let error = summarise(&json.cell(), &limits).unwrap_err();
    assert_eq!(error.kind(), "memory");
    assert!(
        error.to_string().contains("more memory than the 20 MB"),
        "{error}"
    );
    let small = Dumbbell {
        seconds: 2.0,
        ..Dumbbell::default()
    };
    assert!(summarise(&small.cell(), &limits).is_ok());
}

#[test]
fn a_long_cell_stops_soon_after_it_is_asked_to() {
    let looks = AtomicU32::new(0);
    let stop = || looks.fetch_add(1, Ordering::Relaxed) >= 3;
    let limits = Limits {
        memory: u64::MAX,
        stop: &stop,
    };
    let json = Dumbbell {
        mbps: 10_000.0,
        seconds: 10_000.0,
        ..Dumbbell::default()
    };
    let stopped = summarise(&json.cell(), &limits).unwrap_err();
    assert!(matches!(stopped, CellFailure::Interrupted));
    assert_eq!(looks.load(Ordering::Relaxed), 4);
}

#[test]
fn a_cell_that_cannot_run_says_why() {
    let mut json = Dumbbell::default().json();
    json["network"]["forward"] =
        json!([{"name": "forward.0", "kind": "delay", "delay": 1_000_000}]);
    let error = summarise(&cell(&json), &FREE).unwrap_err();
    assert_eq!(error.kind(), "input");
    assert!(
        error.to_string().starts_with("nothing bounds flow 1"),
        "{error}"
    );
}

/// Ten thousand flows share a link, each sends a few packets, and all of them are measured.
#[test]
fn ten_thousand_flows_in_one_cell() {
    let json = Dumbbell {
        mbps: 1000.0,
        schemes: vec!["cubic"; 10_000],
        buffer_bdp: 40.0,
        seconds: 3.0,
        record: "bins",
        ..Dumbbell::default()
    };
    let mut json = json.json();
    json["sample_ns"] = 1_000_000_000.into();
    let found = in_memory(&cell(&json));
    let rows = found.measured["flows"].as_array().unwrap();
    assert_eq!(rows.len(), 10_001);
    let sent = |row: &&Value| row["metrics"]["throughput_bps"].as_f64() > Some(0.0);
    assert!(
        rows.iter().filter(sent).count() > 9_000,
        "{}",
        rows.iter().filter(sent).count()
    );
}
