//! Simulates whole random cells: entry points for fuzzers in addition to `fuzz`.

use crate::{needed, schemes_files};
use narrows_cc::schemes;
use narrows_cell::Cell;
use narrows_net::testing::{Dice, example_files, examples};
use narrows_net::{Entry, links, queues, rates};
use narrows_record::metrics;
use narrows_units::Files;
use serde_json::{Map, Value, json};

/// Maximum rate of bottlenecks, which together with the length of a run limits its packets, memory and time: 10 Mbit/s
/// for 3 s are 3,750 packets of 1500 bytes.
const MOST_BPS: u64 = 10_000_000;
const MOST_MS: u64 = 3_000;

/// A random network of elements of all kinds, with random flows, chosen by any bytes: the run ends, its record passes
/// the verifier and can be measured, and the same cell results in the same record again. Returns whether there was a
/// run: bytes may also choose parameters that contradict each other.
///
/// # Panics
/// When that is not the case.
pub fn worlds(data: &[u8]) -> bool {
    let mut dice = Dice::bytes(data);
    let text = world(&mut dice);
    let cell = match Cell::parse_with(&text.to_string(), |_| Ok(files())) {
        Ok(cell) => cell,
        // Because of contradictory parameters, with one sentence.
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && !said.contains('\n'), "{said:?}");
            return false;
        }
    };
    let first = simulate(&cell, &text);
    if dice.percent(10) {
        assert_eq!(first, simulate(&cell, &text), "not the same again: {text}");
    }
    !first.is_empty()
}

/// The record's files by name, after all checks.
fn simulate(cell: &Cell, text: &Value) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("cell");
    let run = match narrows_sim::run(cell, &out, &mut |_| true) {
        Ok(run) => run,
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && !said.contains('\n'), "{said:?}: {text}");
            return Vec::new();
        }
    };
    let failed = run.checks.iter().find(|check| !check.ok);
    if let Some(check) = failed {
        panic!("{}: {}: {text}", check.name, check.detail);
    }
    let record = narrows_cell::open_record(&out).expect("the record can be read");
    let measured = metrics::measure(&record).expect("the record can be measured");
    let limits = narrows_sim::Limits {
        memory: u64::MAX,
        stop: &|| false,
    };
    if cell.unbounded().is_none() {
        let kept = narrows_sim::summarise(cell, &limits).expect("what can be written can be kept");
        let (found, written) = (kept.measured.to_string(), measured.to_string());
        assert_eq!(found, written, "differs in memory: {text}");
        assert_eq!((kept.verdict, kept.reasons), (run.verdict, run.reasons));
    }
    let entries = std::fs::read_dir(&out).expect("the folder of the record");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<(String, Vec<u8>)> = paths
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (
                name.into_owned(),
                std::fs::read(&path).expect("a file of the record"),
            )
        })
        .collect();
    found.sort();
    found
}

/// Files that elements and schemes name.
fn files() -> Files {
    let mut files = example_files();
    for (sha256, content) in schemes_files() {
        files.insert(&sha256, content);
    }
    files
}

/// An entry of a registry with one of its sets of examples.
fn some(dice: &mut Dice, entries: &[Entry], name: Option<&str>) -> Value {
    let entry = &entries[dice.below(entries.len() as u64) as usize];
    let sets: Vec<Map<String, Value>> = examples(entry);
    let mut element = dice.pick(&sets).clone();
    element.insert("kind".to_owned(), json!(entry.name));
    if let Some(name) = name {
        element.insert("name".to_owned(), json!(name));
    }
    Value::Object(element)
}

/// One direction: a bottleneck among up to three link elements, and a delay.
fn way(dice: &mut Dice, name: &str) -> Vec<Value> {
    let constant =
        json!({"kind": "constant", "rate": 100_000 + dice.below(100) * (MOST_BPS - 100_000) / 99});
    let rate = if dice.percent(50) {
        constant
    } else {
        some(dice, rates::ALL, None)
    };
    let queue = some(dice, queues::ALL, None);
    let mut way = vec![json!({"kind": "bottleneck", "rate": rate, "queue": queue})];
    way.push(json!({"kind": "delay", "delay": dice.below(100) * 1_000_000}));
    for _ in 0..dice.below(4) {
        let at = dice.below(way.len() as u64 + 1) as usize;
        way.insert(at, some(dice, links::ALL, None));
    }
    for (index, element) in way.iter_mut().enumerate() {
        element["name"] = json!(format!("{name}.{index}"));
    }
    way
}

/// Traffic of a flow: half of the flows send as much as they may.
fn traffic(dice: &mut Dice) -> Value {
    let ns = |dice: &mut Dice| (1 + dice.below(500)) * 1_000_000;
    let bps = 50_000 + dice.below(100) * 40_000;
    match dice.below(16) {
        0 => json!({"kind": "transfer", "bytes": 1 + dice.below(1 << 18)}),
        1 => json!({"kind": "onoff", "on": ns(dice), "off": ns(dice), "rate": bps}),
        2 => json!({"kind": "onoff", "on": ns(dice), "off": ns(dice)}),
        3 => {
            json!({"kind": "requests", "response": 1 + dice.below(1 << 16), "persistent": dice.percent(50)})
        }
        4 => json!({"kind": "arrivals", "size": 5_000 + dice.below(1 << 16), "load": bps}),
        5 => json!({"kind": "web", "users": 1 + dice.below(8), "persistent": dice.percent(50)}),
        6 => json!({"kind": "cbr", "rate": bps}),
        7 => json!({"kind": "poisson", "rate": bps}),
        _ => json!({"kind": "bulk"}),
    }
}

fn world(dice: &mut Dice) -> Value {
    let duration_ns = (500 + dice.below(MOST_MS - 500)) * 1_000_000;
    let flows: Vec<Value> = (1..=1 + dice.below(4))
        .map(|flow| {
            let traffic = traffic(dice);
            let datagrams = traffic["kind"] == "cbr" || traffic["kind"] == "poisson";
            let scheme = dice.pick(schemes::ALL).name;
            let scheme = if datagrams { "udp" } else { scheme };
            let start_ns = dice.below(duration_ns / 2_000_000) * 1_000_000;
            json!({"flow": flow, "scheme": scheme, "params": needed(scheme), "start_ns": start_ns,
                   "stop_ns": duration_ns, "traffic": traffic, "extra_rtt_ns": dice.below(50) * 1_000_000,
                   "direction": if dice.percent(75) { "forward" } else { "backward" }})
        })
        .collect();
    json!({
        "format": "narrows/cell/1", "id": "world-r1", "scheme": "worlds", "run": 1, "where": "simulate",
        "seed": dice.below(1 << 16), "duration_ns": duration_ns, "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "record": if dice.percent(75) { "packets" } else { "bins" },
        "network": {"kind": "dumbbell", "forward": way(dice, "forward"), "backward": way(dice, "backward")},
        "flows": flows, "transport": {},
    })
}
