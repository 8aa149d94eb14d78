//! Loss.

use super::{Measured, Metric, Subject};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[METRIC, PANTHEON];

const METRIC: Metric = Metric {
    name: "loss_ratio",
    label: "loss",
    definition: "Packets that the network dropped, divided by packets dropped or delivered. \
                 Packets still in flight at the end are neither.",
    source: "RFC 5166, section 2.1.3",
    compute: loss,
    ..Metric::SHARE
};

const PANTHEON: Metric = Metric {
    name: "loss_pantheon_ratio",
    label: "loss as in Pantheon",
    definition: "One minus the ratio of bytes that arrived to bytes sent. Packets still in \
                 flight at the end count as lost.",
    source: "Yan et al., Pantheon, USENIX ATC 2018",
    compute: pantheon,
    ..METRIC
};

fn loss(subject: &Subject<'_>) -> Measured {
    subject.both_ends()?;
    let dropped = subject.sum(|t| t.dropped_packets);
    match dropped + subject.sum(|t| t.arrived_packets) {
        0 => Err(subject.nothing("was dropped or delivered")),
        judged => Ok(dropped as f64 / judged as f64),
    }
}

fn pantheon(subject: &Subject<'_>) -> Measured {
    subject.both_ends()?;
    match subject.sum(|t| t.sent_bytes) {
        0 => Err(subject.nothing("was sent")),
        sent => Ok(1.0 - subject.sum(|t| t.arrived_bytes) as f64 / sent as f64),
    }
}
