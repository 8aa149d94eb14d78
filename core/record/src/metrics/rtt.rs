//! Round-trip time as the sender sees it.

use super::{DelayDistribution, Measured, Metric, Subject};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[MEAN, P95];

const MEAN: Metric = Metric {
    name: "rtt_mean_ns",
    label: "mean round-trip time",
    definition: "Mean of the sender's round-trip time, sampled at regular intervals: the latest one \
                 of our transport, the smoothed one that the kernel tells. Each sample counts once.",
    source: "states of the sender (our transport, or TCP_INFO of the kernel)",
    compute: |subject| {
        let rtts = subject.rtts();
        let sum: u128 = rtts.iter().map(|&rtt| u128::from(rtt)).sum();
        if rtts.is_empty() {
            Err(nothing())
        } else {
            Ok(sum as f64 / rtts.len() as f64)
        }
    },
    ..Metric::TIME
};

const P95: Metric = Metric {
    name: "rtt_p95_ns",
    label: "95th percentile round-trip time",
    definition: "95th percentile (nearest rank) of the sender's round-trip time, sampled at \
                 regular intervals: the latest one of our transport, the smoothed one that the \
                 kernel tells.",
    compute: p95,
    ..MEAN
};

fn p95(subject: &Subject<'_>) -> Measured {
    let rtts = DelayDistribution::exact(subject.rtts().to_vec());
    rtts.percentile(0.95)
        .map(|ns| ns as f64)
        .ok_or_else(nothing)
}

fn nothing() -> String {
    "the sender reported no round-trip time".to_owned()
}
