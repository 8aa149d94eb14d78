//! Measured variation of delay.

use super::delaytrace::{DelayTrace, FILE, LOOP};
use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "jittertrace",
    summary: "Delays by the value of a trace at the time of arrival, as jitter: it is not part of the propagation delay",
    source: "packets in flight keep the delay with which they started",
    params: &[FILE, LOOP, super::REORDER],
    shorthand: &["file"],
    example: Example::new(
        "{jittertrace: delays-handover.csv}",
        "The same trace as jitter: in results it is not part of the path's propagation delay.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::Jitter).taking_time();

crate::registry::build!(dyn Element<P>: |params, setup| {
    let delays = DelayTrace::new(params, setup.files.clone())?;
    PerPacket::new(RecordedJitter(delays))
});

struct RecordedJitter(DelayTrace);

impl<P: Packet> PacketRule<P> for RecordedJitter {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        PacketDecision::Forward(now + self.0.at(now))
    }

    fn reorders(&self) -> bool {
        self.0.reorder()
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.0.change(params)
    }
}
