//! The central claim: a scheme behaves alike in the simulator and in the emulator, because both
//! drive the same objects.
//!
//! Tolerances are those that the documentation promises. The verdict guards them: a run that this machine could
//! not keep in time is not compared but repeated; a run judged `ok` must agree at once.

mod common;

use common::{Folder, emulate, run_to_end};
use narrows_record::{Verdict, metrics};
use narrows_tests::Dumbbell;
use serde_json::Value;

/// Runs that a busy machine may spoil before the test gives up.
const ATTEMPTS: usize = 6;

fn metric(measured: &Value, name: &str) -> f64 {
    measured["flows"][0]["metrics"][name]
        .as_f64()
        .unwrap_or(f64::NAN)
}

#[test]
fn simulated_and_emulated_runs_agree() {
    if !common::can_emulate("simulated_and_emulated_runs_agree") {
        return;
    }
    // Throughput, and 95th percentile of the queueing delay.
    let (of_throughput, of_queueing) = (0.03, 0.10);
    for scheme in ["cubic", "reno"] {
        let dumbbell = Dumbbell {
            schemes: vec![scheme],
            seconds: 8.0,
            ..Dumbbell::default()
        };
        let simulated = dumbbell.measure().json;
        let mut spoiled = Vec::new();
        loop {
            let folder = Folder::new(&format!("agreement-{scheme}-{}", spoiled.len()));
            let mut cell = dumbbell.json();
            cell["where"] = "emulate".into();
            let output = run_to_end(&mut emulate(&folder, &cell));
            assert!(output.status.success(), "{output:?}");
            let record = narrows_cell::open_record(&folder.path().join("out")).unwrap();
            let emulated = metrics::measure(&record).unwrap();
            let ratio = |name| metric(&emulated, name) / metric(&simulated, name);
            let throughput = ratio("throughput_bps");
            let queueing = ratio("queueing_delay_p95_ns");
            if (throughput - 1.0).abs() <= of_throughput && (queueing - 1.0).abs() <= of_queueing {
                break;
            }
            assert_ne!(
                record.run.verdict,
                Verdict::Ok,
                "{scheme}: emulated / simulated: throughput {throughput:.4}, p95 queueing delay {queueing:.4}"
            );
            spoiled.push(format!("{:?}", record.run.reasons));
            assert!(
                spoiled.len() < ATTEMPTS,
                "this machine is too busy to tell: {spoiled:?}"
            );
        }
    }
}
