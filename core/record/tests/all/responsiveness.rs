//! Responsiveness and quality of outcome of records made by hand.

use crate::reference::{Draft, Plan, packet};
use narrows_record::metrics::measure;
use narrows_record::{StateRow, TransferRow};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// Flow 1 exchanges small messages and flow 2 loads the path from 5 s on, for 40 s in all.
fn loaded_path() -> Draft {
    let plan = Plan {
        extra_rtt_ns: vec![0; 2],
        duration_ns: 200 * MS,
        ..Plan::default()
    };
    let mut draft = plan.draft();
    draft.run.cell["duration_ns"] = (40 * SECOND).into();
    for flow in draft.run.cell["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = (40 * SECOND).into();
    }
    draft.run.cell["flows"][0]["traffic"] = json!({"kind": "requests", "persistent": true});
    draft.run.cell["flows"][1]["start_ns"] = (5 * SECOND).into();
    draft.states.clear();
    draft.transfers.clear();
    draft
}

fn exchange(number: u32, started_ns: u64, took_ns: u64) -> TransferRow {
    TransferRow {
        flow: 1,
        connection: 0,
        transfer: number,
        bytes: 1,
        started_ns,
        ended_ns: Some(started_ns + took_ns),
    }
}

fn rtt(time_ns: u64, rtt_ns: u64) -> StateRow {
    StateRow {
        flow: 2,
        time_ns,
        rtt_ns: Some(rtt_ns),
        ..StateRow::default()
    }
}

/// The value of `name` for `flow`, or the reason why it is absent.
fn value(draft: &Draft, flow: &str, name: &str) -> Result<f64, String> {
    let result = measure(&draft.record()).unwrap();
    let rows = result["flows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["flow"] == flow).unwrap();
    let reason = || result["absent"][flow][name].as_str().unwrap().to_owned();
    row["metrics"][name].as_f64().ok_or_else(reason)
}

fn close(value: Result<f64, String>, expected: f64) {
    let value = value.expect("a value");
    assert!(
        (value - expected).abs() <= 1e-9 * expected.max(1e-9),
        "{value} is not {expected}"
    );
}

#[test]
fn responsiveness_is_the_mean_of_both_kinds_of_round_trips() {
    let mut draft = loaded_path();
    // Idle and early exchanges, which do not count, then 19 of 60 ms and one of 900 ms in the last 20 s.
    draft.transfers = (0..40)
        .map(|n| exchange(n, u64::from(n) * 500 * MS, 5 * MS))
        .collect();
    let late = (0..20).map(|n| {
        let took = if n == 7 { 900 * MS } else { 60 * MS };
        exchange(40 + n, (20 + u64::from(n) * 9 / 10) * SECOND, took)
    });
    draft.transfers.extend(late);
    // 100 ms until 30 s, then 200 ms: of the last 20 s, 19 s remain, with 9 s of 200 ms.
    draft.states = vec![
        rtt(6 * SECOND, 100 * MS),
        rtt(30 * SECOND, 200 * MS),
        rtt(39 * SECOND, 200 * MS),
    ];
    close(
        value(&draft, "all", "foreign_responsiveness_rpm"),
        60_000.0 / 60.0,
    );
    let mean = (10.0 * 100.0 + 9.0 * 200.0) / 19.0;
    close(
        value(&draft, "all", "loaded_responsiveness_rpm"),
        60_000.0 / mean,
    );
    close(
        value(&draft, "all", "responsiveness_rpm"),
        f64::midpoint(1000.0, 60_000.0 / mean),
    );
    assert!(
        value(&draft, "1", "responsiveness_rpm")
            .unwrap_err()
            .contains("all flows together")
    );
}

#[test]
fn missing_parts_of_responsiveness_are_named() {
    let mut draft = loaded_path();
    let name = "responsiveness_rpm";
    assert!(
        value(&draft, "all", name)
            .unwrap_err()
            .contains("no small exchange")
    );
    draft.transfers = vec![exchange(0, 25 * SECOND, 50 * MS)];
    assert!(
        value(&draft, "all", name)
            .unwrap_err()
            .contains("no sender of a bulk flow")
    );
    draft.states = vec![rtt(25 * SECOND, 50 * MS)];
    close(value(&draft, "all", name), 1200.0);
    draft.run.cell["flows"][0]["traffic"]["persistent"] = false.into();
    assert!(
        value(&draft, "all", name)
            .unwrap_err()
            .contains("open connection")
    );
    draft.run.cell["flows"][0]["traffic"]["persistent"] = true.into();
    draft.run.cell["measure"] = json!({"to_ns": 4 * SECOND});
    assert!(
        value(&draft, "all", name)
            .unwrap_err()
            .contains("never run all")
    );
    draft.run.cell["measure"] = Value::Null;
    draft.run.cell.as_object_mut().unwrap().remove("measure");
    draft.run.cell["flows"][1]["traffic"] = json!({"kind": "cbr"});
    assert!(
        value(&draft, "all", name)
            .unwrap_err()
            .contains("no bulk flow")
    );
}

/// The conditions of the example of draft-ietf-ippm-qoo-10, section 3.5: 99th percentile 350 ms, 99.9th 375 ms, 2 % of
/// loss; the throughput is above 4 Mbit/s.
#[test]
fn the_example_of_quality_of_outcome_scores_50_75_100() {
    let mut draft = loaded_path();
    draft.run.cell["flows"][0]["traffic"] = json!({"kind": "bulk"});
    // Of 9 800 arrivals 9 605 take 20 ms, those up to rank 9 785 350 ms, and the other 15 take 375 ms.
    draft.rows = (0..10_000_u64)
        .map(|n| {
            let dropped = n % 50 == 49;
            let delay = match n % 2_000 {
                0..1_960 => 20,
                1_960..1_996 => 350,
                _ => 375,
            };
            packet(1, n + 1, n * MS, (!dropped).then_some(n * MS + delay * MS))
        })
        .collect();
    close(value(&draft, "1", "delay_p99_ns"), 350e6);
    close(value(&draft, "1", "loss_ratio"), 0.02);
    close(value(&draft, "1", "qoo_latency_ratio"), 0.5);
    close(value(&draft, "1", "qoo_loss_ratio"), 0.75);
    close(value(&draft, "1", "qoo_throughput_ratio"), 1.0);
    close(value(&draft, "1", "qoo_ratio"), 0.5);
    // A tenth of the packet sizes carries 0.8 Mbit/s, which is less than 4.
    for row in &mut draft.rows {
        row.size_bytes = 100;
    }
    close(value(&draft, "1", "qoo_throughput_ratio"), 0.0);
    close(value(&draft, "1", "qoo_ratio"), 0.0);
    assert!(value(&draft, "all", "qoo_ratio").is_err());
}

/// By the formula of section 3.4, 1 - (value - optimal) / (unacceptable - optimal), the lowest of all.
#[test]
fn quality_of_outcome_is_scored_against_the_scenarios_requirement() {
    let mut draft = loaded_path();
    draft.run.cell["flows"][0]["traffic"] = json!({"kind": "bulk"});
    // 1000 packets, 10 of them lost. Of 990 arrivals 900 take 20 ms, 80 take 50 ms, and 10 take 90 ms.
    draft.rows = (0..1_000_u64)
        .map(|n| {
            let dropped = n % 100 == 99;
            let delay = match n % 100 {
                0..90 => 20,
                90..98 => 50,
                _ => 90,
            };
            packet(1, n + 1, n * MS, (!dropped).then_some(n * MS + delay * MS))
        })
        .collect();
    close(value(&draft, "1", "qoo_ratio"), 1.0);
    let bounds = |share: f64, optimal: u64, unacceptable: u64| {
        let (optimal, unacceptable) = (optimal * MS, unacceptable * MS);
        json!({"share": share, "optimal_ns": optimal, "unacceptable_ns": unacceptable})
    };
    let mut require = |requirement: Value| {
        draft.run.cell["measure"] = json!({"requirement": requirement});
        let names = [
            "qoo_latency_ratio",
            "qoo_loss_ratio",
            "qoo_throughput_ratio",
            "qoo_ratio",
        ];
        names.map(|name| value(&draft, "1", name))
    };
    // The median is 20 ms, p95 50 ms and p99.5 90 ms; 1 % is lost.
    let delays = json!([
        bounds(0.5, 10, 110),
        bounds(0.95, 30, 130),
        bounds(0.995, 40, 100)
    ]);
    let [latency, loss, throughput, all] = require(json!({
        "throughput_bps": 1_000_000, "loss": {"optimal": 0.0, "unacceptable": 0.1}, "delays": delays
    }));
    close(latency, 1.0 - 50.0 / 60.0);
    close(loss, 0.9);
    close(throughput, 1.0);
    close(all, 1.0 - 50.0 / 60.0);
    let [latency, loss, throughput, all] = require(json!({"delays": [bounds(0.95, 30, 130)]}));
    close(latency, 0.8);
    assert_eq!(loss.unwrap_err(), "the requirement has no loss");
    assert_eq!(throughput.unwrap_err(), "the requirement has no throughput");
    close(all, 0.8);
    let [latency, loss, _, all] =
        require(json!({"loss": {"optimal": 0.005, "unacceptable": 0.01}}));
    assert_eq!(latency.unwrap_err(), "the requirement has no delay");
    close(loss, 0.0);
    close(all, 0.0);
    let [_, _, throughput, all] = require(json!({"throughput_bps": 1_000_000_000}));
    close(throughput, 0.0);
    close(all, 0.0);
}
