//! Random variation of delay, drawn independently for each packet.
//!
//! The laws, each of which adds a delay of zero or more:
//!
//! * `uniform`: uniform from 0 to `spread`;
//! * `normal`: normal with the standard deviation `spread` around `mean`; draws below zero are repeated;
//! * `truncated`: the absolute value of a normal law around zero with the standard deviation
//!   `spread`, cut at `most`: the random bounded variation of RFC 8868;
//! * `pareto`: P(more than x) = (1 + x / spread)^-shape, a heavy tail starting at zero (Lomax's law).
//!
//! By default packets keep their order: a packet with a short delay waits for the one ahead. RFC 8868 also requires it
//! to wait for the transmission time of its predecessor; use the parameter `rate` for that, or a bottleneck behind this
//! element.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Bytes, ParamError, ParamSpec, Params, Rate, Span, Stream, Time, choice, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "jitter",
    summary: "Delays each packet by a random time, without reordering unless asked to",
    source: "RFC 8868 (truncated law); a packet that draws a short delay waits for its predecessor",
    params: &ParamSpec::join::<7>(&[JitterParams::PARAMS, &[super::REORDER]]),
    shorthand: &["spread"],
    example: Example::new(
        "{jitter: {law: truncated, spread: 5 ms}}",
        "The law of RFC 8868. No packet overtakes another: it waits for the one before it.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::Jitter).taking_time();

/// An hour: maximum of any draw.
const MAX_DRAW_NS: f64 = 3.6e12;

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(Jitter {
    settings: JitterSettings::new(params)?,
    stream: setup.stream(),
    last: Time::ZERO,
}));

choice! {
    /// Law of the delays.
    enum Law { Truncated = "truncated", Uniform = "uniform", Normal = "normal", Pareto = "pareto" }
}

params! {
    /// Parameters besides the order.
    struct JitterParams {
        /// Law of the delays.
        law: Law = "truncated";
        /// Scale of the law: standard deviation (truncated, normal), largest delay (uniform), or scale (pareto).
        spread: Span(1.0..=6e10) = "5 ms", "RFC 8868: 5 ms";
        /// Mean of the normal law; by default three times the spread, so that draws are rarely below zero.
        mean: Option<Span>(0.0..=3.6e12);
        /// Exponent of the tail (pareto): small is heavy; the mean is spread / (shape - 1).
        shape: Number(1.01..=100.0) = 3;
        /// Larger draws are repeated; not below spread and mean. By default three times the spread (truncated) or an
        /// hour.
        #[trial("20000000", "9000000")]
        most: Option<Span>(1.0..=3.6e12), "RFC 8868: 3 standard deviations";
        /// Packets that keep their order leave at least their transmission time at this rate after the one ahead;
        /// without it, at the same instant at the earliest.
        rate: Option<Rate>(1.0..=1e13);
    }
}

struct JitterSettings {
    law: Law,
    /// Scale and centre of the law, in ns.
    spread: f64,
    mean: f64,
    shape: f64,
    /// Larger draws are repeated.
    most: f64,
    rate: Option<Rate>,
    reorder: bool,
}

impl JitterSettings {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let reorder = params.read("reorder");
        let params = JitterParams::read(params);
        let ns = |span: Span| span.ns() as f64;
        let spread = ns(params.spread);
        let (mean, usual) = match params.law {
            Law::Truncated => (0.0, 3.0 * spread),
            Law::Normal => (params.mean.map_or(3.0 * spread, ns), MAX_DRAW_NS),
            Law::Uniform | Law::Pareto => (0.0, MAX_DRAW_NS),
        };
        let most = params.most.map_or(usual, ns);
        // Otherwise nearly every draw would have to be repeated.
        if most < spread.max(mean) {
            return Err(ParamError::Conflict(format!(
                "'most' ({most} ns) must not be below the spread ({spread} ns) or the mean ({mean} ns)"
            )));
        }
        Ok(JitterSettings { law: params.law, spread, mean, shape: params.shape, most, rate: params.rate, reorder })
    }
}

struct Jitter {
    settings: JitterSettings,
    stream: Stream,
    /// When the last packet leaves.
    last: Time,
}

impl Jitter {
    fn draw(&mut self) -> f64 {
        let (settings, stream) = (&self.settings, &mut self.stream);
        loop {
            let delay = settings.spread
                * match settings.law {
                    Law::Uniform => stream.uniform(),
                    Law::Normal => settings.mean / settings.spread + stream.normal(),
                    Law::Truncated => stream.normal().abs(),
                    Law::Pareto => (1.0 - stream.uniform()).powf(-1.0 / settings.shape) - 1.0,
                };
            if (0.0..=settings.most).contains(&delay) {
                return delay;
            }
        }
    }
}

impl<P: Packet> PacketRule<P> for Jitter {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        let mut due = now + Span::from_ns(self.draw() as u64);
        if let Some(rate) = self.settings.rate
            && !self.settings.reorder
            && self.last > Time::ZERO
        {
            due = due.max(self.last + rate.time_for(Bytes::new(u64::from(packet.size()))));
        }
        self.last = self.last.max(due);
        PacketDecision::Forward(due)
    }

    fn reorders(&self) -> bool {
        self.settings.reorder
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.settings = JitterSettings::new(params)?;
        Ok(())
    }
}
