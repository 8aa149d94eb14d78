//! Packets in order of arrival, each with the time of its arrival.

use crate::{Backlog, Packet};
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// A FIFO that remembers when each packet arrived.
#[derive(Clone, Debug)]
pub(crate) struct Stamped<P> {
    store: VecDeque<(Time, P)>,
    backlog: Backlog,
}

impl<P: Packet> Stamped<P> {
    pub(crate) fn new() -> Self {
        Stamped {
            store: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: P) {
        self.backlog.add(packet.size());
        self.store.push_back((now, packet));
    }

    /// The oldest packet and the time of its arrival.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, P)> {
        let (at, packet) = self.store.pop_front()?;
        self.backlog.remove(packet.size());
        Some((at, packet))
    }

    /// Sojourn time of the oldest packet at `now`; zero if none waits.
    #[inline]
    pub(crate) fn age(&self, now: Time) -> Span {
        self.store
            .front()
            .map_or(Span::ZERO, |(at, _)| now.since(*at))
    }

    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.store.iter().for_each(|(_, packet)| visit(packet));
    }
}
