//! Reports of sinks of datagrams.

use super::{Group, Measured, Metric, Scope, Subject};
use crate::run::ReceiverCounters;

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[LOSS, OUT_OF_ORDER, JITTER];

const LOSS: Metric = Metric {
    name: "datagram_loss_ratio",
    label: "datagrams lost",
    group: Some(Group::Datagrams),
    definition: "Datagrams whose sequence number never arrived at the sink, divided by the sum of these and those that arrived: the ratio that iperf reports as lost/total.",
    source: "RFC 7680 (one-way loss), by numbers at the receiver",
    compute: loss,
    ..Metric::SHARE
};

const OUT_OF_ORDER: Metric = Metric {
    name: "out_of_order_ratio",
    label: "datagrams out of order",
    definition: "Datagrams that arrived at the sink after one with a higher sequence number, divided by those that arrived.",
    source: "RFC 4737, section 3 (Type-P-Reordered)",
    compute: out_of_order,
    ..LOSS
};

const JITTER: Metric = Metric {
    name: "jitter_ns",
    label: "jitter",
    unit: "ns",
    show_unit: "ms",
    show_scale: 1e-6,
    scope: Scope::Flow,
    definition: "Smoothed difference of the transit times of successive datagrams, with a gain of \
                 1/16, at the end of the flow.",
    source: "RFC 3550, section 6.4.1",
    compute: jitter,
    ..LOSS
};

/// Counters of the sinks among the receivers.
fn sinks<'a>(subject: &'a Subject<'_>) -> Result<Vec<&'a ReceiverCounters>, String> {
    let receivers = subject.summaries().flatten().map(|flow| &flow.receiver);
    let sinks: Vec<_> = receivers.filter(|r| r.lost_datagrams.is_some()).collect();
    if sinks.is_empty() {
        return Group::Datagrams.absent();
    }
    subject.whole_run()?;
    Ok(sinks)
}

fn sum(sinks: &[&ReceiverCounters], count: fn(&ReceiverCounters) -> Option<u64>) -> f64 {
    sinks.iter().filter_map(|sink| count(sink)).sum::<u64>() as f64
}

fn count_received(sinks: &[&ReceiverCounters]) -> f64 {
    // A duplicated datagram counts as one arrival.
    let again = sum(sinks, |sink| sink.duplicate_datagrams);
    (sum(sinks, |sink| sink.received_packets) - again).max(0.0)
}

fn loss(subject: &Subject<'_>) -> Measured {
    let sinks = sinks(subject)?;
    let lost = sum(&sinks, |sink| sink.lost_datagrams);
    match lost + count_received(&sinks) {
        0.0 => Err("no datagram came".into()),
        total => Ok(lost / total),
    }
}

fn out_of_order(subject: &Subject<'_>) -> Measured {
    let sinks = sinks(subject)?;
    match count_received(&sinks) {
        0.0 => Err("no datagram came".into()),
        came => Ok(sum(&sinks, |sink| sink.out_of_order_datagrams) / came),
    }
}

fn jitter(subject: &Subject<'_>) -> Measured {
    let sinks = sinks(subject)?;
    let jitter = sinks.iter().find_map(|sink| sink.jitter_ns);
    jitter
        .map(|ns| ns as f64)
        .ok_or_else(|| "the sink reported no jitter".into())
}
