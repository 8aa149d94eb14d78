//! Inputs of Muses' networks.

use super::{LAST_ACTION, Member, Observer, member, write_with_action};
use crate::parts::actions::Controlled;
use crate::parts::neural_policy::{self, Counters, Echo, Ewma, Step};
use crate::{AckEvent, AckedPacket, Fields, SendEvent};
use narrows_units::Time;

/// RTT (ms), rates (Mbit/s) and window (packets) that correspond to an input of 1.
const RTT_UNIT: f64 = 300.0;
const RATE_UNIT: f64 = 1_000.0;
const WINDOW_UNIT: f64 = 12_500.0;

pub(super) const MEMBERS: &[Member] = &[
    member("rtt", "300 ms", "average RTT, which no step resets"),
    member(
        "queueing_delay",
        "minimum RTT",
        "average RTT above the minimum",
    ),
    member("sending_rate", "1000 Mbit/s", "average sending rate"),
    member("delivery_rate", "1000 Mbit/s", "average delivery rate"),
    member("loss", "", "share lost since the last decision"),
    member("window", "12500 packets", "window before the decision"),
    LAST_ACTION[0],
    LAST_ACTION[1],
    LAST_ACTION[2],
    LAST_ACTION[3],
    LAST_ACTION[4],
];

/// State for the loss ratio between two decisions.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Bytes sent before the packet whose acknowledgement led to the last decision, and bytes delivered by then.
    sent: u64,
    delivered: u64,
}

impl Losses {
    /// The loss ratio, if `sent` bytes were sent before the newest acknowledged packet, and `delivered` bytes have
    /// arrived in total.
    fn share(&mut self, sent: u64, delivered: u64) -> f64 {
        let between = sent.saturating_sub(self.sent);
        let arrived = delivered.saturating_sub(self.delivered);
        if between == 0 {
            self.delivered = delivered;
            return 0.0;
        }
        *self = Losses { sent, delivered };
        (1.0 - arrived as f64 / between as f64).max(0.0)
    }
}

/// Computes the inputs.
pub struct MusesObserver {
    counters: Counters,
    /// At least 1, as all RTTs.
    min_rtt_ms: Option<f64>,
    rtt: Ewma,
    step: Step,
    /// Measurements of the newest acknowledged packet.
    newest: Option<Echo>,
    losses: Losses,
    /// Loss ratio of the last step.
    loss: f64,
}

impl MusesObserver {
    /// For a flow that begins at `now`; a packet counts as its payload plus `header` bytes.
    pub fn new(header: u64, now: Time) -> Self {
        MusesObserver {
            counters: Counters::new(header, now),
            min_rtt_ms: None,
            rtt: Ewma::default(),
            step: Step::default(),
            newest: None,
            losses: Losses::default(),
            loss: 0.0,
        }
    }
}

impl Observer for MusesObserver {
    fn on_send(&mut self, send: &SendEvent) {
        self.counters.on_send(send);
    }

    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        let rtt_ms = neural_policy::ms(ack.now.since(packet.sent)).max(1.0);
        let min_rtt_ms = self.min_rtt_ms.map_or(rtt_ms, |least| least.min(rtt_ms));
        self.min_rtt_ms = Some(min_rtt_ms);
        self.rtt.add(rtt_ms);
        let echo = self.counters.on_ack(ack.now, packet);
        if echo.is_some_and(|echo| echo.then.app_limited) {
            return false;
        }
        self.step.add(rtt_ms - min_rtt_ms, echo);
        self.newest = echo;
        true
    }

    fn restart(&mut self, _: Time) {
        self.step = Step::default();
    }

    fn write(&mut self, _: Time, controlled: &Controlled, inputs: &mut [f32]) {
        let delivered = self.counters.delivered();
        let newest = self.newest.take();
        self.loss = newest.map_or(0.0, |echo| self.losses.share(echo.then.sent, delivered));
        let features = [
            self.rtt.get().unwrap_or(0.0) / RTT_UNIT,
            self.step.delay.get().unwrap_or(0.0) / self.min_rtt_ms.unwrap_or(1.0),
            self.step.sending.get().unwrap_or(0.0) / RATE_UNIT,
            self.step.delivery.get().unwrap_or(0.0) / RATE_UNIT,
            self.loss,
            controlled.window / WINDOW_UNIT,
        ];
        write_with_action(&features, controlled, inputs);
        self.step = Step::default();
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("loss_share", self.loss));
        fields
            .values
            .extend(self.rtt.get().map(|rtt| ("rtt_ms", rtt)));
        self.step.trace(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_what_was_sent_and_not_delivered_between_decisions() {
        let mut losses = Losses::default();
        // The very first packet has no predecessor.
        assert_eq!(losses.share(0, 1_000), 0.0);
        // Eight packets sent up to the one acknowledged now, six more delivered.
        assert_eq!(losses.share(8_000, 7_000), 0.25);
        assert_eq!(losses.share(18_000, 17_000), 0.0);
        // Late packets count in addition.
        assert_eq!(losses.share(23_000, 24_000), 0.0);
        assert_eq!(losses.share(23_000, 25_000), 0.0);
        assert_eq!(losses.share(27_000, 27_000), 0.5);
    }
}
