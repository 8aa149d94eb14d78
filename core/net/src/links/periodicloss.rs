//! Deterministic loss: every n-th packet.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::declared_effects::{MIN_LOSS, number};
use crate::{DataLimit, DropReason, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "periodicloss",
    summary: "Drops every n-th packet",
    source: "the periodic loss model of Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27(3), 1997",
    params: PeriodicLossParams::PARAMS,
    shorthand: &["every"],
    example: Example::new("{periodicloss: 50 packets}", "Every 50th packet is lost.")
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[PLANNED_LOSS]).limiting(|state| {
    let late = number(state, "offset", 0.0) > 1.0 / MIN_LOSS;
    let share = 1.0 / number(state, "every", 1e15).max(1.0);
    DataLimit::Loss(if late { 0.0 } else { share })
});

/// Reason of drops that the configuration names.
pub const PLANNED_LOSS: DropReason = DropReason("planned_loss");

params! {
    /// Parameters.
    struct PeriodicLossParams {
        /// The last of this many packets is dropped.
        every: PacketCount(1.0..=1e15);
        /// Number of packets that pass before counting begins.
        offset: PacketCount(0.0..=1e15) = 0;
    }
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(Periodic {
    params: PeriodicLossParams::read(params),
    seen: 0,
}));

struct Periodic {
    params: PeriodicLossParams,
    /// Packets that have arrived.
    seen: u64,
}

impl<P: Packet> PacketRule<P> for Periodic {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        self.seen += 1;
        let PeriodicLossParams { every, offset } = self.params;
        if self.seen > offset && (self.seen - offset).is_multiple_of(every) {
            PacketDecision::Drop(PLANNED_LOSS)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.params = PeriodicLossParams::read(params);
        Ok(())
    }
}
