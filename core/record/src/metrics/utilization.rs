//! Utilization of the bottleneck.

use super::{Better, Measured, Metric, Scope, Subject};

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "utilization_ratio",
    label: "utilization",
    better: Some(Better::Higher),
    scope: Scope::AllAndLinks,
    definition: "Total throughput of all flows, background included, divided by the rate of the slowest bottleneck on the data path, as a mean over the time between the \
                 first and the last arrival. Where flows have different bottlenecks: the sum of the traffic that each carried, divided by the sum of their rates. Link-layer overhead counts \
                 where a bottleneck has it. It may exceed 100 % by the first packet, whose bits \
                 are counted although its arrival starts the time. For a link: the traffic that passed it, acknowledgements included, divided by its capacity between the first and the last packet that passed.",
    source: "RFC 5166, section 2.1.1; Yan et al., Pantheon, USENIX ATC 2018",
    compute,
    ..Metric::SHARE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    if let Some(link) = subject.link {
        let (first, last) = link.span_ns()?;
        let capacity = subject.capacities.mean_bps(&link.name, first, last)?;
        return Ok(link.wire_bytes as f64 * 8e9 / (last - first) as f64 / capacity);
    }
    let (first, last) = subject.whole_span_ns()?;
    let capacity = subject.bottlenecks((first, last))?;
    let mut carried = 0.0;
    for &(element, _) in &capacity {
        let (bytes, packets) = subject.through(element);
        carried += element.framing().mean_wire_bytes(bytes, packets);
    }
    let capacity: f64 = capacity.iter().map(|(_, bps)| bps).sum();
    Ok(carried * 8e9 / (last - first) as f64 / capacity)
}
