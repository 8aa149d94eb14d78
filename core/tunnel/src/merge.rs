//! Joins the logs of two ends into one table: the fate and the delay of each sent datagram.
//!
//! One end's clock is the *reference*; the other one's stamps are converted by a [`Fit`]. A datagram that is in the
//! sender's log but not in the receiver's is lost, unless it was still in flight when the logs ended.

use crate::clock::{ClockConfig, Clocks, Fit};
use crate::log::{Content, TunnelLogRow};
use narrows_units::{Span, Time};

/// Direction, seen from the end whose clock is the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDirection {
    /// From the reference to the other end.
    Forward,
    /// From the other end to the reference.
    Reverse,
}

/// One datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedPacket {
    /// Its number.
    pub id: u64,
    /// When it was sent, by the reference clock, in ns.
    pub sent_ns: i64,
    /// Its delay in ns; `None` if it is not in the other log.
    pub delay_ns: Option<i64>,
    /// Size of the IP packet that carried it, in bytes.
    pub size: u32,
    /// Its content.
    pub content: Content,
    /// Flow of the packet that it carries; 0 without a flow.
    pub flow: u16,
    /// DSCP and ECN when it was sent, and when it arrived if it did.
    pub tos: (u8, Option<u8>),
}

/// One direction of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedLogs {
    /// In sending order.
    pub packets: Vec<MergedPacket>,
    /// Arrivals that are not in the sender's log: that log is incomplete.
    pub unknown: u64,
    /// Arrivals whose number had arrived before.
    pub again: u64,
    /// Arrivals whose send time or size differs from the sender's log: the logs do not belong together.
    pub contradicting: u64,
}

/// Reason why two logs do not belong to the same tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Numbers do not increase.
    #[error(
        "row {0} of the log of sent datagrams has a number that does not exceed the previous one; the log is damaged or of several runs"
    )]
    Order(usize),
}

/// Constraints on the clocks from arrivals at both ends. `at_reference` arrived at the end whose
/// clock is the reference, `at_other` at the other.
pub fn clocks(
    at_reference: &[TunnelLogRow],
    at_other: &[TunnelLogRow],
    config: ClockConfig,
) -> Clocks {
    let mut clocks = Clocks::new(config);
    for row in at_other {
        clocks.add_forward(row.sent, row.arrived);
    }
    for row in at_reference {
        clocks.add_reverse(row.sent, row.arrived);
    }
    clocks
}

/// Joins the two logs of one direction.
///
/// # Errors
/// If the log of sent datagrams is not in order. Arrivals may be in any order.
pub fn merge_logs(
    direction: LogDirection,
    sent: &[TunnelLogRow],
    arrived: &[TunnelLogRow],
    fit: &Fit,
) -> Result<MergedLogs, MergeError> {
    let mut order: Vec<usize> = (0..arrived.len()).collect();
    // Stable, so that of several arrivals of a number the first one counts.
    order.sort_by_key(|&index| arrived[index].id);
    let mut arrivals = order.into_iter().map(|index| &arrived[index]).peekable();
    let mut merged = MergedLogs::default();
    merged.packets.reserve(sent.len());
    for (index, row) in sent.iter().enumerate() {
        if index > 0 && row.id <= sent[index - 1].id {
            return Err(MergeError::Order(index));
        }
        while arrivals.next_if(|arrival| arrival.id < row.id).is_some() {
            merged.unknown += 1;
        }
        let mut packet = MergedPacket {
            id: row.id,
            sent_ns: match direction {
                LogDirection::Forward => clamp(row.sent),
                LogDirection::Reverse => fit.local_ns(row.sent),
            },
            delay_ns: None,
            size: row.size,
            content: row.content,
            flow: row.flow,
            tos: (row.tos, None),
        };
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.id == row.id) {
            if arrival.sent != row.sent || arrival.size != row.size {
                merged.contradicting += 1;
            } else if packet.delay_ns.is_some() {
                merged.again += 1;
            } else {
                packet.delay_ns = Some(match direction {
                    LogDirection::Forward => fit.forward_delay_ns(arrival.sent, arrival.arrived),
                    LogDirection::Reverse => fit.reverse_delay_ns(arrival.sent, arrival.arrived),
                });
                packet.tos.1 = Some(arrival.tos);
            }
        }
        merged.packets.push(packet);
    }
    merged.unknown += arrivals.count() as u64;
    Ok(merged)
}

/// The statistics of one direction. Sizes are those of the tunnel's outer IP packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionSummary {
    /// Datagrams with a packet that were sent.
    pub sent: u64,
    /// Number of them that arrived.
    pub arrived: u64,
    /// Bytes of those that arrived.
    pub arrived_bytes: u64,
    /// Number of those sent no later than the last arrival that did not arrive.
    pub lost: u64,
    /// Number of those sent after the last one that arrived: lost or still in flight, which cannot be determined.
    pub undecided: u64,
    /// One-way delays in ns: smallest, median, 95th and 99th percentile (nearest rank), largest.
    pub delay_ns: Option<[i64; 5]>,
    /// Number of those that arrived with an ECN field other than the one they were sent with, and congestion
    /// experienced.
    pub marked: u64,
    /// Number of those that arrived with a DSCP other than the one they were sent with.
    pub dscp_changed: u64,
}

/// Counts the packets (and not the clock messages) of one direction.
pub fn summarise(packets: &[MergedPacket]) -> DirectionSummary {
    let mut summary = DirectionSummary::default();
    let of_inside = || {
        packets
            .iter()
            .filter(|packet| packet.content == Content::Packet)
    };
    let arrivals = of_inside()
        .enumerate()
        .filter(|(_, packet)| packet.delay_ns.is_some());
    let last = arrivals.map(|(index, _)| index).last();
    let mut delays = Vec::new();
    for (index, packet) in of_inside().enumerate() {
        summary.sent += 1;
        let Some(delay) = packet.delay_ns else {
            if last.is_some_and(|last| index < last) {
                summary.lost += 1;
            } else {
                summary.undecided += 1;
            }
            continue;
        };
        summary.arrived += 1;
        summary.arrived_bytes += u64::from(packet.size);
        delays.push(delay);
        if let (before, Some(after)) = packet.tos {
            summary.marked += u64::from(before & 3 != 3 && after & 3 == 3);
            summary.dscp_changed += u64::from(before >> 2 != after >> 2);
        }
    }
    delays.sort_unstable();
    let rank = |percent: usize| delays[(delays.len() * percent).div_ceil(100).max(1) - 1];
    if let (Some(&least), Some(&most)) = (delays.first(), delays.last()) {
        summary.delay_ns = Some([least, rank(50), rank(95), rank(99), most]);
    }
    summary
}

/// True if one-way delays are meaningful: the bound of the clocks' error is at most the smallest queueing delay of
/// interest, taken as the spread between the smallest and the 95th percentile of the delays.
pub fn is_resolved(summary: &DirectionSummary, error: Span) -> bool {
    summary.delay_ns.is_some_and(|[least, _, p95, ..]| {
        i64::try_from(error.ns()).is_ok_and(|error| error <= p95.saturating_sub(least))
    })
}

/// Values beyond this are not clock readings.
fn clamp(time: Time) -> i64 {
    i64::try_from(time.ns()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSET: u64 = 5_000_000_000;

    fn row(id: u64, sent: u64, arrived: u64) -> TunnelLogRow {
        TunnelLogRow {
            id,
            sent: Time::from_ns(sent),
            arrived: Time::from_ns(arrived),
            size: 1500,
            content: Content::Packet,
            tos: 0,
            flow: (id % 3) as u16,
        }
    }

    /// One packet per ms each way, 3 ms forward and 5 ms back; every tenth is lost on the forward path, and numbers 40
    /// and 41 overtake each other. The other clock is 5 s ahead.
    fn logs() -> [Vec<TunnelLogRow>; 4] {
        let ms = 1_000_000;
        let mut logs: [Vec<TunnelLogRow>; 4] = Default::default();
        for id in 0..100 {
            let at = 1_000 * ms + id * ms;
            logs[0].push(row(id, at, at));
            if id % 10 != 9 {
                logs[1].push(row(id, at, at + 3 * ms + OFFSET));
            }
            logs[2].push(row(id, at + OFFSET, at + OFFSET));
            logs[3].push(row(id, at + OFFSET, at + 5 * ms));
        }
        logs[1].swap(36, 37);
        logs
    }

    fn fit(logs: &[Vec<TunnelLogRow>; 4]) -> Fit {
        clocks(&logs[3], &logs[1], ClockConfig::default())
            .fit()
            .unwrap()
    }

    #[test]
    fn delays_and_losses_are_those_of_the_path() {
        let mut logs = logs();
        let fit = fit(&logs);
        let there = merge_logs(LogDirection::Forward, &logs[0], &logs[1], &fit).unwrap();
        let back = merge_logs(LogDirection::Reverse, &logs[2], &logs[3], &fit).unwrap();
        assert_eq!((there.unknown, there.again, there.contradicting), (0, 0, 0));
        let sum = summarise(&there.packets);
        // The last one, number 99, was sent after the last that arrived.
        assert_eq!(
            (sum.sent, sum.arrived, sum.lost, sum.undecided),
            (100, 90, 9, 1)
        );
        assert_eq!(sum.arrived_bytes, 90 * 1500);
        // Half of 3 + 5 ms each way, because the asymmetry is unobservable.
        for summary in [sum, summarise(&back.packets)] {
            for delay in summary.delay_ns.unwrap() {
                assert!((delay - 4_000_000).abs() < 1_000, "{delay}");
            }
        }
        // The exact round-trip time: the offset cancels.
        for (a, b) in there.packets.iter().zip(&back.packets) {
            if let (Some(a), Some(b)) = (a.delay_ns, b.delay_ns) {
                assert!((a + b - 8_000_000).abs() <= 2);
            }
        }
        assert!((back.packets[0].sent_ns - 1_001_000_000).abs() < 1_000);
        // The flow of a packet comes from its sender's log.
        for packet in &mut logs[1] {
            packet.flow = 0;
        }
        let again = merge_logs(LogDirection::Forward, &logs[0], &logs[1], &fit).unwrap();
        assert_eq!(again, there);
        assert_eq!(again.packets[5].flow, 2);
    }

    #[test]
    fn logs_that_do_not_belong_together_are_told() {
        let logs = logs();
        let fit = fit(&logs);
        let mut arrived = logs[1].clone();
        arrived[0].sent += Span::from_ns(1);
        arrived.push(arrived[5]);
        arrived.push(row(1_000, 1, 2));
        let merged = merge_logs(LogDirection::Forward, &logs[0], &arrived, &fit).unwrap();
        assert_eq!(
            (merged.unknown, merged.again, merged.contradicting),
            (1, 1, 1)
        );
        assert_eq!(merged.packets[0].delay_ns, None);
        let mut sent = logs[0].clone();
        sent.swap(7, 8);
        assert_eq!(
            merge_logs(LogDirection::Forward, &sent, &arrived, &fit),
            Err(MergeError::Order(8))
        );
    }

    #[test]
    fn marks_are_counted_and_uncertain_delays_told() {
        let mut logs = logs();
        let fit = fit(&logs);
        for row in &mut logs[0] {
            row.tos = 2 | (10 << 2);
        }
        for (index, row) in logs[1].iter_mut().enumerate() {
            // Half are marked CE, the DSCP is bleached on all.
            row.tos = if index % 2 == 0 { 3 } else { 2 };
            row.arrived += Span::from_us(index as u64 * 100);
        }
        let merged = merge_logs(LogDirection::Forward, &logs[0], &logs[1], &fit).unwrap();
        let summary = summarise(&merged.packets);
        assert_eq!((summary.marked, summary.dscp_changed), (45, 90));
        // The spread is 8.5 ms.
        assert!(is_resolved(&summary, Span::from_ms(4)));
        assert!(!is_resolved(&summary, Span::from_ms(9)));
        assert_eq!(summarise(&[]), DirectionSummary::default());
    }
}
