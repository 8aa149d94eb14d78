//! Loss in bursts: a channel that is good or bad (Gilbert 1960, Elliott 1963).
//!
//! The channel has two states, and each packet is one step of the chain: it is lost with the
//! probability of the present state, and then the state changes with probability `p` (good to bad)
//! or `r` (bad to good). The channel starts good. In the long run the share p / (p + r) of all
//! packets meets the bad state, in runs of 1/r packets on average.

use super::loss::RANDOM_LOSS;
use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "gilbert",
    summary: "Drops in bursts: a channel that changes at random between good and bad",
    source: "E. N. Gilbert, Capacity of a burst-noise channel, BSTJ 39, 1960; E. O. Elliott, BSTJ 42, 1963; one step per packet",
    params: &[
        ParamSpec::new("p", Kind::Ratio, "Probability per packet of changing from good to bad.")
            .required(),
        ParamSpec::new(
            "r",
            Kind::Ratio,
            "Probability per packet of changing from bad to good: bad runs are 1/r packets long on average.",
        )
        .required(),
        ParamSpec::new("good", Kind::Ratio, "Probability of loss while good.")
            .default("0")
            .source("Gilbert 1960: none"),
        ParamSpec::new("bad", Kind::Ratio, "Probability of loss while bad.")
            .default("1")
            .source("the simple Gilbert model: everything"),
    ],
    shorthand: &[],
    example: Example::new(
        "{gilbert: {p: 2 %, r: 20 %}}",
        "Losses come in bursts: each packet begins a bad time with 2 % and ends one with 20 %.",
    )
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[RANDOM_LOSS]);

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(Gilbert {
    chances: Chances::new(params),
    is_bad: false,
    stream: setup.stream(),
}));

struct Chances {
    /// By state: of loss, and of a change of state.
    loss: [f64; 2],
    change: [f64; 2],
}

impl Chances {
    fn new(params: &Params) -> Self {
        let real = |name: &str| params.real(name).unwrap_or_default();
        Chances {
            loss: [real("good"), real("bad")],
            change: [real("p"), real("r")],
        }
    }
}

struct Gilbert {
    chances: Chances,
    is_bad: bool,
    stream: Stream,
}

impl<P: Packet> PacketRule<P> for Gilbert {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        let state = usize::from(self.is_bad);
        let lost = self.stream.chance(self.chances.loss[state]);
        self.is_bad ^= self.stream.chance(self.chances.change[state]);
        if lost {
            PacketDecision::Drop(RANDOM_LOSS)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.chances = Chances::new(params);
        Ok(())
    }
}
