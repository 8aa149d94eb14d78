//! Packet delay variation: how far the slow packets of a flow are behind its fastest one.
//!
//! Provenance: RFC 5481, section 4.2 (PDV), here its 99th percentile. Deviations: none.

use narrows_record::metrics::{Measured, Metric, Subject};

/// Registry entries.
pub const METRICS: &[Metric] = &[Metric {
    name: "delay_variation_p99_ns",
    label: "p99 delay variation",
    definition: "99th percentile of one-way delay less the smallest one-way delay of the flow's packets.",
    source: "RFC 5481, section 4.2",
    compute,
    ..Metric::TIME
}];

/// Returns the value, or the reason why there is none, as a clause.
fn compute(subject: &Subject<'_>) -> Measured {
    let percentile = |share| subject.delays.percentile(share);
    match (percentile(0.0), percentile(0.99)) {
        (Some(fastest), Some(slow)) => Ok((slow - fastest) as f64),
        _ => Err(subject.nothing("arrived")),
    }
}
