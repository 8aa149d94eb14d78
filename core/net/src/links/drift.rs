//! A propagation delay that changes all the time, slowly: towards one side, or to and fro.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Span, Time};
use serde_json::{Map, Value};
use std::f64::consts::TAU;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "drift",
    summary: "Delays by an amount that grows or shrinks steadily, swings, or both",
    source: "delay + slope x t + amplitude x sin(2 pi t / period), never below zero; clocks drift by some 10 ppm, paths over low orbits by some 10 ms within minutes",
    params: &[
        ParamSpec::new("delay", Kind::Span, "Delay at the start of the run.")
            .range(0.0, 3.6e12)
            .required(),
        ParamSpec::new(
            "slope",
            Kind::Number,
            "Growth in seconds per second (0.00001 is 10 ppm); may be negative.",
        )
        .trial(&["0.001"])
        .default("0")
        .range(-0.1, 0.1),
        ParamSpec::new(
            "amplitude",
            Kind::Span,
            "Greatest distance of the swing from its middle; at most the delay.",
        )
        .trial(&["2000000", "5000000"])
        .default("0")
        .range(0.0, 3.6e12),
        ParamSpec::new("period", Kind::Span, "Length of one swing; it begins upwards.")
            .default("60000000000")
            .range(1e6, 1e18),
        super::REORDER,
    ],
    shorthand: &["delay"],
    example: Example::new(
        "{drift: {delay: 20 ms, amplitude: 10 ms, period: 500 ms}}",
        "The delay swings slowly around 20 ms.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::Changing(least_ns));

/// The lowest point of the swing; nothing where the delay shrinks or changes.
fn least_ns(sets: &[&Map<String, Value>]) -> u64 {
    let number = |name: &str| sets[0].get(name).and_then(Value::as_f64).unwrap_or(0.0);
    if number("slope") < 0.0 || sets.len() > 1 {
        return 0;
    }
    // Rounding may cut a nanosecond off.
    (number("delay") - number("amplitude") - 1.0).max(0.0) as u64
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(DelayDrift::new(params)?));

struct DelayDrift {
    /// All in ns.
    delay: f64,
    slope: f64,
    amplitude: f64,
    period: f64,
    reorder: bool,
}

impl DelayDrift {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let real = |name: &str| params.real(name).unwrap_or_default();
        let drift = DelayDrift {
            delay: real("delay"),
            slope: real("slope"),
            amplitude: real("amplitude"),
            period: real("period"),
            reorder: params.flag("reorder").unwrap_or_default(),
        };
        if drift.amplitude > drift.delay {
            return Err(ParamError::Conflict(format!(
                "the amplitude ({} ns) must not be above the delay ({} ns)",
                drift.amplitude, drift.delay
            )));
        }
        Ok(drift)
    }

    fn at(&self, now: Time) -> Span {
        let t = now.ns() as f64;
        let swing = self.amplitude * (t / self.period * TAU).sin();
        // `as` makes zero of what is below it.
        Span::from_ns((self.delay + self.slope * t + swing).round() as u64)
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
        if self.slope < 0.0 {
            return Span::ZERO;
        }
        Span::from_ns((self.delay - self.amplitude) as u64)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        *self = DelayDrift::new(params)?;
        Ok(())
    }
}
