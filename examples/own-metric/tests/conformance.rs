//! The metric on a simulated record, against a computation by hand.

use narrows_cell::{Cell, open_record};
use narrows_record::metrics::measure_by;
use own_metric::delay_variation::METRICS;
use serde_json::{Value, json};
use std::path::Path;

/// The rows of the metric for a flow of datagrams at `rate` through 10 Mbit/s and 5 ms, without and with packets.
fn rows(name: &str, rate: u64) -> Value {
    let cell = json!({
        "format": "narrows/cell/1", "id": name, "scheme": "cbr", "run": 1, "seed": 1,
        "duration_ns": 2_000_000_000_u64, "record": "packets", "bin_ns": 100_000_000, "sample_ns": 100_000_000,
        "network": {"kind": "dumbbell",
            "forward": [
                {"kind": "bottleneck", "rate": {"kind": "constant", "rate": 10_000_000},
                 "queue": {"kind": "droptail", "packets": 100}},
                {"kind": "delay", "delay": 5_000_000}],
            "backward": [{"kind": "delay", "delay": 5_000_000}]},
        "flows": [{"flow": 1, "scheme": "udp", "stop_ns": 2_000_000_000_u64,
            "traffic": {"kind": "cbr", "rate": rate, "packet": 1250}}],
    });
    let cell = Cell::parse(&cell.to_string()).expect("the cell is valid");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    narrows_sim::run(&cell, &folder, &mut |_| true).expect("the cell runs");
    let record = open_record(&folder).expect("the record is complete");
    measure_by(&METRICS.iter().collect::<Vec<_>>(), &record).expect("the record is sound")
}

fn value(rows: &Value) -> &Value {
    &rows["flows"][0]["metrics"][METRICS[0].name]
}

#[test]
fn a_flow_below_the_rate_has_no_variation() {
    assert_eq!(value(&rows("below", 5_000_000)), &json!(0.0));
}

#[test]
fn a_full_queue_is_the_variation() {
    // 100 packets of 1 ms wait before the slowest ones, none before the fastest.
    let varied = value(&rows("above", 20_000_000)).as_f64().unwrap();
    assert!((99e6..=101e6).contains(&varied), "{varied}");
}

#[test]
fn its_definition_is_complete() {
    for metric in METRICS {
        assert!(
            metric.definition.ends_with('.')
                && !metric.source.is_empty()
                && !metric.label.is_empty()
        );
    }
}
