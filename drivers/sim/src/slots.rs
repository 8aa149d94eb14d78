//! Reused storage for the variable parts of acknowledgements in flight.

use narrows_transport::{Body, Header};

/// A message in flight.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) header: Header,
    pub(crate) body: Body,
}

/// Slots that are filled when an acknowledgement enters the network and freed when it leaves it;
/// their buffers keep their capacity.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    messages: Vec<Message>,
    /// Copies of the message beyond the first, by slot; empty until there are any.
    shares: Vec<u32>,
    free: Vec<u32>,
}

impl Slots {
    /// Stores a message, taking the content of `body` in exchange for an old buffer.
    #[inline]
    pub(crate) fn put(&mut self, header: Header, body: &mut Body) -> u32 {
        if let Some(slot) = self.free.pop() {
            let message = &mut self.messages[slot as usize];
            message.header = header;
            std::mem::swap(&mut message.body, body);
            slot
        } else {
            self.messages.push(Message {
                header,
                body: std::mem::take(body),
            });
            (self.messages.len() - 1) as u32
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Message {
        &self.messages[slot as usize]
    }

    /// One more packet carries the message.
    pub(crate) fn share(&mut self, slot: u32) {
        let slot = slot as usize;
        if self.shares.len() <= slot {
            self.shares.resize(slot + 1, 0);
        }
        self.shares[slot] += 1;
    }

    /// One packet that carried the message is gone.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        if let Some(shares) = self
            .shares
            .get_mut(slot as usize)
            .filter(|shares| **shares > 0)
        {
            *shares -= 1;
        } else {
            self.free.push(slot);
        }
    }
}
