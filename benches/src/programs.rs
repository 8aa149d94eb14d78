//! Whether programs of others make the emulator late: two flows of iperf3 against two of the kernel's own TCP, alternately.

use crate::Spread;
use crate::emulator::{Emulated, agent, emulate};
use narrows_tests::Dumbbell;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const PAIRS: usize = 11;
const MBPS: f64 = 100.0;
const SECONDS: f64 = 5.0;

/// Runs both in turns and prints what each run was like, and the ratios within the pairs.
pub fn table() {
    let Some(agent) = agent() else {
        println!(
            "programs: not measured; build the agent first (cargo build --release -p narrows-agent)"
        );
        return;
    };
    if Command::new("iperf3").arg("--version").output().is_err() {
        println!("programs: not measured; iperf3 is not installed");
        return;
    }
    match pairs(&agent) {
        Ok(pairs) => print(&pairs),
        Err(why) => println!("programs: not measured; {why}"),
    }
}

/// Pairs of runs: of the kernel's flows, and of the programs.
fn pairs(agent: &Path) -> Result<Vec<[Emulated; 2]>, String> {
    (0..PAIRS)
        .map(|round| {
            // Each is the first of every other pair.
            let first_programs = round % 2 == 1;
            let first = emulate(agent, cell(first_programs), None)?;
            let second = emulate(agent, cell(!first_programs), None)?;
            Ok(if first_programs {
                [second, first]
            } else {
                [first, second]
            })
        })
        .collect()
}

fn print(pairs: &[[Emulated; 2]]) {
    println!(
        "{:30} {:>22} {:>18} {:>16} {:>14}   verdicts",
        "two flows, 100 Mbit/s, 5 s", "delivered Mbit/s", "late p50 us", "late p99 us", "its CPU %"
    );
    for (place, label) in ["linux:cubic", "iperf3:cubic"].iter().enumerate() {
        let of = |value: fn(&Emulated) -> f64, decimals: usize| {
            Spread::of(pairs.iter().map(|pair| value(&pair[place])).collect()).show(decimals)
        };
        let verdicts: Vec<_> = pairs.iter().map(|pair| &*pair[place].verdict).collect();
        println!(
            "{label:30} {:>22} {:>18} {:>16} {:>14}   {}",
            of(|run| run.mbps, 1),
            of(|run| run.p50_us, 1),
            of(|run| run.p99_us, 0),
            of(|run| run.cpu_percent, 0),
            verdicts.join(" ")
        );
    }
    let ratio = |value: fn(&Emulated) -> f64| {
        let ratios = pairs
            .iter()
            .map(|[kernel, programs]| value(programs) / value(kernel));
        Spread::of(ratios.collect()).show(2)
    };
    println!(
        "programs / kernel, by pairs: late p50 {}, late p99 {}, processor of the emulator {}\n",
        ratio(|run| run.p50_us),
        ratio(|run| run.p99_us),
        ratio(|run| run.cpu_percent)
    );
}

/// A cell with two flows, of the kernel's CUBIC or of iperf3 with it.
fn cell(programs: bool) -> Value {
    let mut cell = Dumbbell {
        mbps: MBPS,
        rtt_ms: 10.0,
        schemes: vec!["reno"; 2],
        seconds: SECONDS,
        ..Dumbbell::default()
    }
    .json();
    cell["where"] = "emulate".into();
    let scheme = if programs {
        "iperf3:cubic"
    } else {
        "linux:cubic"
    };
    cell["scheme"] = scheme.into();
    for flow in cell["flows"].as_array_mut().expect("there are flows") {
        flow["scheme"] = scheme.into();
        if programs {
            flow["program"] = iperf3();
        }
    }
    cell
}

/// iperf3 as its manifest says.
fn iperf3() -> Value {
    let seconds = SECONDS.to_string();
    json!({
        "name": "iperf3", "variant": "cubic", "manifest": "", "data": "connector",
        "listener": {"command": ["iperf3", "--server", "--one-off", "--port", "{port}"], "ready": {"tcp": null}},
        "connector": {"command": ["iperf3", "--client", "{address}", "--port", "{port}", "--time", seconds,
            "--congestion", "cubic", "--json"]},
        "end": {"when": "duration", "signal": 15, "grace_ns": 1_000_000_000},
        "limits": {"ready_ns": 10_000_000_000_u64, "file_bytes": 1_000_000, "output_bytes": 1_000_000},
    })
}
