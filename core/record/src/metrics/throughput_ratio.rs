//! Ratio of throughputs.

use super::{Better, Group, Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "throughput_ratio",
    label: "throughput ratio",
    better: Some(Better::Higher),
    scope: Scope::All,
    group: Some(Group::Sharing),
    definition: "Smallest throughput of a flow divided by the largest, while all flows run, from \
                 the last start to the first stop: 1 if all are equal, 0 if one got nothing.",
    source: "Ha et al., PFLDnet 2006 (throughput ratio of two flows)",
    compute,
    ..Metric::NUMBER
}];

fn compute(subject: &Subject<'_>) -> Measured {
    if subject.traffic().count() < 2 {
        return Err("there is only one flow".into());
    }
    if subject.shared_span_ns.is_none() {
        return Err("the flows never run all at the same time".into());
    }
    // All throughputs refer to the same span, so bytes serve as well.
    let shares = || subject.traffic().map(|t| t.shared_bytes);
    match (shares().min(), shares().max()) {
        (Some(minimum), Some(maximum)) if maximum > 0 => Ok(minimum as f64 / maximum as f64),
        _ => Err(subject.nothing("arrived while all flows ran")),
    }
}
