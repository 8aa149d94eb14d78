//! A queue without limit.

use crate::{Backlog, Entry, Outcomes, Packet, Queue, Setup};
use narrows_units::{ParamError, Params, Time};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "unlimited",
    summary: "First in, first out, never drops",
    source: "mahimahi's default 'infinite' queue (Netravali et al., USENIX ATC 2015)",
    params: &[],
    shorthand: &[],
};

/// Builds the queue.
pub fn build<P: Packet + 'static>(
    _: &Params,
    _: &Setup,
) -> Result<Box<dyn Queue<P>>, ParamError> {
    Ok(Box::new(Unlimited { store: VecDeque::new(), backlog: Backlog::default() }))
}

struct Unlimited<P> {
    store: VecDeque<P>,
    backlog: Backlog,
}

impl<P: Packet> Queue<P> for Unlimited<P> {
    #[inline]
    fn enqueue(&mut self, _: Time, packet: P, _: &mut Outcomes<P>) {
        self.backlog.add(packet.size());
        self.store.push_back(packet);
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        let packet = self.store.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.store.iter().for_each(visit);
    }
}
