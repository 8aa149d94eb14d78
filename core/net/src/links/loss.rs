//! Independent random loss.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::declared_effects::number;
use crate::{DataLimit, DropReason, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "loss",
    summary: "Drops each packet independently with a fixed probability",
    source: "Bernoulli trials from the element's own random stream",
    params: &[
        ParamSpec::new("ratio", Kind::Ratio, "Probability that a packet is dropped.").required(),
    ],
    shorthand: &["ratio"],
    example: Example::new("{loss: 5 %}", "One packet in twenty is lost, independently of the others.")
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[RANDOM_LOSS])
    .limiting(|state| DataLimit::Loss(number(state, "ratio", 0.0)));

/// Reason of random drops.
pub const RANDOM_LOSS: DropReason = DropReason("random_loss");

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(Loss {
    ratio: params.real("ratio").unwrap_or_default(),
    stream: setup.stream(),
}));

struct Loss {
    ratio: f64,
    stream: Stream,
}

impl<P: Packet> PacketRule<P> for Loss {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        if self.stream.chance(self.ratio) {
            PacketDecision::Drop(RANDOM_LOSS)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.ratio = params.real("ratio").unwrap_or_default();
        Ok(())
    }
}
