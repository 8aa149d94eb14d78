//! Drop-tail: first in, first out, and what finds no room is dropped.

use crate::{Backlog, Entry, Fifo, Outcomes, Packet, Queue, Reason, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "droptail",
    summary: "First in, first out; a packet that finds no room is dropped",
    source: "limits count waiting packets only, not the one in service",
    params: &[
        ParamSpec::new("bytes", Kind::Bytes, "Most bytes (IP sizes) that may wait.")
            .range(1.0, 1e15),
        ParamSpec::new("packets", Kind::Packets, "Most packets that may wait.").range(1.0, 4e9),
    ],
    shorthand: &["bytes", "packets"],
};

/// Why this queue drops.
pub const QUEUE_FULL: Reason = Reason("queue_full");

/// Builds the queue; at least one limit must be given.
pub fn build<P: Packet + 'static>(
    params: &Params,
    _: &Setup,
) -> Result<Box<dyn Queue<P>>, ParamError> {
    let (bytes, packets) = (params.integer("bytes"), params.integer("packets"));
    if bytes.is_none() && packets.is_none() {
        return Err(ParamError::Conflict(
            "a limit is missing: give bytes, packets or both, or use the queue 'unlimited'".into(),
        ));
    }
    Ok(Box::new(DropTail {
        fifo: Fifo::new(),
        limit_bytes: bytes.unwrap_or(u64::MAX),
        limit_packets: packets.map_or(u32::MAX, |limit| u32::try_from(limit).unwrap_or(u32::MAX)),
    }))
}

struct DropTail<P> {
    fifo: Fifo<P>,
    limit_bytes: u64,
    limit_packets: u32,
}

impl<P: Packet> Queue<P> for DropTail<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let backlog = self.fifo.backlog();
        if backlog.bytes + u64::from(packet.size()) > self.limit_bytes
            || backlog.packets >= self.limit_packets
        {
            outcomes.drop(now, packet, QUEUE_FULL);
        } else {
            self.fifo.push(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.fifo.visit(visit);
    }
}
