//! Counters of a step, from which any reward can be computed.

use narrows_transport::SenderProgress;
use narrows_units::Time;

/// Number of counters.
pub(crate) const SIZE: usize = COUNTERS.len();

/// Counters of a step: name, with its unit at the end, and meaning.
pub const COUNTERS: [(&str, &str); 15] = [
    (
        "time_ns",
        "time of the decision with which the step ends, from the start of the run",
    ),
    (
        "step_ns",
        "duration of the step, from one decision to the next",
    ),
    ("sent_bytes", "IP bytes of data packets sent in the step"),
    (
        "delivered_bytes",
        "IP bytes of data packets whose delivery was reported in the step",
    ),
    ("sent_packets", "data packets sent in the step"),
    ("acked_packets", "packets acknowledged in the step"),
    ("lost_packets", "packets declared lost in the step"),
    (
        "marked_packets",
        "packets reported as marked with congestion experienced in the step",
    ),
    ("rtt_samples", "RTT samples taken in the step"),
    ("rtt_sum_ns", "their sum"),
    (
        "min_rtt_ns",
        "minimum RTT of the connection; 0 before the first sample",
    ),
    ("smoothed_rtt_ns", "smoothed RTT; 0 before the first sample"),
    ("in_flight_bytes", "payload bytes in flight"),
    (
        "cwnd_packets",
        "window in full packets; 0 if the scheme has none",
    ),
    ("pacing_bps", "pacing rate; 0 without pacing"),
];

/// Properties of a path that rewards are relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Mean capacity of the bottleneck in bit/s.
    pub capacity_bps: f64,
    /// Round-trip time of a packet that never queues, in ns.
    pub base_rtt_ns: f64,
    /// Limit of the bottleneck's queue in bytes; infinite if it has none.
    pub buffer_bytes: f64,
    /// Window (packets) with the highest power; NaN if unknown.
    pub best_window: f64,
    /// Number of flows that share the capacity.
    pub flows: f64,
}

/// Counters of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) values: [f64; SIZE],
}

/// State of an agent at its last decision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    at: Time,
    progress: SenderProgress,
}

impl Mark {
    /// The counters of the step that ends now, after which the next one begins.
    pub(crate) fn advance(
        &mut self,
        at: Time,
        now: SenderProgress,
        (packet, payload): (u64, u64),
    ) -> Step {
        let then = std::mem::replace(&mut self.progress, now);
        let since = std::mem::replace(&mut self.at, at);
        // The transport counts payload; with its headers it is comparable with capacities.
        let delivered = (now.delivered_bytes - then.delivered_bytes) as f64;
        Step {
            values: [
                at.ns() as f64,
                at.since(since).ns() as f64,
                (now.sent_bytes - then.sent_bytes) as f64,
                delivered * packet as f64 / payload as f64,
                (now.sent_packets - then.sent_packets) as f64,
                (now.acked_packets - then.acked_packets) as f64,
                (now.lost_packets - then.lost_packets) as f64,
                (now.marked_packets - then.marked_packets) as f64,
                (now.rtt_samples - then.rtt_samples) as f64,
                (now.rtt_sum.ns() - then.rtt_sum.ns()) as f64,
                now.min_rtt.ns() as f64,
                now.smoothed_rtt.ns() as f64,
                now.in_flight as f64,
                now.cwnd as f64 / payload as f64,
                now.pacing_bps as f64,
            ],
        }
    }
}

impl Step {
    /// Throughput in bit/s.
    pub(crate) fn throughput_bps(&self) -> f64 {
        let [_, duration, _, delivered, ..] = self.values;
        if duration > 0.0 {
            delivered * 8e9 / duration
        } else {
            0.0
        }
    }

    /// Mean RTT in ns: of the samples of the step, or else the smoothed one.
    pub(crate) fn rtt_ns(&self) -> f64 {
        let (samples, sum) = (self.values[8], self.values[9]);
        if samples > 0.0 {
            sum / samples
        } else {
            self.values[11]
        }
    }

    /// Packets lost in relation to those lost or acknowledged.
    pub(crate) fn loss_ratio(&self) -> f64 {
        let (acked, lost) = (self.values[5], self.values[6]);
        if acked + lost > 0.0 {
            lost / (acked + lost)
        } else {
            0.0
        }
    }

    /// Packets delivered per second, with packets of `size` IP bytes.
    pub(crate) fn packets_per_second(&self, size: u64) -> f64 {
        self.throughput_bps() / 8.0 / size as f64
    }

    /// Window in packets.
    pub(crate) fn window(&self) -> f64 {
        self.values[13]
    }
}
