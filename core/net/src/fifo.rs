//! Storage in order of arrival, with an honest backlog: what most queue disciplines are built on.

use crate::{Backlog, Packet};
use std::collections::VecDeque;

/// Packets in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    store: VecDeque<P>,
    backlog: Backlog,
}

impl<P: Packet> Fifo<P> {
    /// An empty store.
    pub fn new() -> Self {
        Fifo {
            store: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, packet: P) {
        self.backlog.add(packet.size());
        self.store.push_back(packet);
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let packet = self.store.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    /// What is stored.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Calls `visit` for each packet, oldest first.
    pub fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.store.iter().for_each(visit);
    }
}

impl<P: Packet> Default for Fifo<P> {
    fn default() -> Self {
        Fifo::new()
    }
}
