//! One-way delay.

use super::subject::ARRIVED;
use super::{Measured, Metric, Subject};

const BASE: Metric = Metric {
    source: "Yan et al., Pantheon, USENIX ATC 2018",
    compute: mean,
    ..Metric::TIME
};

const MEAN: Metric = Metric {
    name: "delay_mean_ns",
    label: "mean one-way delay",
    definition: "Mean time from leaving the sender's network layer to reaching the receiver's, \
                 over all packets of the data direction that arrived.",
    compute: mean,
    ..BASE
};

const MAX: Metric = Metric {
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

percentiles!(
    "delay",
    "one-way delay",
    "of the one-way delays of all packets of the data direction that arrived (nearest rank).",
    percentile,
    BASE,
    [MEAN],
    [50 "median" "Median", 95 "95th percentile" "95th percentile", 99 "99th percentile" "99th percentile"],
    [MAX]
);

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
