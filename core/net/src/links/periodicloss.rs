//! Loss without chance: every n-th packet.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet, DropReason};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "periodicloss",
    summary: "Drops every n-th packet",
    source: "the periodic loss model of Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27(3), 1997",
    params: &[
        ParamSpec::new("every", Kind::Packets, "Of so many packets the last is dropped.")
            .range(1.0, 1e15)
            .required(),
        ParamSpec::new("offset", Kind::Packets, "Packets that pass before the counting begins.")
            .default("0")
            .range(0.0, 1e15),
    ],
    shorthand: &["every"],
    example: Example::new("{periodicloss: 50 packets}", "Every 50th packet is lost.")
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[PLANNED_LOSS]);

/// Why elements that were told which packets to drop drop them.
pub const PLANNED_LOSS: DropReason = DropReason("planned_loss");

crate::registry::build!(dyn Element<P>: |params, _| {
    let mut law = Periodic {
        every: 1,
        offset: 0,
        seen: 0,
    };
    PacketRule::<P>::change(&mut law, Time::ZERO, params)?;
    PerPacket::new(law)
});

struct Periodic {
    every: u64,
    offset: u64,
    /// Packets that have arrived.
    seen: u64,
}

impl<P: Packet> PacketRule<P> for Periodic {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        self.seen += 1;
        if self.seen > self.offset && (self.seen - self.offset).is_multiple_of(self.every) {
            PacketDecision::Drop(PLANNED_LOSS)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.every = params.integer("every").unwrap_or(1);
        self.offset = params.integer("offset").unwrap_or_default();
        Ok(())
    }
}
