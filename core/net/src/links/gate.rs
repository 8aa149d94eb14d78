//! A link that can be cut and restored by a timeline.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet, DropReason};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "gate",
    summary: "Passes or drops all packets; timelines open and close it",
    source: "for timelines: scenarios put one in front of a link that is cut and restored",
    params: &[
        ParamSpec::new("open", Kind::Flag, "Whether packets pass.").default("true"),
    ],
    shorthand: &["open"],
    example: Example::new(
        "{gate: {open: true}}",
        "A timeline closes it at 300 ms and opens it at 600 ms; packets that arrive at a closed gate are dropped.",
    )
    .picture(r#"{"changes": [{"at_ns": 300000000, "element": "probe", "set": {"open": false}}, {"at_ns":
               600000000, "element": "probe", "set": {"open": true}}], "view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[LINK_CUT]);

/// Reason of drops at a closed gate.
pub const LINK_CUT: DropReason = DropReason("link_cut");

crate::registry::build!(dyn Element<P>: |params, _| {
    let open = params.flag("open").unwrap_or(true);
    PerPacket::new(Gate(open))
});

struct Gate(bool);

impl<P: Packet> PacketRule<P> for Gate {
    #[inline]
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        if self.0 {
            PacketDecision::Forward(now)
        } else {
            PacketDecision::Drop(LINK_CUT)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.0 = params.flag("open").unwrap_or(true);
        Ok(())
    }
}
