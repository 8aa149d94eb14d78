//! Variation of delay as it was measured.

use super::delaytrace::{Delays, FILE, LOOP};
use crate::passage::{Fate, Law, Passage};
use crate::{Element, Entry, Outcomes, Packet, Setup};
use narrows_units::{ParamError, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "jittertrace",
    summary: "Delays by what a trace says for the time of arrival, as jitter: it is no part of the propagation delay",
    source: "packets under way keep the delay with which they set out",
    params: &[FILE, LOOP, super::REORDER],
    shorthand: &["file"],
};

/// Builds the element.
pub fn build<P: Packet + 'static>(
    params: &Params,
    setup: &Setup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    let delays = Delays::new(params, setup.files.clone())?;
    Ok(Box::new(Passage::new(Recorded(delays))))
}

struct Recorded(Delays);

impl<P: Packet> Law<P> for Recorded {
    fn fate(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> Fate {
        Fate::Leaves(now + self.0.at(now))
    }

    fn reorders(&self) -> bool {
        self.0.reorder()
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.0.change(params)
    }
}
