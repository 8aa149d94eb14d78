//! Drop-head: first in, first out; without room, the oldest packets are dropped.

use crate::fifo::{QueueLimit, QUEUE_FULL};
use crate::{Backlog, Entry, Example, Fifo, Outcomes, Packet, Queue, QueueDrops, QueueEffects};
use narrows_units::{ParamError, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "drophead",
    summary: "First in, first out; an arrival that finds no room pushes the oldest packets out",
    source: "mahimahi's 'drophead' queue (Netravali et al., USENIX ATC 2015)",
    params: super::droptail::ENTRY.params,
    shorthand: super::droptail::ENTRY.shorthand,
    example: Example::new(
        "{drophead: 60 kB}",
        "Like drop-tail, but the packet that has waited longest is dropped, so that senders notice sooner.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::Any);

// Builds the queue; at least one limit is required.
crate::registry::build!(dyn Queue<P>: |params, _| DropHead {
    fifo: Fifo::new(),
    limit: QueueLimit::new(params)?,
});

struct DropHead<P> {
    fifo: Fifo<P>,
    limit: QueueLimit,
}

impl<P: Packet> Queue<P> for DropHead<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        self.fifo.push(packet);
        // A packet that alone exceeds the limit becomes the head and is dropped as well.
        while !self.limit.holds(self.fifo.backlog()) {
            let Some(oldest) = self.fifo.pop() else { break };
            outcomes.drop(now, oldest, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        self.fifo.pop()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.fifo.visit(visit);
    }

    fn change(&mut self, _: Time, params: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        // Packets beyond a reduced limit are dropped with the next arrival.
        self.limit = QueueLimit::new(params)?;
        Ok(())
    }
}
