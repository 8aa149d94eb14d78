//! Utilization of the bottleneck.

use super::subject::rate_bps;
use super::{Better, Measured, Metric, Scope, Subject, directions};

/// Registry entry.
pub(super) const METRIC: Metric = Metric {
    name: "utilization_ratio",
    label: "utilization",
    unit: "1",
    show_unit: "%",
    show_scale: 100.0,
    better: Some(Better::Higher),
    scope: Scope::All,
    definition: "Total throughput of all flows divided by the rate of the slowest bottleneck on \
                 the way of the data. It may exceed 100 % by the first packet, whose bits are \
                 counted although its arrival starts the time.",
    source: "RFC 5166, section 2.1.1; Yan et al., Pantheon, USENIX ATC 2018",
    compute,
};

fn compute(subject: &Subject<'_>) -> Measured {
    let mut capacity = 0.0;
    for direction in directions(subject) {
        capacity += subject.cell.capacity_bps(direction)? as f64;
    }
    Ok(rate_bps(subject.sum(|t| t.arrived_bytes), subject.span_ns()?) / capacity)
}
