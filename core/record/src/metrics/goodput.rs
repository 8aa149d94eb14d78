//! Goodput: new data that reached the application.

use super::subject::rate_bps;
use super::{Measured, Metric, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "goodput_bps",
    label: "goodput",
    definition: "Bits of application data that the receiver received for the first time, without headers and retransmissions, divided by the time between the first and the last arrival of the flow's packets; by the time between its start and its stop where its packets were not observed (runs between hosts without a tunnel). Where only a part of \
                 the run is measured: application data that the sender saw acknowledged between \
                 the first and the last sample of its states in that part, over that time.",
    source: "RFC 5166, section 2.1.1",
    compute,
    ..Metric::RATE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    if subject.whole_run().is_err() {
        return measure_part(subject);
    }
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

/// The sum over flows, each over the time between its samples.
fn measure_part(subject: &Subject<'_>) -> Measured {
    let mut sum = 0.0;
    for (_, states) in subject.states() {
        let missing = "the sender reported fewer than two states in the part that is measured";
        let ((from, before), (to, after)) = states.delivered.ok_or(missing)?;
        if from >= to {
            return Err(missing.into());
        }
        sum += rate_bps(after.saturating_sub(before), to - from);
    }
    Ok(sum)
}
