//! Times at which no packet passes, as during a handover or in a tunnel.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet, DropReason};
use narrows_units::{ParamError, Params, Time, choice, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "outage",
    summary: "Drops or holds all packets for a time, once or periodically",
    source: "mahimahi's intermittent links drop; radio links often hold",
    params: OutageParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{outage: {start: 300 ms, length: 200 ms, mode: hold}}",
        "For 200 ms no packet passes; packets that arrive during that time leave together at the end.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects {
    delay: DelayEffect::HoldIf("mode", "hold"),
    ..LinkEffects::drops(&[OUTAGE])
};

/// Reason of drops during an outage.
pub const OUTAGE: DropReason = DropReason("outage");

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(Outage::new(params)?));

choice! {
    /// The treatment of packets during an outage.
    enum OutageMode { Drop = "drop", Hold = "hold" }
}

params! {
    /// Parameters.
    struct OutageParams {
        /// When the (first) outage begins, since the start of the run.
        start: Span(0.0..=1e18);
        /// How long it lasts.
        length: Span(1.0..=1e18);
        /// Time from the start of one outage to the start of the next; without it there is only one.
        #[trial("30000000", "50000000")]
        period: Option<Span>(1.0..=1e18);
        /// Whether packets that arrive during an outage are dropped, or held without limit and released together at its
        /// end.
        mode: OutageMode = "drop";
    }
}

struct Outage(OutageParams);

impl Outage {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = OutageParams::read(params);
        if params.period.is_some_and(|period| period <= params.length) {
            return Err(ParamError::Conflict(
                "the period of an outage must be longer than its length; use a closed gate for a link that is always down"
                    .into(),
            ));
        }
        Ok(Outage(params))
    }
}

impl<P: Packet> PacketRule<P> for Outage {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        let length = self.0.length.ns();
        let Some(since) = now.ns().checked_sub(self.0.start.ns()) else {
            return PacketDecision::Forward(now);
        };
        let inside = self.0.period.map_or(since, |period| since % period.ns());
        if inside >= length {
            PacketDecision::Forward(now)
        } else if self.0.mode == OutageMode::Hold {
            PacketDecision::Forward(Time::from_ns(now.ns() + (length - inside)))
        } else {
            PacketDecision::Drop(OUTAGE)
        }
    }

    fn queues(&self) -> bool {
        self.0.mode == OutageMode::Hold
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // Packets that are held keep their release time.
        *self = Outage::new(params)?;
        Ok(())
    }
}
