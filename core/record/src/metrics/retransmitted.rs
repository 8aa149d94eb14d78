//! Share of the sent packets that repeated data.

use super::{Measured, Metric, Subject};
use crate::run::SenderCounters;

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "retransmitted_ratio",
    label: "retransmitted",
    definition: "Packets that repeated data divided by all packets sent, as the sender counted \
                 them; bytes in place of packets where a sender counts only bytes.",
    source: "counters of the sender (our transport, or TCP_INFO of the kernel)",
    compute,
    ..Metric::SHARE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    subject.whole_run()?;
    let by = |pick: fn(&SenderCounters) -> (Option<u64>, Option<u64>)| {
        subject
            .summaries()
            .try_fold((0, 0), |(repeated, sent), summary| {
                let (more, all) = pick(&summary?.sender);
                Some((repeated + more?, sent + all?))
            })
    };
    let packets = by(|sender| (sender.retransmitted_packets, sender.sent_packets));
    let bytes = || by(|sender| (sender.retransmitted_bytes, sender.sent_bytes));
    match packets.or_else(bytes) {
        None => Err("the sender did not count repeated data".into()),
        Some((_, 0)) => Err("nothing was sent".into()),
        Some((repeated, sent)) => Ok(repeated as f64 / sent as f64),
    }
}
