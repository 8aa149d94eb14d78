//! Times that transfers of applications took.

use super::{DelayDistribution, Group, Measured, Metric, Subject};
use crate::cell::KeptTransfers;
use crate::histogram::HistogramBucket;

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[P50, P95, MEAN, COMPLETE, INCOMPLETE];

const P50: Metric = Metric {
    name: "completion_p50_ns",
    label: "median completion time",
    group: Some(Group::Transfers),
    definition: "Median, by nearest rank, of the times from an application's request for a \
                 transfer until its last byte arrived, over the transfers that were complete at \
                 the end. Compare it with the number of those that were not. Transfers count if they \
                 began in the part of the run that is measured.",
    source: "RFC 5166, section 2.1.1 (per-flow transfer times)",
    compute: |subject| percentile(subject, 0.5),
    ..Metric::TIME
};

const P95: Metric = Metric {
    name: "completion_p95_ns",
    label: "95th percentile of completion times",
    definition: "95th percentile, by nearest rank, of the completion times of transfers.",
    compute: |subject| percentile(subject, 0.95),
    ..P50
};

const MEAN: Metric = Metric {
    name: "completion_mean_ns",
    label: "mean completion time",
    definition: "Mean of the completion times of transfers.",
    compute: mean,
    ..P50
};

const COMPLETE: Metric = Metric {
    name: "transfers",
    label: "complete transfers",
    unit: "1",
    show_unit: "",
    show_scale: 1.0,
    better: None,
    definition: "Transfers of applications that were complete at the end.",
    source: "count of the record",
    compute: |subject| Ok(times(subject)?.0.count() as f64),
    ..P50
};

const INCOMPLETE: Metric = Metric {
    name: "transfers_incomplete",
    label: "incomplete transfers",
    definition: "Transfers of applications that had begun and were not complete at the end. They are not included in completion times.",
    compute: |subject| Ok(times(subject)?.1 as f64),
    ..COMPLETE
};

/// Times of the complete transfers, and the number of the others.
fn times(subject: &Subject<'_>) -> Result<(DelayDistribution, u64), String> {
    match subject.cell.transfers {
        KeptTransfers::None => {
            return Err("the scenario does not record transfers (transfers: none)".into());
        }
        KeptTransfers::Bins => return times_from_bins(subject),
        KeptTransfers::All => {}
    }
    let mut complete = Vec::new();
    let mut open = 0;
    for row in subject.transfers() {
        match row.ended_ns {
            Some(ended) => complete.push(ended.saturating_sub(row.started_ns)),
            None => open += 1,
        }
    }
    some(DelayDistribution::exact(complete), open)
}

/// The same, from histograms.
fn times_from_bins(subject: &Subject<'_>) -> Result<(DelayDistribution, u64), String> {
    let mut buckets = Vec::new();
    let (mut sum, mut open) = (0_u128, 0_u64);
    for row in subject.completions() {
        sum += u128::from(row.sum_ns);
        match (row.low_ns, row.high_ns) {
            (Some(low), Some(high)) => buckets.push(HistogramBucket {
                low,
                high,
                count: row.transfers,
            }),
            _ => open = open.saturating_add(row.transfers),
        }
    }
    some(DelayDistribution::buckets(buckets, sum), open)
}

fn some(times: DelayDistribution, open: u64) -> Result<(DelayDistribution, u64), String> {
    if times.count() == 0 && open == 0 {
        return Group::Transfers.absent();
    }
    Ok((times, open))
}

fn done(subject: &Subject<'_>) -> Result<DelayDistribution, String> {
    let (complete, _) = times(subject)?;
    if complete.count() == 0 {
        return Err("no transfer was complete".into());
    }
    Ok(complete)
}

fn percentile(subject: &Subject<'_>, share: f64) -> Measured {
    let time = done(subject)?.percentile(share);
    time.map(|ns| ns as f64)
        .ok_or_else(|| "no transfer was complete".into())
}

fn mean(subject: &Subject<'_>) -> Measured {
    let mean = done(subject)?.mean();
    mean.ok_or_else(|| "no transfer was complete".into())
}
