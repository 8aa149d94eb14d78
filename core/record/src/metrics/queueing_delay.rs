//! Queueing delay: one-way delay less the smallest possible one or, on a real path, less the smallest observed one.
//!
//! Where the path consists of fixed delays and queues only, that is the time spent in queues. Where elements delay
//! single packets by varying amounts (jitter), that variation is included: delays alone do not distinguish it from
//! queueing. Where propagation itself changes during the run, the metric has no value.

use super::subject::ARRIVED;
use super::{DelayDistribution, Measured, Metric, Subject};

const BASE: Metric = Metric {
    source: "RFC 5166, section 2.1.2; RFC 5481, section 4.2 (variation from the smallest delay)",
    compute: |subject| measure(subject, DelayDistribution::mean),
    ..Metric::TIME
};

const MEAN: Metric = Metric {
    name: "queueing_delay_mean_ns",
    label: "mean queueing delay",
    definition: "Mean one-way delay less the propagation delay of the flow's path: the time spent waiting in queues and being serialised, and the delay added by elements that vary the delays of single packets, such as jitter. On a real path, whose propagation delay is not known: less the smallest delay of any packet of that direction in the run.",
    ..BASE
};

percentiles!(
    "queueing_delay",
    "queueing delay",
    "of the one-way delays less the propagation delay of each flow's path (nearest rank); on a real path, less the smallest delay of its direction.",
    percentile,
    BASE,
    [MEAN],
    [50 "median" "Median", 95 "95th percentile" "95th percentile", 99 "99th percentile" "99th percentile"],
    []
);

fn measure(subject: &Subject<'_>, value: fn(&DelayDistribution) -> Option<f64>) -> Measured {
    let queueing = subject.queueing.as_ref().map_err(String::clone)?;
    value(queueing).ok_or_else(|| subject.nothing(ARRIVED))
}

fn percentile(subject: &Subject<'_>, p: f64) -> Measured {
    let queueing = subject.queueing.as_ref().map_err(String::clone)?;
    queueing
        .percentile(p)
        .map(|ns| ns as f64)
        .ok_or_else(|| subject.nothing(ARRIVED))
}
