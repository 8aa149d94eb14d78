//! Throughput: what arrived, repeated data included.

use super::subject::rate_bps;
use super::{Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "throughput_bps",
    label: "throughput",
    scope: Scope::Any,
    definition: "Bits of all IP packets that arrived, repeated data included, divided by the time between the first and the last arrival. The first packet's bits are counted, although its arrival starts the time. For a link: bits of all IP packets that \
                 passed it, in either role, over the time between the first and the last.",
    source: "Yan et al., Pantheon, USENIX ATC 2018",
    compute,
    ..Metric::RATE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    if let Some(link) = subject.link {
        let (first, last) = link.span_ns()?;
        return Ok(rate_bps(link.carried_bytes, last - first));
    }
    Ok(rate_bps(
        subject.sum(|t| t.arrived_bytes),
        subject.span_ns()?,
    ))
}
