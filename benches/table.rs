//! `cargo bench -p narrows-bench` prints the benchmark table. Numbers are median (min..max) of
//! repeated runs; quote them with the machine in the first line.
//!
//! Sections can be chosen: `cargo bench -p narrows-bench -- simulator schemes emulator`.

use narrows_bench::{Spread, machine, peak_memory_mb, repeat};
use narrows_cc::{AckEvent, Setup, schemes};
use narrows_tests::Dumbbell;
use narrows_units::{Bytes, Params, Span, Stream, Time};
use std::path::PathBuf;
use std::process::Command;

const RUNS: usize = 5;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let section = |name: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == name);
    println!("{}", machine());
    println!("median (min..max) of {RUNS} runs\n");
    if section("simulator") {
        simulator();
    }
    if section("schemes") {
        per_ack();
    }
    if section("emulator") {
        emulator();
    }
}

/// Data packets delivered per second of one core.
fn simulator() {
    println!(
        "simulator                                          million packets/s     peak memory"
    );
    let four = Dumbbell {
        mbps: 400.0,
        buffer_bdp: 1.0,
        schemes: vec!["reno"; 4],
        seconds: 100.0,
        record: "bins",
        ..Dumbbell::default()
    };
    let cases = [
        ("4 reno, 400 Mbit/s, 40 ms, 2 MB, 100 s, bins", four.clone()),
        (
            "4 cubic, the same",
            Dumbbell {
                schemes: vec!["cubic"; 4],
                ..four.clone()
            },
        ),
        (
            "4 reno, the same, 1 % random loss",
            Dumbbell {
                loss: 0.01,
                ..four.clone()
            },
        ),
        (
            "32 reno, the same",
            Dumbbell {
                schemes: vec!["reno"; 32],
                ..four.clone()
            },
        ),
        (
            "4 reno, the same, packets (not written)",
            Dumbbell {
                record: "packets",
                ..four
            },
        ),
    ];
    for (name, dumbbell) in cases {
        let cell = dumbbell.cell();
        let spread = repeat(
            RUNS,
            || {
                narrows_sim::run_in_memory(&cell)
                    .expect("the cell runs")
                    .0
                    .totals()
                    .data_delivered
            },
            |packets, seconds| *packets as f64 / seconds / 1e6,
        );
        println!(
            "{name:50} {:>18} {:12.0} MB",
            spread.show(2),
            peak_memory_mb()
        );
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = Dumbbell {
        mbps: 900.0,
        schemes: vec!["cubic"; 3],
        seconds: 30.0,
        ..Dumbbell::default()
    };
    let mut run = 0;
    let spread = repeat(
        3,
        || {
            run += 1;
            let out = folder.path().join(run.to_string());
            let document = written.simulate(&out);
            document
                .flows
                .iter()
                .filter_map(|flow| flow.receiver.received_packets)
                .sum::<u64>()
        },
        |packets, seconds| *packets as f64 / seconds / 1e6,
    );
    let size = folder
        .path()
        .join("1/packets.parquet")
        .metadata()
        .map_or(0, |file| file.len());
    println!(
        "{:50} {:>18} {:12.0} MB; {:.1} MB on disk\n",
        "3 cubic, 900 Mbit/s, 30 s, written and verified",
        spread.show(2),
        peak_memory_mb(),
        size as f64 / 1e6
    );
}

/// Time that a scheme takes for one acknowledgement of two packets.
fn per_ack() {
    const ACKS: u64 = 1_000_000;
    println!("schemes              ns per acknowledgement");
    for scheme in schemes::ALL {
        let spread = repeat(
            RUNS,
            || {
                let setup = Setup {
                    mss: Bytes::new(1448),
                    initial_window: 10,
                    now: Time::ZERO,
                    random: Stream::new(1, "bench"),
                };
                let params = Params::resolve(scheme.params, []).expect("defaults resolve");
                let mut built = (scheme.build)(&params, setup).expect("defaults build");
                let mut sum = 0;
                for index in 0..ACKS {
                    let mut ack = AckEvent::new(Time::from_ns(index * 24_000));
                    ack.bytes = Bytes::new(2896);
                    ack.latest_rtt = Some(Span::from_ms(40));
                    ack.smoothed_rtt = Span::from_ms(40);
                    ack.min_rtt = Span::from_ms(40);
                    ack.round_start = index % 800 == 0;
                    built.on_ack(&ack);
                    sum += built.allowance().cwnd.map_or(0, Bytes::get) & 1;
                }
                std::hint::black_box(sum)
            },
            |_, seconds| seconds * 1e9 / ACKS as f64,
        );
        println!("{:20} {}", scheme.name, spread.show(1));
    }
    println!();
}

/// What the emulator delivers, and how punctually.
fn emulator() {
    let Some(agent) = agent() else {
        println!(
            "emulator: not measured; build the agent first (cargo build --release -p narrows-agent)"
        );
        return;
    };
    println!(
        "emulator, linux:cubic, 10 ms, 1 BDP, 10 s     delivered Mbit/s   late p50 us   late p99 us   emulator CPU %   verdicts"
    );
    for mbps in [10.0, 100.0, 400.0, 1000.0, 1500.0, 2000.0] {
        let (mut rate, mut p50, mut p99, mut cpu) = (vec![], vec![], vec![], vec![]);
        let mut verdicts = vec![];
        for _ in 0..3 {
            match emulate(&agent, mbps) {
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
            "{:>7.0} Mbit/s {:>46} {:>13} {:>13} {:>16}   {}",
            mbps,
            Spread::of(rate).show(1),
            Spread::of(p50).show(1),
            Spread::of(p99).show(0),
            Spread::of(cpu).show(0),
            verdicts.join(" ")
        );
    }
}

/// The agent beside this program's own build folder.
fn agent() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let agent = exe.parent()?.parent()?.join("narrows-agent");
    agent.is_file().then_some(agent)
}

struct Emulated {
    mbps: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_percent: f64,
    verdict: String,
}

fn emulate(agent: &PathBuf, mbps: f64) -> Result<Emulated, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut cell = Dumbbell {
        mbps,
        rtt_ms: 10.0,
        seconds: 10.0,
        ..Dumbbell::default()
    }
    .json();
    cell["where"] = "emulate".into();
    cell["scheme"] = "linux:cubic".into();
    cell["flows"][0]["scheme"] = "linux:cubic".into();
    let file = folder.path().join("cell.json");
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
    let late = record.run.lateness.clone().unwrap_or_default();
    Ok(Emulated {
        mbps: measured["flows"][0]["metrics"]["throughput_bps"]
            .as_f64()
            .unwrap_or(f64::NAN)
            / 1e6,
        p50_us: late.p50_ns as f64 / 1e3,
        p99_us: late.p99_ns as f64 / 1e3,
        cpu_percent: record
            .run
            .cpu
            .as_ref()
            .map_or(f64::NAN, |cpu| cpu.emulator_ratio * 100.0),
        verdict: format!("{:?}", record.run.verdict).to_lowercase(),
    })
}
