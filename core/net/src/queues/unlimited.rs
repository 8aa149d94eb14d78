//! A queue without limit.

use crate::{Backlog, Entry, Example, Fifo, Outcomes, Packet, Queue, QueueDrops, QueueEffects};
use narrows_units::{ParamError, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "unlimited",
    summary: "First in, first out, never drops",
    source: "mahimahi's default 'infinite' queue (Netravali et al., USENIX ATC 2015)",
    params: &[],
    shorthand: &[],
    example: Example::new("unlimited", "No packet is dropped; the delay grows as long as the burst lasts."),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::NoRoom);

crate::registry::build!(dyn Queue<P>: |_, _| Unlimited { fifo: Fifo::new() });

struct Unlimited<P> {
    fifo: Fifo<P>,
}

impl<P: Packet> Queue<P> for Unlimited<P> {
    #[inline]
    fn enqueue(&mut self, _: Time, packet: P, _: &mut Outcomes<P>) {
        self.fifo.push(packet);
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

    fn change(&mut self, _: Time, _: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        Ok(())
    }
}
