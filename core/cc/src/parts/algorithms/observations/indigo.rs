//! Inputs of Indigo's networks.

use super::{LAST_ACTION, Member, Observer, member, write_with_action};
use crate::parts::actions::Controlled;
use crate::parts::neural_policy::{self, Counters, Step};
use crate::{AckEvent, AckedPacket, Fields, SendEvent};
use narrows_units::Time;

/// Delay (ms), rates (Mbit/s) and window (packets) that correspond to an input of 1.
const DELAY_UNIT: f64 = 200.0;
const RATE_UNIT: f64 = 200.0;
const WINDOW_UNIT: f64 = 5_000.0;

pub(super) const MEMBERS: &[Member] = &[
    member("queueing_delay", "200 ms", "average RTT above the minimum"),
    member("delivery_rate", "200 Mbit/s", "average delivery rate"),
    member("sending_rate", "200 Mbit/s", "average sending rate"),
    member("window", "5000 packets", "window before the decision"),
    LAST_ACTION[0],
    LAST_ACTION[1],
    LAST_ACTION[2],
    LAST_ACTION[3],
    LAST_ACTION[4],
];

/// Computes the inputs.
pub struct IndigoObserver {
    counters: Counters,
    min_rtt_ms: f64,
    step: Step,
}

impl IndigoObserver {
    /// For a flow that begins at `now`; a packet counts as its payload plus `header` bytes.
    pub fn new(header: u64, now: Time) -> Self {
        IndigoObserver {
            counters: Counters::new(header, now),
            min_rtt_ms: f64::INFINITY,
            step: Step::default(),
        }
    }
}

impl Observer for IndigoObserver {
    fn on_send(&mut self, send: &SendEvent) {
        self.counters.on_send(send);
    }

    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        let rtt_ms = neural_policy::ms(ack.now.since(packet.sent));
        self.min_rtt_ms = self.min_rtt_ms.min(rtt_ms);
        let echo = self.counters.on_ack(ack.now, packet);
        if echo.is_some_and(|echo| echo.then.app_limited) {
            return false;
        }
        self.step.add(rtt_ms - self.min_rtt_ms, echo);
        true
    }

    fn restart(&mut self, _: Time) {
        self.step = Step::default();
    }

    fn write(&mut self, _: Time, controlled: &Controlled, inputs: &mut [f32]) {
        let features = [
            self.step.delay.get().unwrap_or(0.0) / DELAY_UNIT,
            self.step.delivery.get().unwrap_or(0.0) / RATE_UNIT,
            self.step.sending.get().unwrap_or(0.0) / RATE_UNIT,
            controlled.window / WINDOW_UNIT,
        ];
        write_with_action(&features, controlled, inputs);
        self.step = Step::default();
    }

    fn trace(&self, fields: &mut Fields) {
        self.step.trace(fields);
    }
}
