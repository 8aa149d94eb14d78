//! The central claim: a scheme behaves alike in the simulator and in the emulator, because both
//! drive the same objects.
//!
//! All schemes run at once, each flow between separate hosts and over a separate path: 12 Mbit/s, a round trip of 40
//! ms, and a buffer of one product. Tolerances are those that `docs/verification.md` promises. The verdict guards them:
//! a scheme that differs in an undisturbed run fails the test immediately. After a run that this machine disturbed,
//! the schemes that differed run again, without the others, which leaves more of the machine to each. Those that the
//! machine disturbed in every attempt are announced as skipped.

use crate::common::{ATTEMPTS, Folder, MACHINE, SPIKES, emulate, run_to_end, skip, undisturbed};
use narrows_cell::{Cell, keep_file, load_files, open_record};
use narrows_record::Record;
use narrows_record::metrics;
use narrows_tests::{Dumbbell, models};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Length of a run: the first second, in which most schemes start slowly, is a small part of it.
const SECONDS: f64 = 10.0;
/// Seeds of the simulations for flows that diverge at random.
const SEEDS: u64 = 6;

/// A scheme, and the tolerated difference between emulation and simulation.
struct Part {
    scheme: &'static str,
    /// Published model that it needs; without it the scheme is skipped.
    model: Option<&'static str>,
    flows: usize,
    /// Largest random delay of each acknowledgement.
    jitter_ms: u64,
    /// Relative tolerances of the throughput, and of the 95th percentile of the queueing delay.
    tolerances: [f64; 2],
}

impl Part {
    const fn new(scheme: &'static str, tolerances: [f64; 2]) -> Part {
        Part {
            scheme,
            model: None,
            flows: 1,
            jitter_ms: 0,
            tolerances,
        }
    }

    const fn with_model(scheme: &'static str, model: &'static str, tolerances: [f64; 2]) -> Part {
        Part {
            model: Some(model),
            ..Part::new(scheme, tolerances)
        }
    }
}

/// A part with the parameters of its scheme.
type Chosen = (&'static Part, Value);

const LOSS_BASED: [f64; 2] = [0.03, 0.10];
const OTHERS: [f64; 2] = [0.05, 0.15];

const PARTS: &[Part] = &[
    Part::new("cubic", LOSS_BASED),
    Part::new("reno", LOSS_BASED),
    Part::new("vivace", OTHERS),
    Part::new("sprout", OTHERS),
    Part::new("gcc", OTHERS),
    Part::with_model("remy", "tao-100x", OTHERS),
    Part::with_model("indigo", "indigo-1-32", OTHERS),
    // On a path without any jitter a pause of two or three milliseconds of a process is enough to drive Copa out of its
    // cycle for seconds (`docs/verification.md`), and every machine has some. With jitter of acknowledgements this happens
    // all the time, in both planes, so that means of randomly diverging flows are compared.
    Part {
        flows: 4,
        jitter_ms: 2,
        ..Part::new("copa", OTHERS)
    },
];

const METRICS: [&str; 2] = ["throughput_bps", "queueing_delay_p95_ns"];

/// The parts whose models are available, with their files copied to those of the cell.
fn available_parts(folder: &Folder) -> Vec<Chosen> {
    let files = folder.path().join("files");
    let params = PARTS.iter().filter_map(|part| {
        let Some(model) = part.model else {
            return Some((part, json!({})));
        };
        let content = models::content(model)?;
        let kept = keep_file(&files, &format!("{model}.safetensors"), &content).unwrap();
        Some((part, json!({"model": kept})))
    });
    params.collect()
}

/// A cell in which each flow has separate hosts and a separate path.
fn side_by_side(parts: &[Chosen], place: &str, seed: u64) -> Value {
    let dumbbell = Dumbbell {
        seconds: SECONDS,
        seed,
        ..Dumbbell::default()
    };
    let mut cell = dumbbell.json();
    let (path, plain) = (cell["network"].clone(), cell["flows"][0].clone());
    let (mut hosts, mut links, mut routes, mut flows) = (vec![], vec![], vec![], vec![]);
    let each = parts.iter().flat_map(|part| vec![part; part.0.flows]);
    for (number, (part, params)) in (1..).zip(each) {
        let ends = [format!("sender-{number}"), format!("receiver-{number}")];
        for (way, [from, to]) in [
            ("forward", [&ends[0], &ends[1]]),
            ("backward", [&ends[1], &ends[0]]),
        ] {
            let link = format!("{from}-{to}");
            let mut elements = path[way].as_array().unwrap().clone();
            if way == "backward" && part.jitter_ms > 0 {
                let spread = part.jitter_ms * crate::common::MS;
                elements.push(json!({"kind": "jitter", "law": "uniform", "spread": spread}));
            }
            for (element, index) in elements.iter_mut().zip(0..) {
                element["name"] = format!("{link}.{index}").into();
            }
            hosts.push(json!({"name": from}));
            links.push(json!({"name": link, "from": from, "to": to, "elements": elements}));
            routes.push(json!({"from": from, "to": to, "links": [link]}));
        }
        let mut flow = plain.clone();
        flow["flow"] = number.into();
        flow["scheme"] = part.scheme.into();
        flow["params"] = params.clone();
        (flow["from"], flow["to"]) = (json!(ends[0]), json!(ends[1]));
        flows.push(flow);
    }
    cell["where"] = place.into();
    cell["network"] =
        json!({"kind": "graph", "hosts": hosts, "routers": [], "links": links, "routes": routes});
    cell["flows"] = flows.into();
    cell
}

fn simulated(folder: &Folder, cell: &Value, seed: u64) -> Value {
    let files = folder.path().join("files");
    let cell = Cell::parse_with(&cell.to_string(), |json| load_files(json, &files)).unwrap();
    let out = folder.path().join(format!("simulated-{seed}"));
    narrows_sim::run(&cell, &out, &mut |_| true).unwrap();
    let measured = metrics::measure(&open_record(&out).unwrap()).unwrap();
    std::fs::remove_dir_all(out).unwrap();
    measured
}

/// Mean of some values and its standard error, which is 0 for a single value.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = if values.len() > 1 {
        (squares / (count - 1.0) / count).sqrt()
    } else {
        0.0
    };
    (mean, error)
}

/// Values of a metric of flows `from` to `to`.
fn values(measured: &Value, metric: &str, from: usize, to: usize) -> Vec<f64> {
    let flow = |number: usize| {
        let name = number.to_string();
        let mut rows = measured["flows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["flow"] == name).unwrap();
        row["metrics"][metric].as_f64().unwrap_or(f64::NAN)
    };
    (from..to).map(flow).collect()
}

/// How the emulated flows of a part, from number `from` on, differ from the simulated ones, as a sentence.
fn difference(part: &Part, from: usize, simulated: &[Value], emulated: &Value) -> Option<String> {
    let to = from + part.flows;
    let mut differences = String::new();
    for (metric, tolerance) in METRICS.into_iter().zip(part.tolerances) {
        // A single flow has the same random numbers in both planes. Several flows average over them.
        let seeds = if part.flows > 1 { simulated.len() } else { 1 };
        let simulated = simulated[..seeds].iter();
        let expected: Vec<f64> = simulated
            .flat_map(|measured| values(measured, metric, from, to))
            .collect();
        let (expected, error) = mean(&expected);
        let (seen, error_seen) = mean(&values(emulated, metric, from, to));
        // Three standard errors: if the planes agree, that is exceeded by chance once in 400 cases.
        let chance = 3.0 * error.hypot(error_seen) / expected;
        let ratio = seen / expected;
        let scheme = part.scheme;
        println!("{scheme} {metric}: {seen:.0}, {ratio:.3} of the simulated");
        // NaN does not agree with anything.
        let alike = (ratio - 1.0).abs() <= tolerance.max(chance);
        if !alike {
            let _ = write!(
                differences,
                "{scheme} {metric}: emulated / simulated is {ratio:.3}; "
            );
        }
    }
    (!differences.is_empty()).then_some(differences)
}

/// Runs the parts in both planes. Returns those that differ with their differences, and the record of the emulated run.
fn compare(folder: &Folder, parts: &[Chosen]) -> (Vec<(Chosen, String)>, Record) {
    let simulated: Vec<Value> = (1..=SEEDS)
        .map(|seed| simulated(folder, &side_by_side(parts, "simulate", seed), seed))
        .collect();
    let output = run_to_end(&mut emulate(folder, &side_by_side(parts, "emulate", 1)));
    assert!(output.status.success(), "{output:?}");
    let out = folder.path().join("out");
    let record = open_record(&out).unwrap();
    let emulated = metrics::measure(&record).unwrap();
    std::fs::remove_dir_all(out).unwrap();
    let mut from = 1;
    let mut differing = Vec::new();
    for (part, params) in parts {
        if let Some(text) = difference(part, from, &simulated, &emulated) {
            differing.push(((*part, params.clone()), text));
        }
        from += part.flows;
    }
    (differing, record)
}

#[test]
fn simulated_and_emulated_runs_agree() {
    if !crate::common::can_emulate() {
        return;
    }
    let folder = Folder::new("agreement");
    let mut parts = available_parts(&folder);
    let mut disturbed = Vec::new();
    for _ in 0..ATTEMPTS {
        let (differing, record) = compare(&folder, &parts);
        if differing.is_empty() {
            return;
        }
        let differences: String = differing.iter().map(|(_, text)| &**text).collect();
        assert!(!undisturbed(&record), "{differences}");
        let reasons = record.run.reasons;
        for reason in &reasons {
            let code = &*reason.code;
            let of_machine = MACHINE.contains(&code) || SPIKES.contains(&code);
            assert!(of_machine, "{differences}{}", reason.text);
        }
        let reasons: Vec<String> = reasons.into_iter().map(|reason| reason.text).collect();
        disturbed.push(format!("{differences}{}", reasons.join(" ")));
        parts = differing.into_iter().map(|(part, _)| part).collect();
    }
    skip(format!(
        "this machine disturbed all attempts: {}",
        disturbed.join(" | ")
    ));
}
