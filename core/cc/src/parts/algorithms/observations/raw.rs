//! Counters in base units, from which a policy outside can compute its inputs.

use super::step_totals::StepTotals;
use super::{Member, Observer, member, write};
use crate::parts::actions::Controlled;
use crate::{AckEvent, AckedPacket, LossEvent, SendEvent};
use narrows_units::{Span, Time};

pub(super) const MEMBERS: &[Member] = &[
    member("elapsed", "ns", "time since the flow began"),
    member("step", "ns", "time since the last decision"),
    member("sent", "B", "payload sent since then"),
    member("acked", "B", "payload acknowledged since then"),
    member("lost", "B", "payload found lost since then"),
    member("marked", "B", "payload reported as marked since then"),
    member(
        "acked_packets",
        "packets",
        "packets acknowledged since then",
    ),
    member(
        "mean_rtt",
        "ns",
        "mean RTT of these packets; 0 if there are none",
    ),
    member(
        "least_rtt",
        "ns",
        "smallest of their RTTs; 0 if there are none",
    ),
    member(
        "latest_rtt",
        "ns",
        "newest of their RTTs; 0 if there are none",
    ),
    member("smoothed_rtt", "ns", "smoothed RTT of the flow"),
    member("min_rtt", "ns", "minimum RTT of the flow"),
    member("in_flight", "B", "payload in flight"),
    member(
        "window",
        "packets",
        "window before the decision, or the rate times the smoothed RTT",
    ),
    member(
        "rate",
        "bit/s",
        "rate before the decision, or the window over the smoothed RTT",
    ),
    member(
        "delivery_rate",
        "bit/s",
        "newest delivery-rate sample of the transport",
    ),
];

/// Computes the inputs.
pub(super) struct RawObserver {
    begun: Time,
    totals: StepTotals,
    smoothed_rtt: Span,
    min_rtt: Span,
    delivery_bps: u64,
}

impl RawObserver {
    pub(super) fn new(now: Time) -> Self {
        RawObserver {
            begun: now,
            totals: StepTotals::new(now),
            smoothed_rtt: Span::ZERO,
            min_rtt: Span::ZERO,
            delivery_bps: 0,
        }
    }
}

impl Observer for RawObserver {
    fn on_send(&mut self, send: &SendEvent) {
        self.totals.on_send(send);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.totals.on_loss(loss);
    }

    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        (self.smoothed_rtt, self.min_rtt) = (ack.smoothed_rtt, ack.min_rtt);
        self.delivery_bps = ack.rate.map_or(self.delivery_bps, |rate| rate.rate.bps());
        self.totals.marked += ack.ce_bytes.get();
    }

    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        self.totals.on_packet(ack, packet)
    }

    fn restart(&mut self, now: Time) {
        self.totals.begin(now);
    }

    fn write(&mut self, now: Time, controlled: &Controlled, inputs: &mut [f32]) {
        let totals = &self.totals;
        let rtts = &totals.rtts;
        let least = rtts.iter().copied().reduce(f64::min);
        let features = [
            now.since(self.begun).ns() as f64,
            totals.span(now).ns() as f64,
            totals.sent as f64,
            totals.acked as f64,
            totals.lost as f64,
            totals.marked as f64,
            rtts.len() as f64,
            1e9 * totals.mean_rtt().unwrap_or(0.0),
            1e9 * least.unwrap_or(0.0),
            1e9 * rtts.last().copied().unwrap_or(0.0),
            self.smoothed_rtt.ns() as f64,
            self.min_rtt.ns() as f64,
            controlled.in_flight as f64,
            controlled.window,
            controlled.rate_bps,
            self.delivery_bps as f64,
        ];
        write(&features, inputs);
        self.totals.begin(now);
    }
}
