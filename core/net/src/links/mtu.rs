//! The largest packet that a link carries.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet, DropReason};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "mtu",
    summary: "Drops packets that are too large for the link, silently",
    source: "a path on which packet-too-big messages are lost (RFC 4821, section 1; RFC 8899); for hosts that know the limit use their settings",
    params: &[
        ParamSpec::new("bytes", Kind::Bytes, "Size of the largest IP packet that passes.")
            .trial(&["1500", "576"])
            .range(68.0, 1e6)
            .source("RFC 791: at least 68 bytes")
            .required(),
    ],
    shorthand: &["bytes"],
    example: Example::new("{mtu: 1000 B}", "Packets of 600 bytes pass; those of 1500 bytes, sent between 300 and 800 ms, do not.")
    .picture(r#"{"load": [{"every_us": 5000, "spans_s": [[0, 1]], "size": 600}, {"every_us": 25000, "spans_s":
               [[0.3, 0.8]]}], "view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[TOO_BIG]);

/// Reason of drops of packets that are too large.
pub const TOO_BIG: DropReason = DropReason("too_big");

crate::registry::build!(dyn Element<P>: |params, _| {
    let bytes = params.integer("bytes").unwrap_or_default();
    PerPacket::new(Mtu(bytes))
});

struct Mtu(u64);

impl<P: Packet> PacketRule<P> for Mtu {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        if u64::from(packet.size()) > self.0 {
            PacketDecision::Drop(TOO_BIG)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.0 = params.integer("bytes").unwrap_or_default();
        Ok(())
    }
}
