//! Packets that arrive damaged.

use crate::passage::{Fate, Law, Passage};
use crate::{Element, Entry, Outcomes, Packet, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "corrupt",
    summary: "Damages each packet with a fixed probability; it uses the links behind, and the receiver discards it",
    source: "Bernoulli trials from the element's own random stream",
    params: &[
        ParamSpec::new("ratio", Kind::Ratio, "Probability that a packet is damaged.").required(),
    ],
    shorthand: &["ratio"],
};

/// Builds the element.
pub fn build<P: Packet + 'static>(
    params: &Params,
    setup: &Setup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    Ok(Box::new(Passage::new(Corrupt {
        ratio: params.real("ratio").unwrap_or_default(),
        stream: setup.stream(),
    })))
}

struct Corrupt {
    ratio: f64,
    stream: Stream,
}

impl<P: Packet> Law<P> for Corrupt {
    fn fate(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> Fate {
        if self.stream.chance(self.ratio) {
            packet.corrupt();
        }
        Fate::Leaves(now)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.ratio = params.real("ratio").unwrap_or_default();
        Ok(())
    }
}
