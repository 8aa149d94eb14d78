//! Signals of Remy's rule tables.

use super::{Member, Observer, member, write};
use crate::parts::actions::Controlled;
use crate::parts::neural_policy::ms;
use crate::parts::rule_table::Signals;
use crate::{AckEvent, AckedPacket, Fields};
use narrows_units::Time;

pub(super) const MEMBERS: &[Member] = &[
    member(
        "send_spacing",
        "ms",
        "average time between packets when sent, with gain 1/8",
    ),
    member("receive_spacing", "ms", "the same when received"),
    member(
        "rtt_ratio",
        "",
        "last RTT over the minimum; 0 before the second packet",
    ),
    member(
        "slow_receive_spacing",
        "ms",
        "average time between packets when received, with gain 1/256",
    ),
];

/// Averages of a sender since its start or last reset. Times in ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemyObserver {
    signals: Signals,
    /// Number, send and arrival time of the last packet in order; `None` before the first.
    last: Option<AckedPacket>,
    largest: u64,
    min_rtt_ms: f64,
}

impl RemyObserver {
    /// The signals.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// True if no packet has been acknowledged.
    pub fn is_new(&self) -> bool {
        self.last.is_none()
    }
}

impl Observer for RemyObserver {
    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool {
        let rtt_ms = ms(ack.now.since(packet.sent));
        let Some(last) = self.last else {
            // The ratio stays 0: the first rule is that of the origin.
            self.last = Some(*packet);
            self.largest = packet.number;
            self.min_rtt_ms = rtt_ms;
            return true;
        };
        if packet.number == self.largest + 1 {
            let [sending, receiving, _, slow] = &mut self.signals;
            *sending += (ms(packet.sent.since(last.sent)) - *sending) / 8.0;
            if let (Some(before), Some(after)) = (last.arrived, packet.arrived) {
                let spacing = ms(after.since(before));
                *receiving += (spacing - *receiving) / 8.0;
                *slow += (spacing - *slow) / 256.0;
            }
            self.last = Some(*packet);
        }
        self.largest = self.largest.max(packet.number);
        self.min_rtt_ms = self.min_rtt_ms.min(rtt_ms);
        // With a coarse clock the interval may be zero.
        self.signals[2] = if self.min_rtt_ms > 0.0 {
            rtt_ms / self.min_rtt_ms
        } else {
            1.0
        };
        true
    }

    fn write(&mut self, _: Time, _: &Controlled, inputs: &mut [f32]) {
        write(&self.signals, inputs);
    }

    fn trace(&self, fields: &mut Fields) {
        let [sending, receiving, ratio, slow] = self.signals;
        fields.values.extend([
            ("send_spacing_ms", sending),
            ("receive_spacing_ms", receiving),
            ("rtt_ratio", ratio),
            ("slow_receive_spacing_ms", slow),
        ]);
    }
}
