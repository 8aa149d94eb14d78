//! Drops of the bottleneck.

use super::{Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "bottleneck_drop_ratio",
    label: "drops of the bottleneck",
    scope: Scope::AllAndLinks,
    definition: "Packets that the slowest bottleneck on the data path dropped, divided by those offered to it, background included; where flows have different bottlenecks, summed over all of these. For a link: the same ratio of that link.",
    source: "RFC 5166, section 2.1.3 (drop rate of the congested link)",
    compute,
    ..Metric::SHARE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    let mut names: Vec<&str> = Vec::new();
    if let Some(link) = subject.link {
        names.push(&link.name);
    } else {
        // Where everything was dropped nothing arrived, and the slowest link is determined over the whole run.
        let span = match subject.whole_span_ns() {
            Err(_) if subject.sum(|flow| flow.dropped_packets) > 0 => (0, subject.cell.duration_ns),
            span => span?,
        };
        let narrow = subject.bottlenecks(span)?;
        names.extend(narrow.iter().map(|(element, _)| element.label()));
    }
    let (mut offered, mut dropped) = (0, 0);
    for name in names {
        let (came, lost) = drops(subject, name)?;
        offered += came;
        dropped += lost;
    }
    match offered {
        0 => Err("no packet reached the bottleneck".into()),
        offered => Ok(dropped as f64 / offered as f64),
    }
}

/// Packets that reached the bottleneck called `name`, and those that it dropped: from its own counters, or from single
/// packets if only a part of the run is measured, which the counters cannot separate.
fn drops(subject: &Subject<'_>, name: &str) -> Result<(u64, u64), String> {
    if subject.cell.measure.span_ns().is_some() {
        let link = subject.link_called(name).and_then(|link| link.drops);
        return link
            .ok_or_else(|| format!("a record of bins does not contain the times at which {name} dropped packets"));
    }
    let counters = subject.run.elements.iter().find(|c| c.name == name);
    let counters = counters.ok_or_else(|| format!("nothing was counted at {name}"))?;
    Ok((counters.in_packets, counters.dropped_packets))
}
