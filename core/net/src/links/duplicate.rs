//! Packets that arrive twice.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "duplicate",
    summary: "Sends a copy behind each packet with a fixed probability",
    source: "the copy is a separate packet in records, follows immediately and can be lost later",
    params: &[
        ParamSpec::new("ratio", Kind::Ratio, "Probability that a packet is copied.").required(),
    ],
    shorthand: &["ratio"],
    example: Example::new("{duplicate: 5 %}", "One packet in twenty leaves twice.")
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects {
    copies: true,
    ..LinkEffects::NONE
};

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(Duplicate {
    ratio: params.real("ratio").unwrap_or_default(),
    stream: setup.stream(),
}));

struct Duplicate {
    ratio: f64,
    stream: Stream,
}

impl<P: Packet> PacketRule<P> for Duplicate {
    fn decide(&mut self, now: Time, packet: &mut P, outcomes: &mut Outcomes<P>) -> PacketDecision {
        if self.stream.chance(self.ratio) {
            outcomes.copy(now, *packet);
        }
        PacketDecision::Forward(now)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.ratio = params.real("ratio").unwrap_or_default();
        Ok(())
    }
}
