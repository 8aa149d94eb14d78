//! Times at which nothing passes, as during a handover or in a tunnel.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet, DropReason};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "outage",
    summary: "Drops or holds everything for a time, once or again and again",
    source: "mahimahi's intermittent links drop; radio links often hold",
    params: &[
        ParamSpec::new("start", Kind::Span, "When the (first) outage begins, since the start of the run.")
            .range(0.0, 1e18)
            .required(),
        ParamSpec::new("length", Kind::Span, "How long it lasts.")
            .range(1.0, 1e18)
            .required(),
        ParamSpec::new(
            "period",
            Kind::Span,
            "From the start of one outage to the start of the next; without it there is one.",
        )
        .trial(&["30000000", "50000000"])
        .range(1.0, 1e18),
        ParamSpec::new(
            "mode",
            Kind::Choice(&["drop", "hold"]),
            "Whether packets that arrive during an outage are dropped, or held without limit and let go together at its end.",
        )
        .default("drop"),
    ],
    shorthand: &[],
    example: Example::new(
        "{outage: {start: 300 ms, length: 200 ms, mode: hold}}",
        "For 200 ms nothing passes; what came meanwhile leaves together at the end.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects {
    delay: DelayEffect::HoldIf("mode", "hold"),
    ..LinkEffects::drops(&[OUTAGE])
};

/// Why packets are dropped during an outage.
pub const OUTAGE: DropReason = DropReason("outage");

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(Outage::new(params)?));

struct Outage {
    start: u64,
    length: u64,
    period: Option<u64>,
    hold: bool,
}

impl Outage {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let whole = |name: &str| params.integer(name).unwrap_or_default();
        let (length, period) = (whole("length"), params.integer("period"));
        if period.is_some_and(|period| period <= length) {
            return Err(ParamError::Conflict(
                "the period of an outage must be longer than its length; a link that is always away is a closed gate"
                    .into(),
            ));
        }
        Ok(Outage {
            start: whole("start"),
            length,
            period,
            hold: params.word("mode") == Some("hold"),
        })
    }
}

impl<P: Packet> PacketRule<P> for Outage {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        let Some(since) = now.ns().checked_sub(self.start) else {
            return PacketDecision::Forward(now);
        };
        let inside = self.period.map_or(since, |period| since % period);
        if inside >= self.length {
            PacketDecision::Forward(now)
        } else if self.hold {
            PacketDecision::Forward(Time::from_ns(now.ns() + (self.length - inside)))
        } else {
            PacketDecision::Drop(OUTAGE)
        }
    }

    fn queues(&self) -> bool {
        self.hold
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // What is held keeps the end that it was told.
        *self = Outage::new(params)?;
        Ok(())
    }
}
