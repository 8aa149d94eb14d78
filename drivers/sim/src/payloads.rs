//! Reused storage for what packets in flight carry: the packets themselves stay small.

use narrows_transport::{Body, Header};

/// Body of every message that has none of its own.
const EMPTY: u32 = 0;

/// State of a slot.
#[derive(Clone, Copy, Debug)]
struct SlotState {
    /// Index of its body.
    body: u32,
    /// Packets that carry it, beyond the first.
    shares: u32,
}

/// Slots that are filled when a packet enters the network and freed when it leaves it. They are
/// never given back, so buffers inside keep their capacity.
#[derive(Debug)]
pub(crate) struct Payloads {
    headers: Vec<Header>,
    states: Vec<SlotState>,
    free: Vec<u32>,
    bodies: Vec<Body>,
    free_bodies: Vec<u32>,
}

impl Default for Payloads {
    fn default() -> Self {
        Payloads {
            headers: Vec::new(),
            states: Vec::new(),
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
        let state = SlotState { body, shares: 0 };
        if let Some(slot) = self.free.pop() {
            self.headers[slot as usize] = header;
            self.states[slot as usize] = state;
            return slot;
        }
        self.headers.push(header);
        self.states.push(state);
        (self.states.len() - 1) as u32
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
        let body = self.states[slot as usize].body;
        (&self.headers[slot as usize], &self.bodies[body as usize])
    }

    /// One more packet carries the message.
    pub(crate) fn share(&mut self, slot: u32) {
        self.states[slot as usize].shares += 1;
    }

    /// One packet that carried the message is gone.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        let state = &mut self.states[slot as usize];
        if state.shares > 0 {
            state.shares -= 1;
            return;
        }
        if state.body != EMPTY {
            self.free_bodies.push(state.body);
        }
        self.free.push(slot);
    }
}
