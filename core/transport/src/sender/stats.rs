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

impl Sender {
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
