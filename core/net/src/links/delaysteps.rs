//! A propagation delay that changes at given times, as after a change of route.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::piecewise::Piecewise;
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, ParamSpec, Params, Span, Time, params};
use serde_json::{Map, Value};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delaysteps",
    summary: "Delays by an amount that changes at given times, once or periodically",
    source: "a change of route; packets in flight keep the delay with which they started",
    params: &ParamSpec::join::<3>(&[SteppedParams::PARAMS, &[super::REORDER]]),
    shorthand: &["steps"],
    example: Example::new(
        "{delaysteps: [[0 s, 20 ms], [400 ms, 50 ms], [700 ms, 30 ms]]}",
        "At 700 ms the delay falls; packets wait for those before them, so that no packet overtakes another.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects =
    LinkEffects::delays(DelayEffect::Changing(least_ns)).taking_time();

/// The minimum delay of any list of steps.
fn least_ns(sets: &[&Map<String, Value>]) -> u64 {
    let steps = sets.iter().filter_map(|set| set.get("steps")?.as_array());
    let delays = steps.flatten().filter_map(|step| step.get(1)?.as_u64());
    delays.min().unwrap_or(0)
}

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(Stepped::new(params)?));

params! {
    /// Parameters.
    struct SteppedParams {
        /// Times since the start of the run and the delays that apply from each for packets that arrive then; before
        /// the first time the first delay applies.
        steps: SpanSteps(0.0..=3.6e12);
        /// Period after which the steps repeat; without it the last delay applies for ever.
        #[trial("2000000000")]
        period: Option<Span>(1.0..=1e18);
    }
}

struct Stepped {
    steps: Piecewise,
    reorder: bool,
}

impl Stepped {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let reorder = params.read("reorder");
        let params = SteppedParams::read(params);
        let steps = Piecewise::new(&params.steps, params.period.map(Span::ns))?;
        Ok(Stepped { steps, reorder })
    }
}

impl<P: Packet> PacketRule<P> for Stepped {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        PacketDecision::Forward(now + Span::from_ns(self.steps.piece(now).0))
    }

    fn reorders(&self) -> bool {
        self.reorder
    }

    fn propagation(&self) -> Span {
        Span::from_ns(self.steps.values.iter().copied().min().unwrap_or_default())
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        *self = Stepped::new(params)?;
        Ok(())
    }
}
