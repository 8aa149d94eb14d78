//! Times that transfers of applications took.

use super::{Better, Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const P50: Metric = Metric {
    name: "completion_p50_ns",
    label: "median completion time",
    unit: "ns",
    show_unit: "ms",
    show_scale: 1e-6,
    better: Some(Better::Lower),
    scope: Scope::Both,
    definition: "Median, by nearest rank, of the times from an application's request for a \
                 transfer until its last byte arrived, over the transfers that were complete at \
                 the end. Read it beside the number of those that were not.",
    source: "RFC 5166, section 2.1.1 (per-flow transfer times)",
    compute: p50,
};

/// Registry entry.
pub(super) const P95: Metric = Metric {
    name: "completion_p95_ns",
    label: "95th percentile of completion times",
    definition: "95th percentile, by nearest rank, of the completion times of transfers.",
    compute: p95,
    ..P50
};

/// Registry entry.
pub(super) const MEAN: Metric = Metric {
    name: "completion_mean_ns",
    label: "mean completion time",
    definition: "Mean of the completion times of transfers.",
    compute: mean,
    ..P50
};

/// Registry entry.
pub(super) const COMPLETE: Metric = Metric {
    name: "transfers",
    label: "complete transfers",
    unit: "1",
    show_unit: "",
    show_scale: 1.0,
    better: None,
    definition: "Transfers of applications that were complete at the end.",
    source: "count of the record",
    compute: complete,
    ..P50
};

/// Registry entry.
pub(super) const INCOMPLETE: Metric = Metric {
    name: "transfers_incomplete",
    label: "incomplete transfers",
    definition: "Transfers of applications that had begun and were not complete at the end. They \
                 count in no completion time.",
    compute: incomplete,
    ..COMPLETE
};

/// Times of the complete transfers, in order of size, and the number of the others.
fn times(subject: &Subject<'_>) -> Result<(Vec<u64>, u64), String> {
    let mut complete = Vec::new();
    let mut open = 0;
    for row in subject.transfers() {
        match row.ended_ns {
            Some(ended) => complete.push(ended.saturating_sub(row.started_ns)),
            None => open += 1,
        }
    }
    if complete.is_empty() && open == 0 {
        return Err("no application made transfers".into());
    }
    complete.sort_unstable();
    Ok((complete, open))
}

fn done(subject: &Subject<'_>) -> Result<Vec<u64>, String> {
    let (complete, _) = times(subject)?;
    if complete.is_empty() {
        return Err("no transfer was complete".into());
    }
    Ok(complete)
}

fn percentile(subject: &Subject<'_>, share: f64) -> Measured {
    let times = done(subject)?;
    let rank = (share * times.len() as f64).ceil() as usize;
    Ok(times[rank.clamp(1, times.len()) - 1] as f64)
}

fn p50(subject: &Subject<'_>) -> Measured {
    percentile(subject, 0.5)
}

fn p95(subject: &Subject<'_>) -> Measured {
    percentile(subject, 0.95)
}

fn mean(subject: &Subject<'_>) -> Measured {
    let times = done(subject)?;
    let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
    Ok(sum as f64 / times.len() as f64)
}

fn complete(subject: &Subject<'_>) -> Measured {
    Ok(times(subject)?.0.len() as f64)
}

fn incomplete(subject: &Subject<'_>) -> Measured {
    Ok(times(subject)?.1 as f64)
}
