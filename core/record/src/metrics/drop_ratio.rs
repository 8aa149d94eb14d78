//! Drops of the bottleneck.

use super::{Better, Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRIC: Metric = Metric {
    name: "bottleneck_drop_ratio",
    label: "drops of the bottleneck",
    unit: "1",
    show_unit: "%",
    show_scale: 100.0,
    better: Some(Better::Lower),
    scope: Scope::All,
    definition: "Packets that the slowest bottleneck on the way of the data dropped, divided by \
                 those offered to it, background included; where flows have different \
                 bottlenecks, of all of these.",
    source: "RFC 5166, section 2.1.3 (drop rate of the congested link)",
    compute,
};

fn compute(subject: &Subject<'_>) -> Measured {
    let (mut offered, mut dropped) = (0, 0);
    for (element, _) in subject.bottlenecks(subject.whole_span_ns()?)? {
        let name = element.label();
        let counters = subject.run.elements.iter().find(|c| c.name == name);
        let counters = counters.ok_or_else(|| format!("nothing was counted at {name}"))?;
        offered += counters.in_packets;
        dropped += counters.dropped_packets;
    }
    match offered {
        0 => Err("no packet came to the bottleneck".into()),
        offered => Ok(dropped as f64 / offered as f64),
    }
}
