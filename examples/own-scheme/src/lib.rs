//! A congestion control of one's own, in a crate outside Narrows.
//!
//! [`aimd`] is the scheme: three methods. [`simulate`] runs it in Narrows' simulator, alone or against
//! any scheme that Narrows has. `cargo test --release` checks it, `cargo run --release` prints a table.
#![forbid(unsafe_code)]

pub mod aimd;

use narrows_cc::{Scheme, schemes};
use narrows_cell::{Cell, SchemeRef};
use narrows_units::Params;
use serde_json::json;

/// How long [`simulate`] runs, in seconds.
pub const SECONDS: u64 = 60;

/// The goodput in Mbit/s of one flow of each of `flows`, which share a path of 12 Mbit/s, 40 ms and a
/// drop-tail buffer of 60 kB (one bandwidth-delay product). All chance comes from `seed`.
///
/// # Panics
/// When the defaults of a scheme contradict each other.
pub fn simulate(flows: &[&'static Scheme], seed: u64) -> Vec<f64> {
    let end = SECONDS * 1_000_000_000;
    // Cells name schemes of the registry; ours take their places below.
    let name = schemes::ALL[0].name;
    let written: Vec<_> = (1..=flows.len())
        .map(|flow| json!({"flow": flow, "scheme": name, "stop_ns": end}))
        .collect();
    let cell = json!({
        "format": "narrows/cell/1", "id": "own-scheme", "scheme": name, "run": 1, "seed": seed,
        "duration_ns": end, "record": "bins", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell",
            "forward": [
                {"kind": "bottleneck", "rate": {"kind": "constant", "rate": 12_000_000},
                 "queue": {"kind": "droptail", "bytes": 60_000}},
                {"kind": "delay", "delay": 20_000_000}],
            "backward": [{"kind": "delay", "delay": 20_000_000}]},
        "flows": written,
    });
    let mut cell = Cell::parse(&cell.to_string()).expect("the cell is valid");
    for (flow, scheme) in cell.flows.iter_mut().zip(flows) {
        let params = Params::resolve(scheme.params, []).expect("the defaults are valid");
        flow.name = scheme.name.to_owned();
        flow.scheme = SchemeRef::Native(scheme, params);
    }
    let (_, run) = narrows_sim::run_in_memory(&cell).expect("the cell runs");
    run.flows
        .iter()
        .map(|flow| flow.receiver.goodput_bytes.unwrap_or(0) as f64 * 8.0 / SECONDS as f64 / 1e6)
        .collect()
}
