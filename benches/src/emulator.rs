//! Throughput and punctuality of the emulator.

use crate::Spread;
use narrows_cell::keep_file;
use narrows_tests::{Dumbbell, models};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const SECONDS: f64 = 10.0;
const MS: u64 = 1_000_000;
/// Schemes that follow a model, and the published ones that they are tried with where these are installed.
const MODELS: [(&str, &str); 4] = [
    ("remy", "tao-100x"),
    ("indigo", "indigo-1-32"),
    ("indigo", "indigo-2-256"),
    ("muses", "muses"),
];

/// Runs every line of the table three times and prints it.
pub fn table() {
    let Some(agent) = agent() else {
        println!(
            "emulator: not measured; build the agent first (cargo build --release -p narrows-agent)"
        );
        return;
    };
    println!(
        "{:44} {:>26} {:>20} {:>16} {:>14}   verdicts",
        "emulator, 10 s, every packet recorded",
        "delivered Mbit/s",
        "late p50 us",
        "late p99 us",
        "its CPU %"
    );
    for (label, cell) in lines() {
        let (mut rate, mut p50, mut p99, mut cpu) = (vec![], vec![], vec![], vec![]);
        let mut verdicts = vec![];
        for _ in 0..3 {
            match emulate(&agent, cell.clone(), None) {
                Ok(run) => {
                    rate.push(run.mbps);
                    p50.push(run.p50_us);
                    p99.push(run.p99_us);
                    cpu.push(run.cpu_percent);
                    verdicts.push(run.verdict);
                }
                Err(why) => {
                    println!("emulator: not measured; {why}");
                    return;
                }
            }
        }
        println!(
            "{label:44} {:>26} {:>20} {:>16} {:>14}   {}",
            Spread::of(rate).show(1),
            Spread::of(p50).show(1),
            Spread::of(p99).show(0),
            Spread::of(cpu).show(0),
            verdicts.join(" ")
        );
    }
}

/// Emulates every native scheme alone on a path of 100 Mbit/s and prints what both of its ends need.
pub fn endpoints() {
    let Some(agent) = agent() else {
        println!(
            "endpoints: not measured; build the agent first (cargo build --release -p narrows-agent)"
        );
        return;
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    println!(
        "{:24} {:>20} {:>16} {:>28}   verdict",
        "100 Mbit/s, 10 ms, 10 s",
        "delivered Mbit/s",
        "both ends, %",
        "machine but for emulator, %"
    );
    let bulk = narrows_cc::schemes::ALL.iter().map(|scheme| scheme.name);
    let media = narrows_media::schemes::ALL.iter().map(|scheme| scheme.name);
    let print = |label: &str, cell: Value, model: Option<&[u8]>| match emulate(&agent, cell, model)
    {
        Ok(run) => println!(
            "{label:24} {:20.1} {:16.0} {:28.0}   {}",
            run.mbps,
            run.ends_percent,
            run.busy_percent * cpus - run.cpu_percent,
            run.verdict
        ),
        Err(why) => println!("{label:24} not measured; {why}"),
    };
    for scheme in bulk.chain(media) {
        let cell = one_bottleneck(scheme, 100.0);
        let models = MODELS.iter().filter(|(follower, _)| *follower == scheme);
        if models.clone().next().is_none() {
            print(scheme, cell.clone(), None);
        }
        for (_, name) in models {
            if let Some(model) = models::content(name) {
                print(&format!("{scheme} ({name})"), cell.clone(), Some(&model));
            }
        }
    }
    println!();
}

fn lines() -> Vec<(String, Value)> {
    let mut lines = Vec::new();
    for mbps in [10.0, 100.0, 400.0, 1000.0, 1500.0, 2000.0] {
        let label = format!("linux:cubic, {mbps} Mbit/s, 10 ms, 1 BDP");
        lines.push((label, one_bottleneck("linux:cubic", mbps)));
    }
    for mbps in [1000.0, 1500.0] {
        let label = format!("linux:bbr, {mbps} Mbit/s, 10 ms, 1 BDP");
        lines.push((label, one_bottleneck("linux:bbr", mbps)));
    }
    lines.push((
        "4 linux:cubic, 8 hosts, 3 links, 400 Mbit/s".into(),
        eight_hosts(),
    ));
    lines
}

fn one_bottleneck(scheme: &str, mbps: f64) -> Value {
    let mut cell = Dumbbell {
        mbps,
        rtt_ms: 10.0,
        seconds: SECONDS,
        ..Dumbbell::default()
    }
    .json();
    cell["where"] = "emulate".into();
    cell["scheme"] = scheme.into();
    cell["flows"][0]["scheme"] = scheme.into();
    cell
}

/// Four pairs of hosts around two routers: every packet passes an access link, the shared
/// bottleneck and another access link.
fn eight_hosts() -> Value {
    let access = |name: &str, from: &str, to: &str| {
        json!({"name": name, "from": from, "to": to, "elements": [
            {"kind": "bottleneck", "rate": {"kind": "constant", "rate": 1_000_000_000u64},
             "queue": {"kind": "droptail", "packets": 1000}},
            {"kind": "delay", "delay": MS}]})
    };
    let middle = |name: &str, from: &str, to: &str| {
        json!({"name": name, "from": from, "to": to, "elements": [
            {"kind": "bottleneck", "rate": {"kind": "constant", "rate": 400_000_000u64},
             "queue": {"kind": "droptail", "bytes": 500_000}},
            {"kind": "delay", "delay": 3 * MS}]})
    };
    let mut hosts = vec![];
    let mut links = vec![middle("r1-r2", "r1", "r2"), middle("r2-r1", "r2", "r1")];
    let mut routes = vec![];
    let mut flows = vec![];
    for pair in 1..=4 {
        let (left, right) = (format!("left-{pair}"), format!("right-{pair}"));
        hosts.push(json!({"name": left}));
        hosts.push(json!({"name": right}));
        for (a, b) in [(left.as_str(), "r1"), ("r2", right.as_str())] {
            links.push(access(&format!("{a}-{b}"), a, b));
            links.push(access(&format!("{b}-{a}"), b, a));
        }
        let there = [format!("{left}-r1"), "r1-r2".into(), format!("r2-{right}")];
        let back = [format!("{right}-r2"), "r2-r1".into(), format!("r1-{left}")];
        routes.push(json!({"from": left, "to": right, "links": there}));
        routes.push(json!({"from": right, "to": left, "links": back}));
        flows.push(
            json!({"flow": pair, "scheme": "linux:cubic", "params": {}, "from": left,
            "to": right, "start_ns": 0, "stop_ns": (SECONDS * 1e9) as u64}),
        );
    }
    let mut cell = one_bottleneck("linux:cubic", 400.0);
    cell["network"] = json!({"kind": "graph", "hosts": hosts, "routers": ["r1", "r2"],
        "links": links, "routes": routes});
    cell["flows"] = flows.into();
    cell
}

/// The folder of this build.
pub(crate) fn target() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    Some(exe.parent()?.parent()?.to_owned())
}

/// The agent in it.
pub(crate) fn agent() -> Option<PathBuf> {
    let agent = target()?.join("narrows-agent");
    agent.is_file().then_some(agent)
}

/// The measurements of a run.
pub(crate) struct Emulated {
    pub mbps: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_percent: f64,
    busy_percent: f64,
    /// Of one processor, by the processes of all ends.
    ends_percent: f64,
    pub verdict: String,
}

/// Runs a cell; its flow follows the model if there is one.
pub(crate) fn emulate(
    agent: &Path,
    mut cell: Value,
    model: Option<&[u8]>,
) -> Result<Emulated, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("cell.json");
    if let Some(content) = model {
        let kept = keep_file(&folder.path().join("files"), "a.safetensors", content);
        cell["flows"][0]["params"]["model"] = kept.map_err(|error| error.to_string())?;
    }
    std::fs::write(&file, cell.to_string()).map_err(|error| error.to_string())?;
    let out = folder.path().join("cell");
    let output = Command::new(agent)
        .args(["emulate", "--cell"])
        .arg(&file)
        .arg("--out")
        .arg(&out)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let record = narrows_cell::open_record(&out).map_err(|error| error.to_string())?;
    let measured = narrows_record::metrics::measure(&record).map_err(|error| error.to_string())?;
    let rows = measured["flows"].as_array().cloned().unwrap_or_default();
    let all = rows.iter().find(|row| row["flow"] == "all");
    let late = record.run.lateness.clone().unwrap_or_default();
    let cpu = record.run.cpu.as_ref();
    let ends = record.run.processes.iter().filter_map(|one| one.run_ns);
    Ok(Emulated {
        mbps: all
            .and_then(|row| row["metrics"]["throughput_bps"].as_f64())
            .unwrap_or(f64::NAN)
            / 1e6,
        p50_us: late.p50_ns as f64 / 1e3,
        p99_us: late.p99_ns as f64 / 1e3,
        cpu_percent: cpu.map_or(f64::NAN, |cpu| cpu.emulator_ratio * 100.0),
        busy_percent: cpu.map_or(f64::NAN, |cpu| cpu.busy_ratio * 100.0),
        ends_percent: ends.sum::<u64>() as f64 / (SECONDS * 1e9) * 100.0,
        verdict: format!("{:?}", record.run.verdict).to_lowercase(),
    })
}
