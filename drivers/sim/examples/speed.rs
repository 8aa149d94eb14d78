//! Prints how many data packets per second the simulator delivers on one core: four Reno flows over
//! 400 Mbit/s, 40 ms, 2 MB drop-tail, 100 simulated seconds, binned record.
//!
//! `cargo run --release -p narrows-sim --example speed [SECONDS]`

use narrows_cell::Cell;
use std::time::Instant;

fn main() {
    let seconds: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let end = seconds * 1_000_000_000;
    let flows: Vec<serde_json::Value> = (1..=4)
        .map(|flow| serde_json::json!({"flow": flow, "scheme": "reno", "start_ns": 0, "stop_ns": end}))
        .collect();
    let cell = serde_json::json!({
        "format": "narrows/cell/1", "id": "speed", "scheme": "reno", "run": 1, "seed": 1,
        "duration_ns": end, "record": "bins", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell",
            "forward": [
                {"kind": "bottleneck", "rate": {"kind": "constant", "rate": 400_000_000},
                 "queue": {"kind": "droptail", "bytes": 2_000_000}},
                {"kind": "delay", "delay": 20_000_000}],
            "backward": [{"kind": "delay", "delay": 20_000_000}]},
        "flows": flows,
    });
    let cell = Cell::parse(&cell.to_string()).expect("the cell is valid");
    let start = Instant::now();
    let (world, document) = narrows_sim::run_in_memory(&cell).expect("the cell runs");
    let spent = start.elapsed().as_secs_f64();
    let packets = world.totals().data_delivered;
    println!(
        "{packets} data packets in {spent:.3} s: {:.2} million per second; {:.0} times real time",
        packets as f64 / spent / 1e6,
        seconds as f64 / spent
    );
    for flow in &document.flows {
        println!("flow {}: {:?} {:?}", flow.flow, flow.sender, flow.receiver);
    }
}
