//! A fixed propagation delay. Order is kept and nothing is ever queued.

use crate::passage::{Fate, Law, Passage};
use crate::{Element, Entry, Outcomes, Packet, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Span, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delay",
    summary: "Delivers each packet a fixed time after it arrived",
    source: "propagation only: nothing is queued, and order is kept",
    params: &[
        ParamSpec::new("delay", Kind::Span, "One-way propagation delay.")
            .range(0.0, 3.6e12)
            .required(),
    ],
    shorthand: &["delay"],
};

/// Builds the element.
pub fn build<P: Packet + 'static>(
    params: &Params,
    _: &Setup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    Ok(Box::new(new(params.span("delay").unwrap_or_default())))
}

/// A delay of `delay`; also used by the network for access delays of single flows.
pub(crate) fn new<P: Packet>(delay: Span) -> Delay<P> {
    Passage::new(Fixed(delay))
}

pub(crate) type Delay<P> = Passage<P, Fixed>;

#[derive(Clone, Debug)]
pub(crate) struct Fixed(Span);

impl<P: Packet> Law<P> for Fixed {
    #[inline]
    fn fate(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> Fate {
        Fate::Leaves(now + self.0)
    }

    fn propagation(&self) -> Span {
        self.0
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // Packets under way keep their delay; when it shrinks, later ones wait for them.
        self.0 = params.span("delay").unwrap_or_default();
        Ok(())
    }
}
