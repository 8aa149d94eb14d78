//! Aggregation: packets pass in groups, at fixed times.
//!
//! At each multiple of `time` since the start of the run there are `packets` opportunities, each of which moves `bytes`
//! bytes; small packets share them, and capacity not used at that instant is lost. This is exactly the behaviour of a
//! mahimahi trace of `packets` equal lines, so Pantheon's paths with aggregated acknowledgements are `packets: 1, time:
//! 100 ms` (a trace of one line, 100) and `packets: 10, time: 200 ms` (ten lines, 200) on the return path. With `bytes:
//! 0` each packet takes a whole opportunity, however small it is. The queue in front is unlimited.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{DataLimit, DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "ackaggregation",
    summary: "Passes packets (acknowledgements, on a return path) in groups at fixed times only",
    source: "the aggregation paths of Pantheon (Yan et al., USENIX ATC 2018): 1 opportunity per 100 ms, and 10 per 200 ms",
    params: AckGroupsParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{ackaggregation: {packets: 10 packets, time: 50 ms}}",
        "Acknowledgements, one every 5 ms, leave together every 50 ms.",
    )
    .picture(r#"{"load": [{"every_us": 5000, "spans_s": [[0, 0.4]], "size": 40, "ack": true}], "seconds": 0.4}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::delays(DelayEffect::Jitter).limiting(|_| DataLimit::Rate);

crate::registry::build!(dyn Element<P>: |params, _| PerPacket::new(AckGroups::new(params)));

params! {
    /// Parameters.
    struct AckGroupsParams {
        /// Opportunities at each of the times.
        packets: PacketCount(1.0..=1e6);
        /// Time from one group to the next.
        time: Span(1000.0..=1e15);
        /// IP bytes that an opportunity moves, shared by small packets; 0: one packet each, of any size.
        bytes: Bytes(0.0..=1e6) = 1500, "a full Ethernet packet, as mahimahi's opportunities";
    }
}

struct AckGroups {
    time: u64,
    /// Capacity of one group, in bytes, or in packets if `whole` is set.
    room: u64,
    whole: bool,
    /// The latest group that has begun: its number and its remaining capacity.
    group: u64,
    left: u64,
}

impl AckGroups {
    fn new(params: &Params) -> Self {
        let params = AckGroupsParams::read(params);
        let bytes = params.bytes.get();
        AckGroups {
            time: params.time.ns(),
            room: params.packets * bytes.max(1),
            whole: bytes == 0,
            group: 0,
            left: 0,
        }
    }
}

impl<P: Packet> PacketRule<P> for AckGroups {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        // The first group is at `time`, not at the start of the run.
        let earliest = now.ns().div_ceil(self.time).max(1);
        if self.group < earliest {
            (self.group, self.left) = (earliest, self.room);
        }
        let mut wanted = if self.whole {
            1
        } else {
            u64::from(packet.size())
        };
        while wanted > self.left {
            wanted -= self.left;
            (self.group, self.left) = (self.group + 1, self.room);
        }
        self.left -= wanted;
        PacketDecision::Forward(Time::from_ns(self.group.saturating_mul(self.time)))
    }

    fn queues(&self) -> bool {
        true
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        // Packets inside keep their groups, and later ones stay behind them.
        *self = AckGroups::new(params);
        Ok(())
    }
}
