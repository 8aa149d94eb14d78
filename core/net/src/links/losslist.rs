//! Loss of exactly the packets named: for tests and for textbook pictures.

use super::periodicloss::PLANNED_LOSS;
use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "losslist",
    summary: "Drops exactly the packets whose numbers are listed",
    source: "packets are counted from 1 in the order in which they reach the element",
    params: &[
        ParamSpec::new("packets", Kind::Counts, "Numbers of the packets to drop.")
            .range(1.0, 1e15)
            .required(),
    ],
    shorthand: &["packets"],
    example: Example::new("{losslist: [100, 101, 102, 300]}", "Exactly these packets are lost.")
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[PLANNED_LOSS]);

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(LossList {
    packets: list_packets(params),
    seen: 0,
}));

fn list_packets(params: &Params) -> Vec<u64> {
    let mut packets = params.counts("packets").unwrap_or_default().to_vec();
    packets.sort_unstable();
    packets
}

struct LossList {
    /// In increasing order.
    packets: Vec<u64>,
    /// Packets that have arrived.
    seen: u64,
}

impl<P: Packet> PacketRule<P> for LossList {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        self.seen += 1;
        if self.packets.binary_search(&self.seen).is_ok() {
            PacketDecision::Drop(PLANNED_LOSS)
        } else {
            PacketDecision::Forward(now)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.packets = list_packets(params);
        Ok(())
    }
}
