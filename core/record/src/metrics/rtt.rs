//! Round-trip time as the sender sees it.

use crate::histogram::HistogramBucket;
use super::{DelayDistribution, Measured, Metric, Subject};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[MEAN, P95];

const MEAN: Metric = Metric {
    name: "rtt_mean_ns",
    label: "mean round-trip time",
    definition: "Mean of the sender's round-trip time, sampled at regular intervals: the latest sample of our transport, the smoothed value of the kernel. Each sample counts once.",
    source: "states of the sender (our transport, or TCP_INFO of the kernel)",
    compute: |subject| {
        let rtts = subject.rtts();
        let count: u64 = rtts.iter().map(|&(_, count)| count).sum();
        let products = rtts.iter().map(|&(rtt, count)| u128::from(rtt) * u128::from(count));
        if count == 0 {
            Err(nothing())
        } else {
            Ok(products.sum::<u128>() as f64 / count as f64)
        }
    },
    ..Metric::TIME
};

const P95: Metric = Metric {
    name: "rtt_p95_ns",
    label: "95th percentile round-trip time",
    definition: "95th percentile (nearest rank) of the sender's round-trip time, sampled at regular intervals: the latest sample of our transport, the smoothed value of the kernel.",
    compute: p95,
    ..MEAN
};

fn p95(subject: &Subject<'_>) -> Measured {
    let rtts = subject.rtts();
    let buckets = rtts.iter().map(|&(rtt, count)| HistogramBucket {
        low: rtt,
        high: rtt,
        count,
    });
    // The sum only serves means, which are not computed here.
    let rtts = DelayDistribution::buckets(buckets.collect(), 0);
    rtts.percentile(0.95)
        .map(|ns| ns as f64)
        .ok_or_else(nothing)
}

fn nothing() -> String {
    "the sender reported no round-trip time".to_owned()
}
