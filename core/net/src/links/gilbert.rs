//! Loss in bursts: a channel that is good or bad (Gilbert 1960, Elliott 1963).
//!
//! The channel has two states, and each packet is one step of the chain: it is lost with the probability of the present
//! state, and then the state changes with probability `p` (good to bad) or `r` (bad to good). The channel starts good.
//! In the long run a share p / (p + r) of all packets encounters the bad state, in runs of 1/r packets on average.

use super::loss::RANDOM_LOSS;
use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::declared_effects::number;
use crate::{DataLimit, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Stream, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "gilbert",
    summary: "Drops in bursts: a channel that changes at random between good and bad",
    source: "E. N. Gilbert, Capacity of a burst-noise channel, BSTJ 39, 1960; E. O. Elliott, BSTJ 42, 1963; one step per packet",
    params: GilbertParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{gilbert: {p: 2 %, r: 20 %}}",
        "Losses come in bursts: with each packet, a bad period begins with probability 2 % and ends with 20 %.",
    )
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[RANDOM_LOSS]).limiting(|state| {
    let (p, r) = (number(state, "p", 0.0), number(state, "r", 0.0));
    let bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
    DataLimit::Loss(bad * number(state, "bad", 1.0) + (1.0 - bad) * number(state, "good", 0.0))
});

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(Gilbert {
    params: GilbertParams::read(params),
    is_bad: false,
    stream: setup.stream(),
}));

params! {
    /// Parameters.
    struct GilbertParams {
        /// Probability per packet of changing from good to bad.
        p: Ratio;
        /// Probability per packet of changing from bad to good: bad runs are 1/r packets long on average.
        r: Ratio;
        /// Probability of loss while good.
        good: Ratio = 0, "Gilbert 1960: none";
        /// Probability of loss while bad.
        bad: Ratio = 1, "the simple Gilbert model: all packets";
    }
}

struct Gilbert {
    params: GilbertParams,
    is_bad: bool,
    stream: Stream,
}

impl<P: Packet> PacketRule<P> for Gilbert {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        let GilbertParams { p, r, good, bad } = self.params;
        let (loss, change) = if self.is_bad { (bad, r) } else { (good, p) };
        let lost = self.stream.chance(loss);
        self.is_bad ^= self.stream.chance(change);
        if lost {
            PacketDecision::Drop(RANDOM_LOSS)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.params = GilbertParams::read(params);
        Ok(())
    }
}
