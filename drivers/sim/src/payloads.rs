//! Reused storage for what packets in flight carry: the packets themselves stay small.

use narrows_transport::{Body, Header};
use std::collections::VecDeque;

/// Body of every message that has none of its own.
const EMPTY: u32 = 0;

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    header: Header,
    /// Index of its body.
    body: u32,
    /// Packets that carry it, beyond the first.
    shares: u32,
}

/// Slots that are filled when a packet enters the network and freed when it leaves it. They are
/// never given back, so buffers inside keep their capacity.
#[derive(Debug)]
pub(crate) struct Payloads {
    slots: Vec<Slot>,
    /// Used again in the order in which they became free, so that the next ones are neighbours in memory.
    free: VecDeque<u32>,
    bodies: Vec<Body>,
    free_bodies: VecDeque<u32>,
}

impl Default for Payloads {
    fn default() -> Self {
        Payloads {
            slots: Vec::new(),
            free: VecDeque::new(),
            bodies: vec![Body::default()],
            free_bodies: VecDeque::new(),
        }
    }
}

impl Payloads {
    /// Stores a message, taking the content of `body`, if it has any, in exchange for an old buffer.
    #[inline]
    pub(crate) fn put(&mut self, header: &Header, body: &mut Body) -> u32 {
        let slot = Slot {
            header: *header,
            body: match header {
                Header::Data(_) => EMPTY,
                Header::Ack(_) | Header::Media(_) => self.exchange(body),
            },
            shares: 0,
        };
        if let Some(place) = self.free.pop_front() {
            self.slots[place as usize] = slot;
            return place;
        }
        self.slots.push(slot);
        (self.slots.len() - 1) as u32
    }

    #[inline]
    fn exchange(&mut self, body: &mut Body) -> u32 {
        if let Some(place) = self.free_bodies.pop_front() {
            std::mem::swap(&mut self.bodies[place as usize], body);
            return place;
        }
        self.bodies.push(std::mem::take(body));
        (self.bodies.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> (&Header, &Body) {
        let slot = &self.slots[place as usize];
        (&slot.header, &self.bodies[slot.body as usize])
    }

    /// One more packet carries the message.
    pub(crate) fn share(&mut self, place: u32) {
        self.slots[place as usize].shares += 1;
    }

    /// One packet that carried the message is gone.
    #[inline]
    pub(crate) fn free(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        if slot.shares > 0 {
            slot.shares -= 1;
            return;
        }
        if slot.body != EMPTY {
            self.free_bodies.push_back(slot.body);
        }
        self.free.push_back(place);
    }
}
