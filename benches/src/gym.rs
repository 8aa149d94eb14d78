//! Decisions per second of processor time in the learning environment: in Rust, and through the interfaces of
//! Gymnasium.

use crate::{peak_memory_mb, repeat};
use narrows_cc::testing::{example_file, example_files};
use narrows_gym::{COUNTERS, Course, Outputs, Reward, Worlds};
use narrows_sys::clock;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Decisions of one measurement.
const DECISIONS: usize = 200_000;
/// The action that keeps the window, and those that raise it from 10 to the bandwidth-delay product.
const HOLD: f32 = 2.0;
const RAISES: [f32; 3] = [4.0, 4.0, 3.0];

/// Indigo over 12 Mbit/s and 40 ms, with its inputs and actions.
fn course() -> Course {
    let file = example_file("indigo");
    // Longer than all runs of a single world together: the next step of an ended episode costs nothing.
    let end = 1_000_000_000_000_000u64;
    Course {
        cell: json!({
            "format": "narrows/cell/1", "id": "gym", "scheme": "indigo", "run": 1, "where": "simulate", "seed": 1,
            "duration_ns": end, "record": "packets", "bin_ns": 1_000_000_000, "sample_ns": 1_000_000_000,
            "network": {"kind": "dumbbell",
                "forward": [
                    {"name": "forward.0", "kind": "bottleneck", "rate": {"kind": "constant", "rate": 12_000_000},
                        "queue": {"kind": "droptail", "bytes": 120_000}},
                    {"name": "forward.1", "kind": "delay", "delay": 20_000_000}],
                "backward": [{"name": "backward.0", "kind": "delay", "delay": 20_000_000}]},
            "flows": [{"flow": 1, "scheme": "indigo", "direction": "forward", "start_ns": 0, "stop_ns": end,
                "params": {"model": {"name": file.name, "sha256": file.sha256}}}],
            "transport": {"packet_size": 1500}}),
        files: example_files(),
    }
}

/// Prints the table.
pub fn table(runs: usize) {
    println!("learning environment, 12 Mbit/s, 40 ms                 decisions/s     peak memory");
    for count in [1, 256, 1024] {
        let mut worlds = Worlds::new(vec![course()], vec![0], count, Reward::Power, u32::MAX, 1)
            .expect("the course is valid");
        let mut observations = vec![0.0; count * worlds.inputs()];
        let mut counters = vec![0.0; count * COUNTERS.len()];
        let (mut rewards, mut clipped, mut endings) =
            (vec![0.0; count], vec![0; count], vec![0; count]);
        let mut outputs = Outputs {
            observations: &mut observations,
            counters: &mut counters,
            rewards: &mut rewards,
            clipped: &mut clipped,
            endings: &mut endings,
        };
        let starts: Vec<_> = (0..count as u64).map(|seed| Some((0, seed))).collect();
        worlds.reset(&starts, &mut outputs).expect("they begin");
        let skip = vec![false; count];
        for action in RAISES {
            worlds.step(&vec![action; count], &skip, &mut outputs);
        }
        let actions = vec![HOLD; count];
        let steps = DECISIONS.div_ceil(count);
        let speed = || {
            let start = clock::thread_cpu_ns();
            for _ in 0..steps {
                worlds.step(&actions, &skip, &mut outputs);
            }
            (steps * count) as f64 * 1e9 / (clock::thread_cpu_ns() - start) as f64
        };
        let spread = repeat(runs, speed, |speed, _| *speed);
        assert!(
            outputs.endings.iter().all(|ending| *ending == 0),
            "an episode has ended"
        );
        println!(
            "{:50} {:>24} {:8.0} MB",
            format!("{count} worlds, Rust, one thread"),
            spread.show(0),
            peak_memory_mb()
        );
    }
    python();
    println!();
}

/// The same through the Python package, if it is built and Gymnasium is installed.
fn python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = root.join("benches/gym.py");
    let output = Command::new(root.join(".venv/bin/python"))
        .arg(script)
        .output();
    let rows = output.ok().filter(|output| output.status.success());
    let rows = rows.and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    let Some(rows) = rows.as_ref().and_then(Value::as_array) else {
        println!("through Gymnasium: not measured, because narrows.gym cannot be imported");
        return;
    };
    for row in rows {
        println!(
            "{:50} {:>24.0}",
            row["name"].as_str().unwrap_or_default(),
            row["per_s"].as_f64().unwrap_or(f64::NAN)
        );
    }
}
