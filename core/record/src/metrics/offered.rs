//! The load that applications offered.

use super::{Group, Measured, Metric, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "offered_bps",
    label: "offered load",
    group: Some(Group::Load),
    better: None,
    definition: "Application data that sources which choose their load offered while they ran, in bits divided by that time; summed over flows.",
    source: "count of the sources",
    compute,
    ..Metric::RATE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    subject.whole_run()?;
    let flows = subject.summaries().flatten();
    let offered = flows.filter_map(|flow| Some(flow.offered?.mean_bps));
    let sum = offered.fold(None, |sum: Option<f64>, bps| Some(sum.unwrap_or(0.0) + bps));
    sum.map_or_else(|| Group::Load.absent(), Ok)
}
