//! Totals of a step, for observation sets that count.

use crate::{AckEvent, AckedPacket, LossEvent, SendEvent};
use narrows_units::{Span, Time};

/// Totals since the last decision. Times in seconds.
#[derive(Clone, Debug)]
pub(super) struct StepTotals {
    begun: Time,
    pub(super) sent: u64,
    pub(super) acked: u64,
    pub(super) lost: u64,
    pub(super) marked: u64,
    /// The RTTs of the acknowledged packets, in order.
    pub(super) rtts: Vec<f64>,
}

impl StepTotals {
    /// A step that begins at `now`.
    pub(super) fn new(now: Time) -> Self {
        StepTotals {
            begun: now,
            sent: 0,
            acked: 0,
            lost: 0,
            marked: 0,
            rtts: Vec::with_capacity(64),
        }
    }

    pub(super) fn on_send(&mut self, send: &SendEvent) {
        self.sent += send.bytes.get();
    }

    pub(super) fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.lost += loss.bytes.get();
    }

    /// Returns false if the application limited the sender.
    pub(super) fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        if ack.rate.is_some_and(|rate| rate.app_limited) {
            return false;
        }
        self.acked += u64::from(packet.bytes);
        self.rtts.push(ack.now.since(packet.sent).secs());
        true
    }

    /// Begins the next step.
    pub(super) fn begin(&mut self, now: Time) {
        self.begun = now;
        (self.sent, self.acked, self.lost, self.marked) = (0, 0, 0, 0);
        self.rtts.clear();
    }

    /// The time since the step began.
    pub(super) fn span(&self, now: Time) -> Span {
        now.since(self.begun)
    }

    /// Bits per second of `bytes` in the step; 0 if it has no length.
    pub(super) fn rate(&self, bytes: u64, now: Time) -> f64 {
        let seconds = self.span(now).secs();
        if seconds > 0.0 {
            8.0 * bytes as f64 / seconds
        } else {
            0.0
        }
    }

    /// The mean RTT in seconds, if a packet was acknowledged.
    pub(super) fn mean_rtt(&self) -> Option<f64> {
        mean(&self.rtts)
    }
}

/// The mean of some numbers, if there are any.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
