//! Reused storage for what packets in flight carry: the packets themselves stay small.

use narrows_transport::{Body, Header};

/// Body of every message that has none of its own.
const EMPTY: u32 = 0;

/// A message in flight.
#[derive(Clone, Copy, Debug)]
struct StoredMessage {
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
    messages: Vec<StoredMessage>,
    free: Vec<u32>,
    bodies: Vec<Body>,
    free_bodies: Vec<u32>,
}

impl Default for Payloads {
    fn default() -> Self {
        Payloads {
            messages: Vec::new(),
            free: Vec::new(),
            bodies: vec![Body::default()],
            free_bodies: Vec::new(),
        }
    }
}

impl Payloads {
    /// Stores a message, taking the content of `body`, if it has any, in exchange for an old buffer.
    #[inline]
    pub(crate) fn put(&mut self, header: Header, body: &mut Body) -> u32 {
        let body = match header {
            Header::Data(_) => EMPTY,
            Header::Ack(_) | Header::Media(_) => self.exchange(body),
        };
        let message = StoredMessage {
            header,
            body,
            shares: 0,
        };
        if let Some(slot) = self.free.pop() {
            self.messages[slot as usize] = message;
            return slot;
        }
        self.messages.push(message);
        (self.messages.len() - 1) as u32
    }

    #[inline]
    fn exchange(&mut self, body: &mut Body) -> u32 {
        if let Some(place) = self.free_bodies.pop() {
            std::mem::swap(&mut self.bodies[place as usize], body);
            return place;
        }
        self.bodies.push(std::mem::take(body));
        (self.bodies.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> (&Header, &Body) {
        let message = &self.messages[slot as usize];
        (&message.header, &self.bodies[message.body as usize])
    }

    /// One more packet carries the message.
    pub(crate) fn share(&mut self, slot: u32) {
        self.messages[slot as usize].shares += 1;
    }

    /// One packet that carried the message is gone.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        let message = &mut self.messages[slot as usize];
        if message.shares > 0 {
            message.shares -= 1;
            return;
        }
        if message.body != EMPTY {
            self.free_bodies.push(message.body);
        }
        self.free.push(slot);
    }
}
