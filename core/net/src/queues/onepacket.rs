//! Room for one packet in addition to the one in service.

use crate::fifo::QUEUE_FULL;
use crate::{Backlog, Entry, Example, Outcomes, Packet, Queue, QueueDrops, QueueEffects};
use narrows_units::{ParamError, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "onepacket",
    summary: "Room for one waiting packet; further packets are dropped",
    source: "mahimahi's drop-tail queue with packets=1, as in Pantheon's emulated paths \
             (Yan et al., USENIX ATC 2018)",
    params: &[],
    shorthand: &[],
    example: Example::new(
        "onepacket",
        "At most one packet waits, so that the delay stays below 2.5 ms and the rest of a burst is dropped.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects {
    packets: Some(1),
    ..QueueEffects::fifo(QueueDrops::NoRoom)
};

crate::registry::build!(dyn Queue<P>: |_, _| OnePacket(None));

struct OnePacket<P>(Option<P>);

impl<P: Packet> Queue<P> for OnePacket<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        if self.0.is_some() {
            outcomes.drop(now, packet, QUEUE_FULL);
        } else {
            self.0 = Some(packet);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        self.0.take()
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        self.0.iter().for_each(|packet| backlog.add(packet.size()));
        backlog
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.0.iter().for_each(visit);
    }

    fn change(&mut self, _: Time, _: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        Ok(())
    }
}
