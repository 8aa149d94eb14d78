//! Goodput: new data that reached the application.

use super::subject::rate_bps;
use super::{Better, Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRIC: Metric = Metric {
    name: "goodput_bps",
    label: "goodput",
    unit: "bit/s",
    show_unit: "Mbit/s",
    show_scale: 1e-6,
    better: Some(Better::Higher),
    scope: Scope::Both,
    definition: "Bits of application data that the receiver got for the first time, without \
                 headers and repetitions, divided by the time between the first and the last \
                 arrival of the flow's packets; by the time between its start and its stop where nobody \
                 has seen its packets (runs between hosts without a tunnel).",
    source: "RFC 5166, section 2.1.1",
    compute,
};

fn compute(subject: &Subject<'_>) -> Measured {
    let span = match subject.active_ns() {
        Some(span) => span,
        None => subject.span_ns()?,
    };
    let mut bytes = 0;
    for summary in subject.summaries() {
        bytes += summary
            .and_then(|flow| flow.receiver.goodput_bytes)
            .ok_or("the receiver did not count new data")?;
    }
    Ok(rate_bps(bytes, span))
}
