//! Jain's fairness index.

use super::{Better, Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "jain_index",
    label: "Jain's fairness index",
    better: Some(Better::Higher),
    scope: Scope::All,
    definition: "(sum x)^2 / (n sum x^2) over the flows' throughputs x while all n flows run, from \
                 the last start to the first stop: 1 if all are equal, 1/n if one flow has everything.",
    source: "Jain, Chiu and Hawe, DEC-TR-301, 1984",
    compute,
    ..Metric::NUMBER
}];

fn compute(subject: &Subject<'_>) -> Measured {
    let shares: Vec<f64> = subject.traffic().map(|t| t.shared_bytes as f64).collect();
    if shares.len() < 2 {
        return Err("there is only one flow".into());
    }
    if subject.shared_span_ns.is_none() {
        return Err("the flows never run all at the same time".into());
    }
    // All throughputs refer to the same span, so bytes serve as well.
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if sum == 0.0 {
        return Err(subject.nothing("arrived while all flows ran"));
    }
    Ok(sum * sum / (shares.len() as f64 * squares))
}
