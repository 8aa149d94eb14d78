//! Sums over the connections of one flow: applications open and close many.

use crate::{Receiver, ReceiverCounters, Sender, SenderCounters, SenderSnapshot};
use narrows_units::{Bytes, Rate, Span};

/// Counters of several connections, summed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionTotals {
    /// Counters of the senders.
    pub sender: SenderCounters,
    /// Counters of the receivers.
    pub receiver: ReceiverCounters,
    /// Bytes acknowledged at the senders.
    pub delivered: u64,
}

impl ConnectionTotals {
    /// Adds the counters of a sender.
    pub fn add_sender(&mut self, sender: &Sender) {
        let (sum, add) = (&mut self.sender, sender.counters());
        sum.sent_packets += add.sent_packets;
        sum.sent_bytes += add.sent_bytes;
        sum.retransmitted_packets += add.retransmitted_packets;
        sum.retransmitted_bytes += add.retransmitted_bytes;
        sum.acked_packets += add.acked_packets;
        sum.lost_packets += add.lost_packets;
        sum.spurious_losses += add.spurious_losses;
        sum.timeouts += add.timeouts;
        sum.tail_probes += add.tail_probes;
        sum.recoveries += add.recoveries;
        self.delivered += sender.snapshot().delivered.get();
    }

    /// Adds the counters of a receiver.
    pub fn add_receiver(&mut self, receiver: &Receiver) {
        let (sum, add) = (&mut self.receiver, receiver.counters());
        sum.received_packets += add.received_packets;
        sum.received_bytes += add.received_bytes;
        sum.duplicate_packets += add.duplicate_packets;
        sum.marked_packets += add.marked_packets;
        sum.goodput_bytes += add.goodput_bytes;
    }

    /// The combined state of closed connections (these totals) and open ones: sums of windows, rates and counts, the
    /// mean of the smoothed RTTs and the minimum of their minima.
    pub fn together(&self, open: impl Iterator<Item = SenderSnapshot>) -> SenderSnapshot {
        let mut all = SenderSnapshot {
            delivered: Bytes::new(self.delivered),
            retransmitted: Bytes::new(self.sender.retransmitted_bytes),
            lost_packets: self.sender.lost_packets,
            ..SenderSnapshot::default()
        };
        let (mut count, mut known, mut smoothed) = (0u64, 0u64, 0u64);
        let (mut cwnd, mut pacing) = (Some(0), Some(0));
        for one in open {
            count += 1;
            cwnd = cwnd.zip(one.cwnd).map(|(sum, one)| sum + one.get());
            pacing = pacing.zip(one.pacing).map(|(sum, one)| sum + one.bps());
            all.in_flight += one.in_flight;
            all.delivered += one.delivered;
            all.retransmitted += one.retransmitted;
            all.lost_packets += one.lost_packets;
            if let (Some(rtt), Some(min)) = (one.smoothed_rtt, one.min_rtt) {
                known += 1;
                smoothed += rtt.ns();
                all.min_rtt = Some(all.min_rtt.map_or(min, |least| least.min(min)));
            }
        }
        all.cwnd = cwnd.filter(|_| count > 0).map(Bytes::new);
        all.pacing = pacing.filter(|_| count > 0).map(Rate::from_bps);
        all.smoothed_rtt = smoothed.checked_div(known).map(Span::from_ns);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(cwnd: Option<u64>, rtt_ms: Option<u64>) -> SenderSnapshot {
        SenderSnapshot {
            cwnd: cwnd.map(Bytes::new),
            in_flight: Bytes::new(500),
            delivered: Bytes::new(10_000),
            smoothed_rtt: rtt_ms.map(Span::from_ms),
            min_rtt: rtt_ms.map(Span::from_ms),
            lost_packets: 2,
            ..SenderSnapshot::default()
        }
    }

    #[test]
    fn ended_and_open_connections_are_one_state() {
        let past = ConnectionTotals {
            sender: SenderCounters {
                lost_packets: 3,
                retransmitted_bytes: 700,
                ..SenderCounters::default()
            },
            delivered: 5_000,
            ..ConnectionTotals::default()
        };
        let connections = [
            open(Some(1_000), Some(10)),
            open(Some(3_000), Some(30)),
            open(Some(10), None),
        ];
        let all = past.together(connections.into_iter());
        assert_eq!(all.cwnd, Some(Bytes::new(4_010)));
        assert_eq!(all.in_flight, Bytes::new(1_500));
        assert_eq!(all.delivered, Bytes::new(35_000));
        assert_eq!((all.lost_packets, all.retransmitted.get()), (9, 700));
        assert_eq!(
            all.smoothed_rtt,
            Some(Span::from_ms(20)),
            "of those that know one"
        );
        assert_eq!(all.min_rtt, Some(Span::from_ms(10)));
        // A connection without a window is unlimited, and so is the sum.
        let unlimited = [open(Some(1_000), None), open(None, None)];
        assert_eq!(past.together(unlimited.into_iter()).cwnd, None);
        assert_eq!(past.together(std::iter::empty()).cwnd, None);
    }
}
