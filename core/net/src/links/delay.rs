//! A fixed propagation delay. Order is kept and nothing is ever queued.
//!
//! With a `limit` it is a delay line of so many places, such as netem's: all packets under way count, so that a
//! rate above limit / delay loses the rest although nothing waits. A packet that comes at the instant at which
//! another one leaves finds its place free.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Span, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delay",
    summary: "Delivers each packet a fixed time after it arrived",
    source: "propagation only: nothing is queued, and order is kept; limit: Linux tc-netem(8)",
    params: DelayParams::PARAMS,
    shorthand: &["delay"],
    example: Example::new("{delay: 20 ms}", "Every packet takes 20 ms."),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::Fixed);

params! {
    /// Parameters.
    struct DelayParams {
        /// One-way propagation delay.
        delay: Span(0.0..=3.6e12);
        /// Most packets under way at once; what comes beyond is dropped; absent: no limit.
        limit: Option<PacketCount>(1.0..=4e9),
            "Linux tc-netem(8): its limit, 1000 packets where none is given, counts packets that are being delayed";
    }
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(FixedDelay::new(params)));

/// A delay of `delay`; also used by the network for access delays of single flows.
pub(crate) fn new<P: Packet>(delay: Span) -> Delay<P> {
    PerPacket::new(FixedDelay { delay, most: u32::MAX })
}

/// The delay that any number of packets may be under way in; `None` if their number is limited.
pub(crate) fn unlimited(params: &Params) -> Option<Span> {
    let DelayParams { delay, limit } = DelayParams::read(params);
    limit.is_none().then_some(delay)
}

pub(crate) type Delay<P> = PerPacket<P, FixedDelay>;

#[derive(Clone, Debug)]
pub(crate) struct FixedDelay {
    delay: Span,
    most: u32,
}

impl FixedDelay {
    fn new(params: &Params) -> Self {
        let DelayParams { delay, limit } = DelayParams::read(params);
        FixedDelay { delay, most: limit.map_or(u32::MAX, |packets| packets as u32) }
    }
}

impl<P: Packet> PacketRule<P> for FixedDelay {
    #[inline]
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        PacketDecision::Forward(now + self.delay)
    }

    fn propagation(&self) -> Span {
        self.delay
    }

    fn max_packets(&self) -> u32 {
        self.most
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // Packets under way keep their delay; when it shrinks, later ones wait for them.
        *self = FixedDelay::new(params);
        Ok(())
    }
}
