//! `cargo bench -p narrows-bench` prints the benchmark table. Numbers are median (min..max) of
//! repeated runs; quote them with the machine in the first line.
//!
//! Sections can be chosen: `cargo bench -p narrows-bench -- simulator htsim ns3 schemes gym networks logs emulator endpoints
//! programs tunnel`.

use narrows_bench::{
    emulator, gym, logs, machine, networks, other_simulators, peak_memory_mb, programs, repeat,
    schemes, tunnel,
};
use narrows_tests::Dumbbell;

const RUNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((tunnel::parts::WORD, rest)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        tunnel::parts::play(rest).expect("the part is played to its end");
        return;
    }
    let wanted: Vec<String> = arguments
        .into_iter()
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let section = |name: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == name);
    println!("{}", machine());
    println!("median (min..max) of {RUNS} runs\n");
    if section("simulator") {
        simulator();
    }
    if section("htsim") {
        other_simulators::htsim();
    }
    if section("ns3") {
        other_simulators::ns3();
    }
    if section("schemes") {
        schemes::table(RUNS);
    }
    if section("gym") {
        gym::table(RUNS);
    }
    if section("networks") {
        networks::table(RUNS);
    }
    if section("logs") {
        logs::table(RUNS);
    }
    if section("emulator") {
        emulator::table();
    }
    if section("endpoints") {
        emulator::endpoints();
    }
    if section("programs") {
        programs::table();
    }
    if section("tunnel") {
        tunnel::table();
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
