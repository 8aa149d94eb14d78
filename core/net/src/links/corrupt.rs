//! Packets that arrive damaged.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::declared_effects::number;
use crate::{DataLimit, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "corrupt",
    summary: "Damages each packet with a fixed probability; it still uses the links behind, and the receiver discards it",
    source: "Bernoulli trials from the element's own random stream",
    params: &[
        ParamSpec::new("ratio", Kind::Ratio, "Probability that a packet is damaged.").required(),
    ],
    shorthand: &["ratio"],
    example: Example::new("{corrupt: 5 %}", "One packet in twenty is damaged; its receiver will discard it.")
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects {
    corrupts: true,
    ..LinkEffects::NONE.limiting(|state| DataLimit::Loss(number(state, "ratio", 0.0)))
};

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(Corrupt {
    ratio: params.real("ratio").unwrap_or_default(),
    stream: setup.stream(),
}));

struct Corrupt {
    ratio: f64,
    stream: Stream,
}

impl<P: Packet> PacketRule<P> for Corrupt {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        if self.stream.chance(self.ratio) {
            packet.corrupt();
        }
        PacketDecision::Forward(now)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.ratio = params.real("ratio").unwrap_or_default();
        Ok(())
    }
}
