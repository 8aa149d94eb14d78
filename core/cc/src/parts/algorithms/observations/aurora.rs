//! Inputs of Aurora's networks: ratios of the last ten steps.
//!
//! As PCC-RL's simulator computes them for training (`src/common/sender_obs.py`): steps are intervals of time, and
//! packets count in the step in which they are sent or acknowledged.

use super::step_totals::{StepTotals, mean};
use super::{Member, Observer, member, write};
use crate::parts::actions::Controlled;
use crate::{AckEvent, AckedPacket, Fields, LossEvent, SendEvent};
use narrows_units::Time;

/// Steps that are remembered.
pub(super) const HISTORY: usize = 10;
/// A ratio of sending to delivery rate from this on counts as 1 (`_mi_metric_send_ratio`).
const MAX_SEND_RATIO: f64 = 1_000.0;

pub(super) const MEMBERS: &[Member] = &[
    member(
        "latency_inflation",
        "",
        "mean RTT of the later half of the step's packets less that of the earlier half, over the length of the step",
    ),
    member(
        "latency_ratio",
        "",
        "mean RTT over the smallest mean RTT of a step so far; 0 if nothing was acknowledged",
    ),
    member(
        "send_ratio",
        "",
        "sending rate over delivery rate; 1 if nothing was acknowledged",
    ),
];

/// A step without packets.
const NOTHING: [f64; 3] = [0.0, 0.0, 1.0];

/// Computes the inputs.
pub(super) struct AuroraObserver {
    totals: StepTotals,
    /// The last steps, the oldest first.
    history: [[f64; 3]; HISTORY],
    min_mean_rtt: f64,
}

impl AuroraObserver {
    pub(super) fn new(now: Time) -> Self {
        AuroraObserver {
            totals: StepTotals::new(now),
            history: [NOTHING; HISTORY],
            min_mean_rtt: f64::INFINITY,
        }
    }

    /// The ratios of the step that ends now.
    fn measure(&mut self, now: Time) -> [f64; 3] {
        let totals = &self.totals;
        let (earlier, later) = totals.rtts.split_at(totals.rtts.len() / 2);
        let increase = match (mean(earlier), mean(later)) {
            (Some(before), Some(after)) => after - before,
            _ => 0.0,
        };
        let seconds = totals.span(now).secs();
        let inflation = if seconds > 0.0 {
            increase / seconds
        } else {
            0.0
        };
        let ratio = totals.mean_rtt().map_or(0.0, |rtt| {
            self.min_mean_rtt = self.min_mean_rtt.min(rtt);
            if self.min_mean_rtt > 0.0 {
                rtt / self.min_mean_rtt
            } else {
                1.0
            }
        });
        let (sent, acked) = (totals.sent as f64, totals.acked as f64);
        let send_ratio = if acked > 0.0 && sent < MAX_SEND_RATIO * acked {
            sent / acked
        } else {
            1.0
        };
        [inflation, ratio, send_ratio]
    }
}

impl Observer for AuroraObserver {
    fn on_send(&mut self, send: &SendEvent) {
        self.totals.on_send(send);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.totals.on_loss(loss);
    }

    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        self.totals.on_packet(ack, packet)
    }

    fn restart(&mut self, now: Time) {
        self.totals.begin(now);
    }

    fn write(&mut self, now: Time, _: &Controlled, inputs: &mut [f32]) {
        self.history.rotate_left(1);
        self.history[HISTORY - 1] = self.measure(now);
        self.totals.begin(now);
        write(self.history.as_flattened(), inputs);
    }

    fn trace(&self, fields: &mut Fields) {
        let [inflation, ratio, send_ratio] = self.history[HISTORY - 1];
        fields.values.extend([
            ("latency_inflation", inflation),
            ("latency_ratio", ratio),
            ("send_ratio", send_ratio),
        ]);
    }
}
