//! Drop-tail: first in, first out; a packet that finds no room is dropped.

use crate::fifo::{QueueLimit, QUEUE_FULL};
use crate::{Backlog, Entry, Example, Fifo, Outcomes, Packet, Queue, QueueDrops, QueueEffects};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "droptail",
    summary: "First in, first out; a packet that finds no room is dropped",
    source: "limits count waiting packets only, not the one in service",
    params: &[
        ParamSpec::new("bytes", Kind::Bytes, "Maximum number of waiting bytes (IP sizes).")
            .range(1.0, 1e15),
        ParamSpec::new("packets", Kind::Packets, "Maximum number of waiting packets.").range(1.0, 4e9),
    ],
    shorthand: &["bytes", "packets"],
    example: Example::new(
        "{droptail: 60 kB}",
        "The queue fills to 60 kB = 48 ms, then newcomers of both flows are dropped.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::NoRoom);

// Builds the queue; at least one limit is required.
crate::registry::build!(dyn Queue<P>: |params, _| DropTail { fifo: Fifo::new(), limit: QueueLimit::new(params)? });

struct DropTail<P> {
    fifo: Fifo<P>,
    limit: QueueLimit,
}

impl<P: Packet> Queue<P> for DropTail<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        if self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.fifo.push(packet);
        } else {
            outcomes.drop(now, packet, QUEUE_FULL);
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

    fn change(&mut self, _: Time, params: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.limit = QueueLimit::new(params)?;
        Ok(())
    }
}
