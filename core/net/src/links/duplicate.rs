//! Packets that arrive twice.

use crate::passage::{Fate, Law, Passage};
use crate::{Element, Entry, Outcomes, Packet, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "duplicate",
    summary: "Sends a copy behind each packet with a fixed probability",
    source: "the copy is a packet of its own in records, follows at once and can be lost further on",
    params: &[
        ParamSpec::new("ratio", Kind::Ratio, "Probability that a packet is copied.").required(),
    ],
    shorthand: &["ratio"],
};

/// Builds the element.
pub fn build<P: Packet + 'static>(
    params: &Params,
    setup: &Setup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    Ok(Box::new(Passage::new(Duplicate {
        ratio: params.real("ratio").unwrap_or_default(),
        stream: setup.stream(),
    })))
}

struct Duplicate {
    ratio: f64,
    stream: Stream,
}

impl<P: Packet> Law<P> for Duplicate {
    fn fate(&mut self, now: Time, packet: &mut P, outcomes: &mut Outcomes<P>) -> Fate {
        if self.stream.chance(self.ratio) {
            outcomes.copy(now, *packet);
        }
        Fate::Leaves(now)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.ratio = params.real("ratio").unwrap_or_default();
        Ok(())
    }
}
