//! One-way delay.

use super::subject::ARRIVED;
use super::{Better, Measured, Metric, Scope, Subject};

const BASE: Metric = Metric {
    name: "",
    label: "",
    unit: "ns",
    show_unit: "ms",
    show_scale: 1e-6,
    better: Some(Better::Lower),
    scope: Scope::Both,
    happened: None,
    definition: "",
    source: "Yan et al., Pantheon, USENIX ATC 2018",
    compute: mean,
};

/// Registry entry.
pub(super) const MEAN: Metric = Metric {
    name: "delay_mean_ns",
    label: "mean one-way delay",
    definition: "Mean time from leaving the sender's network layer to reaching the receiver's, \
                 over all packets of the data direction that arrived.",
    compute: mean,
    ..BASE
};

/// Registry entry.
pub(super) const P50: Metric = Metric {
    name: "delay_p50_ns",
    label: "median one-way delay",
    definition: "Median of the one-way delays of all packets of the data direction that arrived \
                 (nearest rank).",
    compute: |subject| percentile(subject, 0.5),
    ..BASE
};

/// Registry entry.
pub(super) const P95: Metric = Metric {
    name: "delay_p95_ns",
    label: "95th percentile one-way delay",
    definition: "95th percentile of the one-way delays of all packets of the data direction that \
                 arrived (nearest rank).",
    compute: |subject| percentile(subject, 0.95),
    ..BASE
};

/// Registry entry.
pub(super) const P99: Metric = Metric {
    name: "delay_p99_ns",
    label: "99th percentile one-way delay",
    definition: "99th percentile of the one-way delays of all packets of the data direction that \
                 arrived (nearest rank).",
    compute: |subject| percentile(subject, 0.99),
    ..BASE
};

/// Registry entry.
pub(super) const MAX: Metric = Metric {
    name: "delay_max_ns",
    label: "largest one-way delay",
    definition: "Largest one-way delay of all packets of the data direction that arrived.",
    compute: |subject| {
        subject
            .delays
            .max()
            .map(|ns| ns as f64)
            .ok_or_else(|| subject.nothing(ARRIVED))
    },
    ..BASE
};

fn mean(subject: &Subject<'_>) -> Measured {
    subject
        .delays
        .mean()
        .ok_or_else(|| subject.nothing(ARRIVED))
}

fn percentile(subject: &Subject<'_>, p: f64) -> Measured {
    subject
        .delays
        .percentile(p)
        .map(|ns| ns as f64)
        .ok_or_else(|| subject.nothing(ARRIVED))
}
