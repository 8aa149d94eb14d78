//! Inputs in the manner of Orca: ratios to the best that the flow has seen.
//!
//! The seven numbers of the authors' `rl-module/envwrapper.py`, without their running normalisation: lengths of steps
//! are multiples of the minimum RTT here.

use super::step_totals::StepTotals;
use super::{Member, Observer, member, write};
use crate::parts::actions::Controlled;
use crate::{AckEvent, AckedPacket, Fields, LossEvent, SendEvent};
use narrows_units::{Span, Time};

/// RTTs up to this multiple of the minimum count as none (`delay_margin_coef`).
const MARGIN: f64 = 1.25;
/// Weight of losses, and the largest input of the sending rate.
const LOSS_WEIGHT: f64 = 5.0;
const MAX_RATE: f64 = 10.0;
/// The largest length of a step, in minimum RTTs.
const MAX_STEP: f64 = 1_000.0;

pub(super) const MEMBERS: &[Member] = &[
    member(
        "throughput",
        "largest throughput",
        "throughput of the step over that of the best step",
    ),
    member(
        "rate",
        "largest throughput",
        "window over the smoothed RTT, at most 10",
    ),
    member(
        "loss",
        "largest throughput",
        "5 times the rate of lost bytes",
    ),
    member("acks", "window", "packets acknowledged in the step"),
    member("step", "minimum RTT", "length of the step, at most 1000"),
    member("rtt_ratio", "", "minimum RTT over the smoothed one"),
    member("delay", "", "the same times 1.25, at most 1"),
];

/// Computes the inputs.
pub(super) struct OrcaObserver {
    totals: StepTotals,
    best_throughput: f64,
    smoothed_rtt: Span,
    min_rtt: Span,
}

impl OrcaObserver {
    pub(super) fn new(now: Time) -> Self {
        OrcaObserver {
            totals: StepTotals::new(now),
            best_throughput: 0.0,
            smoothed_rtt: Span::ZERO,
            min_rtt: Span::ZERO,
        }
    }
}

impl Observer for OrcaObserver {
    fn on_send(&mut self, send: &SendEvent) {
        self.totals.on_send(send);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.totals.on_loss(loss);
    }

    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        (self.smoothed_rtt, self.min_rtt) = (ack.smoothed_rtt, ack.min_rtt);
    }

    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        self.totals.on_packet(ack, packet)
    }

    fn restart(&mut self, now: Time) {
        self.totals.begin(now);
    }

    fn write(&mut self, now: Time, controlled: &Controlled, inputs: &mut [f32]) {
        let totals = &self.totals;
        let throughput = totals.rate(totals.acked, now);
        self.best_throughput = self.best_throughput.max(throughput);
        let best = self.best_throughput;
        let share = |rate: f64| if best > 0.0 { rate / best } else { 0.0 };
        let (smoothed, least) = (self.smoothed_rtt.secs(), self.min_rtt.secs());
        let ratio = if smoothed > 0.0 {
            least / smoothed
        } else {
            1.0
        };
        let length = if least > 0.0 {
            totals.span(now).secs() / least
        } else {
            0.0
        };
        let features = [
            share(throughput),
            share(controlled.rate_bps).min(MAX_RATE),
            LOSS_WEIGHT * share(totals.rate(totals.lost, now)),
            totals.rtts.len() as f64 / controlled.window.max(1.0),
            length.min(MAX_STEP),
            ratio,
            (MARGIN * ratio).min(1.0),
        ];
        write(&features, inputs);
        self.totals.begin(now);
    }

    fn trace(&self, fields: &mut Fields) {
        fields
            .values
            .push(("best_throughput_mbps", self.best_throughput / 1e6));
    }
}
