//! A fixed propagation delay. Order is kept and no packet is ever queued.
//!
//! With a `limit` it is a delay line of finite capacity, such as netem's: all packets in flight count, so that traffic
//! above a rate of limit / delay is lost although no packet is queued. A packet that arrives at the instant at which
//! another one leaves can take its place.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::declared_effects::number;
use crate::{DataLimit, DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Span, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delay",
    summary: "Delivers each packet a fixed time after it arrived",
    source: "propagation only: no packet is queued, and order is kept; limit: Linux tc-netem(8)",
    params: DelayParams::PARAMS,
    shorthand: &["delay"],
    example: Example::new("{delay: 20 ms}", "Every packet takes 20 ms."),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::Fixed).limiting(|state| {
    if number(state, "delay", 0.0) > 0.0 {
        DataLimit::Room(number(state, "limit", f64::INFINITY))
    } else {
        DataLimit::None
    }
});

params! {
    /// Parameters.
    struct DelayParams {
        /// One-way propagation delay.
        delay: Span(0.0..=3.6e12);
        /// Maximum number of packets in flight; further packets are dropped; absent: no limit.
        limit: Option<PacketCount>(1.0..=4e9),
            "Linux tc-netem(8): its limit, by default 1000 packets, counts packets that are being delayed";
    }
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(FixedDelay::new(params)));

/// A delay of `delay`; also used by the network for access delays of single flows.
pub(crate) fn new<P: Packet>(delay: Span) -> Delay<P> {
    PerPacket::new(FixedDelay { delay, maximum: u32::MAX })
}

/// The delay if any number of packets may be in flight; `None` if their number is limited.
pub(crate) fn unlimited(params: &Params) -> Option<Span> {
    let DelayParams { delay, limit } = DelayParams::read(params);
    limit.is_none().then_some(delay)
}

pub(crate) type Delay<P> = PerPacket<P, FixedDelay>;

#[derive(Clone, Debug)]
pub(crate) struct FixedDelay {
    delay: Span,
    maximum: u32,
}

impl FixedDelay {
    fn new(params: &Params) -> Self {
        let DelayParams { delay, limit } = DelayParams::read(params);
        FixedDelay { delay, maximum: limit.map_or(u32::MAX, |packets| packets as u32) }
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
        self.maximum
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // Packets in flight keep their delay; when it shrinks, later ones wait for them.
        *self = FixedDelay::new(params);
        Ok(())
    }
}
