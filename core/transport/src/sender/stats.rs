//! A sender's counters and the state that it shows.

use super::{CongestionState, Sender};
use narrows_cc::{Fields, Recovery};
use narrows_units::{Bytes, Rate, Span};

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data packets sent, and their IP sizes.
    pub sent_packets: u64,
    /// See `sent_packets`.
    pub sent_bytes: u64,
    /// Retransmitted packets, and their IP sizes.
    pub retransmitted_packets: u64,
    /// See `retransmitted_packets`.
    pub retransmitted_bytes: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Packets declared lost, including spurious losses (see below).
    pub lost_packets: u64,
    /// Packets declared lost that arrived after all.
    pub spurious_losses: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail-loss probes sent.
    pub tail_probes: u64,
    /// Recovery epochs opened (losses, marks and timeouts).
    pub recoveries: u64,
}

/// State of a sender for plots and audits.
#[derive(Clone, Debug, Default)]
pub struct SenderSnapshot {
    /// Current window (that of the reduction while one is in progress).
    pub cwnd: Option<Bytes>,
    /// Current pacing rate.
    pub pacing: Option<Rate>,
    /// Last RTT sample; `None` before the first.
    pub latest_rtt: Option<Span>,
    /// Smoothed RTT.
    pub smoothed_rtt: Option<Span>,
    /// Smallest RTT.
    pub min_rtt: Option<Span>,
    /// Payload bytes in flight.
    pub in_flight: Bytes,
    /// Payload bytes delivered.
    pub delivered: Bytes,
    /// Last valid delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// IP bytes of retransmitted packets.
    pub retransmitted: Bytes,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Values that the scheme traces.
    pub scheme: Fields,
}

/// Progress of a sender: what a decision of the caller can be judged by. Sums grow from the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderProgress {
    /// IP bytes of data packets sent.
    pub sent_bytes: u64,
    /// Payload bytes delivered.
    pub delivered_bytes: u64,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Packets reported as marked with congestion experienced.
    pub marked_packets: u64,
    /// Number of RTT samples.
    pub rtt_samples: u64,
    /// Sum of RTT samples.
    pub rtt_sum: Span,
    /// Minimum RTT; zero before the first sample.
    pub min_rtt: Span,
    /// Smoothed RTT; zero before the first sample.
    pub smoothed_rtt: Span,
    /// Payload bytes in flight.
    pub in_flight: u64,
    /// Current window in payload bytes; zero if the scheme has none.
    pub cwnd: u64,
    /// Current pacing rate in bit/s; zero without pacing.
    pub pacing_bps: u64,
}

impl Sender {
    /// IP size and payload of a full packet in bytes.
    pub fn packet_sizes(&self) -> (u64, u64) {
        (self.config.packet_size.get(), self.mss)
    }

    /// The progress so far.
    pub fn progress(&self) -> SenderProgress {
        let known = self.rtt.is_known();
        let (rtt_samples, rtt_sum) = self.rtt.totals();
        SenderProgress {
            sent_bytes: self.counters.sent_bytes,
            delivered_bytes: self.rate.delivered,
            sent_packets: self.counters.sent_packets,
            acked_packets: self.counters.acked_packets,
            lost_packets: self.counters.lost_packets,
            marked_packets: self.ce_packets_seen,
            rtt_samples,
            rtt_sum,
            min_rtt: if known { self.rtt.min() } else { Span::ZERO },
            smoothed_rtt: if known {
                self.rtt.smoothed()
            } else {
                Span::ZERO
            },
            in_flight: self.in_flight,
            cwnd: self.allowance.cwnd.map_or(0, |_| self.cwnd()),
            pacing_bps: self.pacing_rate.map_or(0, Rate::bps),
        }
    }

    /// The state for plots and audits.
    pub fn snapshot(&self) -> SenderSnapshot {
        let mut scheme = Fields::default();
        self.scheme.trace(&mut scheme);
        // A scheme that controls its recoveries itself keeps its window.
        match (&self.state, self.recovery_rule) {
            (CongestionState::Open, _) | (_, Recovery::Direct | Recovery::Restart) => {}
            (CongestionState::Recovery(_), Recovery::Proportional) => scheme.mode = "recovery",
            (CongestionState::Loss, Recovery::Proportional) => scheme.mode = "loss",
        }
        let known = self.rtt.is_known();
        SenderSnapshot {
            cwnd: self.allowance.cwnd.map(|_| Bytes::new(self.cwnd())),
            pacing: self.pacing_rate,
            latest_rtt: known.then(|| self.rtt.latest()),
            smoothed_rtt: known.then(|| self.rtt.smoothed()),
            min_rtt: known.then(|| self.rtt.min()),
            in_flight: self.in_flight(),
            // Without selective acknowledgements duplicates count towards rates, possibly twice.
            delivered: Bytes::new(if self.config.sack {
                self.rate.delivered
            } else {
                self.snd_una
            }),
            delivery_rate: self.last_delivery_rate,
            retransmitted: Bytes::new(self.counters.retransmitted_bytes),
            lost_packets: self.counters.lost_packets,
            scheme,
        }
    }
}
