//! A propagation delay that changes slowly and continuously: steadily, or in oscillation.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, ParamSpec, Params, Span, Time, params};
use serde_json::{Map, Value};
use std::f64::consts::TAU;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "drift",
    summary: "Delays by an amount that grows or shrinks steadily, oscillates, or both",
    source: "delay + slope x t + amplitude x sin(2 pi t / period), never below zero; clocks drift by some 10 ppm, paths over low orbits by some 10 ms within minutes",
    params: &ParamSpec::join::<5>(&[DriftParams::PARAMS, &[super::REORDER]]),
    shorthand: &["delay"],
    example: Example::new(
        "{drift: {delay: 20 ms, amplitude: 10 ms, period: 500 ms}}",
        "The delay oscillates slowly around 20 ms.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects =
    LinkEffects::delays(DelayEffect::Changing(least_ns)).taking_time();

/// The minimum of the oscillation; zero if the delay shrinks or changes.
fn least_ns(sets: &[&Map<String, Value>]) -> u64 {
    let number = |name: &str| sets[0].get(name).and_then(Value::as_f64).unwrap_or(0.0);
    if number("slope") < 0.0 || sets.len() > 1 {
        return 0;
    }
    // Rounding may remove a nanosecond.
    (number("delay") - number("amplitude") - 1.0).max(0.0) as u64
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(DelayDrift::new(params)?));

params! {
    /// Parameters besides the order.
    struct DriftParams {
        /// Delay at the start of the run.
        delay: Span(0.0..=3.6e12);
        /// Growth in seconds per second (0.00001 is 10 ppm); may be negative.
        #[trial("0.001")]
        slope: Number(-0.1..=0.1) = 0;
        /// Amplitude of the oscillation; at most the delay.
        #[trial("2000000", "5000000")]
        amplitude: Span(0.0..=3.6e12) = 0;
        /// Period of the oscillation, which begins upwards.
        period: Span(1e6..=1e18) = "60 s";
    }
}

struct DelayDrift {
    params: DriftParams,
    reorder: bool,
}

impl DelayDrift {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let reorder = params.read("reorder");
        let params = DriftParams::read(params);
        if params.amplitude > params.delay {
            return Err(ParamError::Conflict(format!(
                "the amplitude ({} ns) must not be above the delay ({} ns)",
                params.amplitude.ns(), params.delay.ns()
            )));
        }
        Ok(DelayDrift { params, reorder })
    }

    fn at(&self, now: Time) -> Span {
        let params = &self.params;
        let t = now.ns() as f64;
        let swing = params.amplitude.ns() as f64 * (t / params.period.ns() as f64 * TAU).sin();
        // `as` turns negative values into zero.
        Span::from_ns((params.delay.ns() as f64 + params.slope * t + swing).round() as u64)
    }
}

impl<P: Packet> PacketRule<P> for DelayDrift {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        PacketDecision::Forward(now + self.at(now))
    }

    fn reorders(&self) -> bool {
        self.reorder
    }

    fn propagation(&self) -> Span {
        if self.params.slope < 0.0 {
            return Span::ZERO;
        }
        self.params.delay.saturating_sub(self.params.amplitude)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        *self = DelayDrift::new(params)?;
        Ok(())
    }
}
