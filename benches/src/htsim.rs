//! Our simulator against csg-htsim, in alternation: the same scenario, one core each.
//!
//! `HTSIM` names a checkout of csg-htsim. Its library is built by its own Makefile, in a copy; the program around it is
//! ours (`benches/htsim/driver.cc`).

use crate::Spread;
use narrows_tests::Dumbbell;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Pairs of runs.
const PAIRS: usize = 10;
const FLOWS: usize = 4;
const MBPS: f64 = 400.0;
const RTT_MS: f64 = 40.0;
const QUEUE_BYTES: u64 = 2_000_000;
const SECONDS: f64 = 100.0;
/// IP bytes of a full packet, as ours have them.
const PACKET_BYTES: u64 = 1500;
const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/htsim/driver.cc");
/// Headers that the driver includes.
const NEEDED: [&str; 8] = [
    "Makefile",
    "config.h",
    "eventlist.h",
    "network.h",
    "pipe.h",
    "queue.h",
    "route.h",
    "tcp.h",
];

/// Prints the comparison, or why there is none.
pub fn table() {
    let Some(checkout) = env::var_os("HTSIM") else {
        println!("htsim: not measured; HTSIM names a checkout of csg-htsim\n");
        return;
    };
    match build(Path::new(&checkout)).and_then(|driver| compare(&driver)) {
        Ok(()) => println!(),
        Err(why) => println!("htsim: not measured; {why}\n"),
    }
}

/// Builds the driver against a copy of the checkout.
fn build(checkout: &Path) -> Result<PathBuf, String> {
    let shown = checkout.display();
    let sources = checkout.join("sim");
    if let Some(missing) = NEEDED.iter().find(|name| !sources.join(name).is_file()) {
        return Err(format!(
            "HTSIM={shown} is no checkout of csg-htsim: it has no file sim/{missing}"
        ));
    }
    let target = crate::emulator::target().ok_or("the folder of the build is not known")?;
    let copy = target.join("htsim");
    fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let files = fs::read_dir(&sources).map_err(|error| format!("{shown}: {error}"))?;
    for file in files.flatten().map(|file| file.path()) {
        let name = file.file_name().unwrap_or_default();
        let kind = file.extension().and_then(OsStr::to_str);
        if matches!(kind, Some("cpp" | "h")) || name == "Makefile" {
            let into = copy.join(name);
            fs::copy(&file, into).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut make = Command::new("make");
    make.arg("-C").arg(&copy).arg(format!("-j{jobs}"));
    succeed(make.arg("libhtsim.a"), "its library cannot be built")?;
    let driver = copy.join("driver");
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&driver)
        .arg("-I")
        .arg(&copy);
    compiler.arg(DRIVER).arg(copy.join("libhtsim.a"));
    succeed(&mut compiler, "the driver does not fit this version of it")?;
    Ok(driver)
}

/// Runs a command whose output is of interest only if it fails.
fn succeed(command: &mut Command, what: &str) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{what}: {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = said.lines().find(|line| line.contains("error"));
    let line = first
        .or_else(|| said.lines().last())
        .unwrap_or("it says nothing");
    Err(format!("{what}: {}", line.trim()))
}

fn compare(driver: &Path) -> Result<(), String> {
    let ours = Dumbbell {
        mbps: MBPS,
        rtt_ms: RTT_MS,
        buffer_bdp: QUEUE_BYTES as f64 * 8.0 / (MBPS * RTT_MS * 1e3),
        schemes: vec!["reno"; FLOWS],
        seconds: SECONDS,
        record: "bins",
        ..Dumbbell::default()
    };
    let cell = ours.cell();
    let run_ours = || -> f64 {
        let start = Instant::now();
        let (world, _) = narrows_sim::run_in_memory(&cell).expect("the cell runs");
        world.totals().data_delivered as f64 / start.elapsed().as_secs_f64()
    };
    let run_theirs = || -> Result<f64, String> {
        let numbers = [
            FLOWS as f64,
            MBPS,
            QUEUE_BYTES as f64,
            RTT_MS,
            SECONDS,
            PACKET_BYTES as f64,
        ];
        let output = Command::new(driver)
            .args(numbers.map(|number| number.to_string()))
            .output();
        let output = output.map_err(|error| format!("its driver: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().last().unwrap_or_default();
        let result: serde_json::Value = serde_json::from_str(last).unwrap_or_default();
        let number = |key: &str| result[key].as_f64().filter(|&number| number > 0.0);
        match (
            output.status.success(),
            number("packets"),
            number("seconds"),
        ) {
            (true, Some(packets), Some(seconds)) => Ok(packets / seconds),
            _ => Err(format!("its driver ended with {}", output.status)),
        }
    };
    let (mut mine, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..=PAIRS {
        // Each goes first every other time; the first pair warms up.
        let (a, b) = if pair % 2 == 0 {
            let a = run_ours();
            (a, run_theirs()?)
        } else {
            let b = run_theirs()?;
            (run_ours(), b)
        };
        if pair > 0 {
            mine.push(a / 1e6);
            theirs.push(b / 1e6);
            ratios.push(a / b);
        }
    }
    let ahead = ratios.iter().filter(|&&ratio| ratio > 1.0).count();
    println!(
        "{:50} {:>18}",
        format!("{FLOWS} reno, {MBPS} Mbit/s, 40 ms, 2 MB, {SECONDS} s, {PAIRS} pairs"),
        "million packets/s"
    );
    println!("{:50} {:>18}", "ours, bins", Spread::of(mine).show(2));
    println!(
        "{:50} {:>18}",
        "csg-htsim, no records",
        Spread::of(theirs).show(2)
    );
    println!(
        "{:50} {:>18}   ahead in {ahead} of {PAIRS} pairs",
        "ours / csg-htsim",
        Spread::of(ratios).show(2)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_checkout_is_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let refused = build(folder.path()).unwrap_err();
        assert!(
            refused.ends_with("is no checkout of csg-htsim: it has no file sim/Makefile"),
            "{refused}"
        );
        fs::create_dir(folder.path().join("sim")).unwrap();
        for name in &NEEDED[..7] {
            fs::write(folder.path().join("sim").join(name), "").unwrap();
        }
        let refused = build(folder.path()).unwrap_err();
        assert!(refused.ends_with("no file sim/tcp.h"), "{refused}");
    }
}
