//! Rules of a table under construction, and the changes that are tried of them.

use narrows_cc::parts::rule_table::{SIGNALS, Signals};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

/// Bounds of the signals (Remy: memoryrange.cc).
pub(crate) const END: f64 = 163_840.0;
/// Bounds of increment, multiple and spacing (ms).
const INCREMENTS: (i32, i32) = (0, 256);
pub(crate) const SPACINGS_MS: (f64, f64) = (1.0 / 150.0, 30.0);
/// Changes that are tried of each parameter; of the increment the shares of itself that are more than the changes.
const INCREMENT_STEPS: [(i32, f64); 4] = [(1, 0.0), (4, 0.1), (16, 0.3), (64, 0.9)];
const MULTIPLE_STEPS: [f64; 4] = [0.01, 0.04, 0.16, 0.5];
const SPACING_FACTORS: [f64; 4] = [1.1, 1.5, 3.0, 10.0];
/// Multiples tried with the increment that leads to the same window in the end.
const TURNS: [f64; 4] = [0.2, 0.5, 0.8, 0.95];
/// A rule: a box of signals and what to do there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(crate) lower: Signals,
    pub(crate) upper: Signals,
    pub(crate) increment: i32,
    pub(crate) multiple: f64,
    pub(crate) spacing_ms: f64,
    pub(crate) state: State,
}

/// The next step of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// It is to be improved.
    Pending,
    /// It may be split.
    Improved,
    /// No split has improved the table.
    Whole,
}

/// The candidates for one parameter, for each of the three, and for two together.
pub(crate) const CANDIDATES: [fn(&Rule) -> Vec<Rule>; 4] = [increments, multiples, spacings, turns];

/// Changes that show what a half of a rule may gain.
pub(crate) fn probes(rule: &Rule) -> Vec<Rule> {
    let with = |increment: f64, multiple: f64, spacing: f64| {
        let more = (f64::from(rule.increment) * increment).round() as i32;
        Rule {
            increment: more.clamp(INCREMENTS.0, INCREMENTS.1),
            multiple: (rule.multiple + multiple).clamp(0.0, 1.0),
            spacing_ms: (rule.spacing_ms * spacing).clamp(SPACINGS_MS.0, SPACINGS_MS.1),
            ..rule.clone()
        }
    };
    let mut probes = vec![
        with(0.6, 0.0, 1.0),
        with(1.6, 0.0, 1.0),
        with(1.0, -0.1, 1.0),
        with(1.0, 0.1, 1.0),
        with(1.0, 0.0, 0.6),
        with(1.0, 0.0, 1.6),
        with(3.0, 0.0, 0.3),
        with(0.3, -0.2, 3.0),
    ];
    probes.retain(|probe| probe != rule);
    probes
}

fn increments(rule: &Rule) -> Vec<Rule> {
    let steps = INCREMENT_STEPS
        .iter()
        .map(|(least, share)| (f64::from(rule.increment) * share).max(f64::from(*least)) as i32);
    let steps = steps.flat_map(|step| [-step, step]);
    let values = steps.map(|step| (rule.increment + step).clamp(INCREMENTS.0, INCREMENTS.1));
    let other = values.filter(|value| *value != rule.increment);
    other
        .map(|increment| Rule {
            increment,
            ..rule.clone()
        })
        .collect()
}

/// Other multiples with the increments that lead to the same window in the end, faster or slower.
fn turns(rule: &Rule) -> Vec<Rule> {
    if rule.multiple >= 1.0 {
        return Vec::new();
    }
    let window = f64::from(rule.increment) / (1.0 - rule.multiple);
    let turned = TURNS.iter().map(|&multiple| Rule {
        increment: ((window * (1.0 - multiple)).round() as i32).clamp(INCREMENTS.0, INCREMENTS.1),
        multiple,
        ..rule.clone()
    });
    turned.collect()
}

fn multiples(rule: &Rule) -> Vec<Rule> {
    let steps = MULTIPLE_STEPS.iter().flat_map(|step| [-step, *step]);
    let values = steps.map(|step| (rule.multiple + step).clamp(0.0, 1.0));
    let other = values.filter(|value| *value != rule.multiple);
    other
        .map(|multiple| Rule {
            multiple,
            ..rule.clone()
        })
        .collect()
}

fn spacings(rule: &Rule) -> Vec<Rule> {
    let factors = SPACING_FACTORS
        .iter()
        .flat_map(|factor| [1.0 / factor, *factor]);
    let values =
        factors.map(|factor| (rule.spacing_ms * factor).clamp(SPACINGS_MS.0, SPACINGS_MS.1));
    let other = values.filter(|value| *value != rule.spacing_ms);
    other
        .map(|spacing_ms| Rule {
            spacing_ms,
            ..rule.clone()
        })
        .collect()
}

/// The content of the file of a model.
pub(crate) fn encode(rules: &[Rule], notes: &[(String, String)]) -> Vec<u8> {
    let count = rules.len();
    let doubles = |values: &mut dyn Iterator<Item = f64>| -> Vec<u8> {
        values.flat_map(f64::to_le_bytes).collect()
    };
    let increments: Vec<u8> = rules
        .iter()
        .flat_map(|rule| rule.increment.to_le_bytes())
        .collect();
    let arrays = [
        ("increment", Dtype::I32, vec![count], increments),
        (
            "lower",
            Dtype::F64,
            vec![count, SIGNALS],
            doubles(&mut rules.iter().flat_map(|rule| rule.lower)),
        ),
        (
            "multiple",
            Dtype::F64,
            vec![count],
            doubles(&mut rules.iter().map(|rule| rule.multiple)),
        ),
        (
            "spacing_ms",
            Dtype::F64,
            vec![count],
            doubles(&mut rules.iter().map(|rule| rule.spacing_ms)),
        ),
        (
            "upper",
            Dtype::F64,
            vec![count, SIGNALS],
            doubles(&mut rules.iter().flat_map(|rule| rule.upper)),
        ),
    ];
    let views = arrays.iter().map(|(name, kind, shape, bytes)| {
        let view = TensorView::new(*kind, shape.clone(), bytes);
        (*name, view.expect("as many numbers as the shape has"))
    });
    crate::model_file::encode(views, "remy", notes)
}
