//! Parameters with which every entry of the registries can be tried.

use crate::{Entry, Files};
use narrows_units::{Kind, ParamSpec};
use serde_json::{Map, Value, json};

/// The files that examples name: two traces of opportunities, two of rates, two of delays.
pub fn example_files() -> Files {
    let mut files = Files::default();
    for (name, content) in CONTENTS {
        files.insert(name, content.as_bytes().to_vec());
    }
    files
}

const CONTENTS: [(&str, &str); 6] = [
    ("opportunities", "0\n1\n1\n4\n9\n9\n9\n30\n"),
    ("opportunities-2", "2\n3\n"),
    (
        "rates",
        "time_ns,rate_bps\n0,10000000\n50000000,0\n70000000,3000000\n200000000,0\n",
    ),
    ("rates-2", "time_s,rate_mbps\n0,5\n1,0\n"),
    (
        "delays",
        "time_s,delay_ms\n0,20\n0.1,5\n0.3,35.5\n0.35,8\n0.6,0\n",
    ),
    ("delays-2", "time_ns,delay_ns\n0,3000000\n1000,0\n"),
];

/// Sets of parameters of `entry`, in base units: first one with only the required parameters, then variants with each
/// parameter changed in turn (each word of a choice). All of them can be built, with [`example_files`] as files.
///
/// The values are chosen by kind and kept within bounds, unless the parameter has [`ParamSpec::trial`].
pub fn examples(entry: &Entry) -> Vec<Map<String, Value>> {
    let mut base = Map::new();
    for spec in entry.params {
        let limits = ["bytes", "packets", "threshold"];
        if spec.required || limits.contains(&spec.name) && spec.default.is_none() {
            base.insert(spec.name.to_owned(), guess(spec, 0));
        }
    }
    let mut sets = vec![base.clone()];
    for spec in entry.params {
        let values = match (spec.kind, spec.default) {
            (Kind::Choice(words), _) => words.iter().map(|word| json!(word)).collect(),
            (Kind::Flag, default) => vec![json!(default != Some("true"))],
            (Kind::File, _) => vec![guess(spec, 1), guess(spec, 2)],
            _ => vec![guess(spec, 1)],
        };
        for value in values {
            let mut set = base.clone();
            set.insert(spec.name.to_owned(), value);
            sets.push(set);
        }
    }
    sets
}

/// True if an element with these parameters may keep packets for ever.
pub fn strands(params: &Map<String, Value>) -> bool {
    params.get("loop") == Some(&json!(false))
}

fn guess(spec: &ParamSpec, variant: usize) -> Value {
    let trial = spec.trial.get(variant).or(spec.trial.last());
    if let Some(text) = trial.filter(|_| spec.kind != Kind::File) {
        return serde_json::from_str(text).expect("trial values are JSON");
    }
    let within = |values: [u64; 2]| {
        let value = values[variant.min(1)];
        json!((value as f64).clamp(spec.range.0, spec.range.1) as u64)
    };
    let real = |values: [f64; 2]| json!(values[variant.min(1)].clamp(spec.range.0, spec.range.1));
    let steps = |values: [u64; 2]| {
        let values = values.map(|value| value / [1, 3][variant.min(1)]);
        json!([[0, values[0]], [1_000_000_000, values[1]]])
    };
    match spec.kind {
        Kind::Rate => within([10_000_000, 3_000_000]),
        Kind::Span => within([7_000_000, 2_000_000]),
        Kind::Bytes => within([20_000, 6_000]),
        Kind::Packets | Kind::Count => within([12, 5]),
        Kind::Ratio => real([0.2, 0.05]),
        Kind::Number => real([1.0, 2.0]),
        Kind::Flag => json!(true),
        Kind::Choice(words) => json!(words[0]),
        Kind::Counts => [json!([3, 5, 8]), json!([1, 2, 40])][variant.min(1)].clone(),
        Kind::RateSteps => steps([10_000_000, 2_000_000]),
        Kind::SpanSteps => steps([7_000_000, 2_000_000]),
        Kind::File => {
            let name = trial.expect("files are given");
            json!({"name": format!("{name}.txt"), "sha256": name})
        }
    }
}
