//! Our simulator against others, in alternation: the same scenario, packets per second of processor time.
//!
//! `HTSIM` names a checkout of csg-htsim, whose library is built by its own Makefile, in a copy. ns-3 is that of the
//! system, if there is one (Debian: libns3-dev and libgsl-dev). The programs around them are ours (`benches/drivers`).

use crate::Spread;
use narrows_sys::clock;
use narrows_tests::Dumbbell;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FLOWS: usize = 4;
const MBPS: f64 = 400.0;
const RTT_MS: f64 = 40.0;
const QUEUE_BYTES: u64 = 2_000_000;
/// IP bytes of a full packet, as ours have them.
const PACKET_BYTES: u64 = 1500;
const DRIVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/drivers");
/// Headers of csg-htsim that its driver includes.
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
/// Modules of ns-3 that its driver includes.
const MODULES: [&str; 6] = [
    "applications",
    "core",
    "internet",
    "network",
    "point-to-point",
    "traffic-control",
];

/// Compares with csg-htsim, or prints why not.
pub fn htsim() {
    let Some(checkout) = env::var_os("HTSIM") else {
        println!("csg-htsim: not measured; HTSIM names a checkout of it\n");
        return;
    };
    let driver = build_htsim(Path::new(&checkout));
    print(
        "csg-htsim",
        driver.and_then(|it| compare("csg-htsim", &it, 100.0, 10)),
    );
}

/// Compares with ns-3, or prints why not.
pub fn ns3() {
    // It takes minutes for a second of this scenario's full rate.
    print(
        "ns-3",
        build_ns3().and_then(|it| compare("ns-3", &it, 3.0, 3)),
    );
}

fn print(name: &str, compared: Result<(), String>) {
    match compared {
        Ok(()) => println!(),
        Err(why) => println!("{name}: not measured; {why}\n"),
    }
}

/// A folder of this build.
fn folder(name: &str) -> Result<PathBuf, String> {
    let target = crate::emulator::target().ok_or("the folder of the build is not known")?;
    let folder = target.join(name);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Builds the driver against a copy of the checkout.
fn build_htsim(checkout: &Path) -> Result<PathBuf, String> {
    let shown = checkout.display();
    let sources = checkout.join("sim");
    if let Some(missing) = NEEDED.iter().find(|name| !sources.join(name).is_file()) {
        return Err(format!(
            "HTSIM={shown} is not a checkout of csg-htsim: it has no file sim/{missing}"
        ));
    }
    let copy = folder("htsim")?;
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
    let mut compiler = compiler("htsim.cc", &driver);
    compiler.arg("-I").arg(&copy).arg(copy.join("libhtsim.a"));
    succeed(&mut compiler, "the driver does not fit this version of it")?;
    Ok(driver)
}

fn build_ns3() -> Result<PathBuf, String> {
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs"]);
    asked.args(MODULES.map(|module| format!("ns3-{module}")));
    let missing = "pkg-config does not find it (Debian: apt-get install libns3-dev libgsl-dev)";
    let output = asked.output().map_err(|_| missing)?;
    if !output.status.success() {
        return Err(missing.to_owned());
    }
    let flags = String::from_utf8_lossy(&output.stdout).into_owned();
    let driver = folder("ns3")?.join("driver");
    let mut compiler = compiler("ns3.cc", &driver);
    compiler.args(flags.split_whitespace());
    succeed(&mut compiler, "the driver does not fit this version of it")?;
    Ok(driver)
}

/// Translates one of our drivers.
fn compiler(source: &str, driver: &Path) -> Command {
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(driver);
    compiler.arg(Path::new(DRIVERS).join(source));
    compiler
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

/// Runs both, one after the other, and prints how fast each was; `seconds` are those that the other simulates.
fn compare(name: &str, driver: &Path, seconds: f64, pairs: usize) -> Result<(), String> {
    let ours = Dumbbell {
        mbps: MBPS,
        rtt_ms: RTT_MS,
        buffer_bdp: QUEUE_BYTES as f64 * 8.0 / (MBPS * RTT_MS * 1e3),
        schemes: vec!["reno"; FLOWS],
        seconds: 100.0,
        record: "bins",
        ..Dumbbell::default()
    };
    let cell = ours.cell();
    let run_ours = || -> f64 {
        let start = clock::thread_cpu_ns();
        let (world, _) = narrows_sim::run_in_memory(&cell).expect("the cell runs");
        let took = (clock::thread_cpu_ns() - start) as f64 / 1e9;
        world.totals().data_delivered as f64 / took
    };
    let run_other = || -> Result<f64, String> {
        let flows = FLOWS as f64;
        let numbers = [
            flows,
            MBPS,
            QUEUE_BYTES as f64,
            RTT_MS,
            seconds,
            PACKET_BYTES as f64,
        ];
        let mut command = Command::new(driver);
        command.args(numbers.map(|number| number.to_string()));
        let output = command
            .output()
            .map_err(|error| format!("its driver: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Output of the libraries themselves comes before.
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
    for pair in 0..=pairs {
        // Each goes first every other time; the first pair warms up.
        let (a, b) = if pair % 2 == 0 {
            let a = run_ours();
            (a, run_other()?)
        } else {
            let b = run_other()?;
            (run_ours(), b)
        };
        if pair > 0 {
            mine.push(a / 1e6);
            theirs.push(b / 1e6);
            ratios.push(a / b);
        }
    }
    let ahead = ratios.iter().filter(|&&ratio| ratio > 1.0).count();
    let title = format!("{FLOWS} reno, {MBPS} Mbit/s, {RTT_MS} ms, 2 MB, {pairs} pairs");
    println!("{title:50} {:>18}", "million packets/s");
    println!(
        "{:50} {:>18}",
        "ours, 100 s, bins",
        Spread::of(mine).show(2)
    );
    let other = format!("{name}, {seconds} s, no records");
    println!("{other:50} {:>18}", Spread::of(theirs).show(4));
    println!(
        "{:50} {:>18}   ahead in {ahead} of {pairs} pairs",
        format!("ours / {name}"),
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
        let refused = build_htsim(folder.path()).unwrap_err();
        assert!(
            refused.ends_with("is not a checkout of csg-htsim: it has no file sim/Makefile"),
            "{refused}"
        );
        fs::create_dir(folder.path().join("sim")).unwrap();
        for name in &NEEDED[..7] {
            fs::write(folder.path().join("sim").join(name), "").unwrap();
        }
        let refused = build_htsim(folder.path()).unwrap_err();
        assert!(refused.ends_with("no file sim/tcp.h"), "{refused}");
    }
}
