//! A propagation delay whose packets leave only at ticks of a clock, like those of an emulator driven by the timer
//! interrupt of its kernel. Order is kept and no packet is ever queued.
//!
//! A packet leaves at the first tick that is at least `delay` after its arrival: no packet is early, and none is late
//! by a whole tick. Packets that arrive within a tick therefore leave at one instant. Dummynet counts from the tick
//! before the arrival, so that a dummynet pipe with delay D corresponds to D less a tick here.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Span, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delayticks",
    summary: "Delivers packets a fixed time after they arrived, but only at ticks of a clock, as dummynet does",
    source: "Rizzo, Dummynet: a simple approach to the evaluation of network protocols, ACM CCR 27(1), 1997: at every \
             tick all packets leave whose delay is over",
    params: TicksParams::PARAMS,
    shorthand: &["delay"],
    example: Example::new(
        "{delayticks: {delay: 20 ms, tick: 10 ms}}",
        "Packets take 20 to 30 ms, and leave in batches.",
    )
    .picture(r#"{"seconds": 0.1}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::FixedAndJitter).taking_time();

params! {
    /// Parameters.
    struct TicksParams {
        /// Minimum one-way delay.
        delay: Span(0.0..=3.6e12);
        /// Time from one tick to the next.
        tick: Span(1000.0..=1e10) = "1 ms", "FreeBSD's HZ = 1000; 10 ms at HZ = 100, as in the paper";
        /// Time from the start of the run to a tick; elements with other phases tick at other times.
        phase: Span(0.0..=1e10) = "0 ns";
    }
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(DelayTicks::new(params)));

struct DelayTicks {
    delay: Span,
    /// In ns.
    tick: u64,
    phase: u64,
    /// The tick at which the last packet leaves.
    last: Time,
}

impl DelayTicks {
    fn new(params: &Params) -> Self {
        let TicksParams { delay, tick, phase } = TicksParams::read(params);
        DelayTicks { delay, tick: tick.ns(), phase: phase.ns() % tick.ns(), last: Time::ZERO }
    }
}

impl<P: Packet> PacketRule<P> for DelayTicks {
    #[inline]
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        let due = now + self.delay;
        // Most packets leave with the one ahead, which saves the division.
        if due > self.last || self.last == Time::ZERO {
            let ticks = due.ns().saturating_sub(self.phase).div_ceil(self.tick);
            self.last = Time::from_ns(ticks.saturating_mul(self.tick).saturating_add(self.phase));
        }
        PacketDecision::Forward(self.last)
    }

    fn propagation(&self) -> Span {
        self.delay
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // Packets in flight leave at their scheduled times; when the delay shrinks, later ones wait for them.
        *self = DelayTicks::new(params);
        Ok(())
    }
}
