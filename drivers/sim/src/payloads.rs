//! Reused storage for what packets in flight carry.

use crate::packet::{SimPacket, SimPacketKind};
use narrows_traffic::Stamp;
use narrows_transport::{Body, Data, Header};

/// A message in flight whose content varies.
#[derive(Clone, Debug)]
pub(crate) struct StoredMessage {
    pub(crate) header: Header,
    pub(crate) body: Body,
}

/// Slots that are filled when a packet enters the network and freed when it leaves it. They are
/// never given back, so buffers inside keep their capacity.
#[derive(Debug)]
pub(crate) struct PayloadPool<T> {
    items: Vec<T>,
    /// Copies beyond the first, by slot; empty until there are any.
    shares: Vec<u32>,
    free: Vec<u32>,
}

impl<T> Default for PayloadPool<T> {
    fn default() -> Self {
        PayloadPool {
            items: Vec::new(),
            shares: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> PayloadPool<T> {
    /// Stores an item that needs nothing of the old one.
    #[inline]
    pub(crate) fn put(&mut self, item: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.items[slot as usize] = item;
            return slot;
        }
        self.items.push(item);
        (self.items.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &T {
        &self.items[slot as usize]
    }

    /// One more packet carries the item.
    fn share(&mut self, slot: u32) {
        let slot = slot as usize;
        if self.shares.len() <= slot {
            self.shares.resize(slot + 1, 0);
        }
        self.shares[slot] += 1;
    }

    /// One packet that carried the item is gone.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        if let Some(shares) = self.shares.get_mut(slot as usize)
            && *shares > 0
        {
            *shares -= 1;
        } else {
            self.free.push(slot);
        }
    }
}

impl PayloadPool<StoredMessage> {
    /// Stores a message, taking the content of `body` in exchange for an old buffer.
    #[inline]
    fn exchange(&mut self, header: Header, body: &mut Body) -> u32 {
        if let Some(slot) = self.free.pop() {
            let message = &mut self.items[slot as usize];
            message.header = header;
            std::mem::swap(&mut message.body, body);
            return slot;
        }
        self.put(StoredMessage {
            header,
            body: std::mem::take(body),
        })
    }
}

/// Payloads of all packets in flight: the packets themselves stay small.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    pub(crate) data: PayloadPool<Data>,
    pub(crate) acks: PayloadPool<StoredMessage>,
    /// Of real-time schemes, whose content is of another kind and size.
    pub(crate) media: PayloadPool<StoredMessage>,
    pub(crate) stamps: PayloadPool<Stamp>,
}

impl Payloads {
    /// Stores an acknowledgement, taking the content of `body` in exchange for an old buffer.
    #[inline]
    pub(crate) fn put_ack(&mut self, header: Header, body: &mut Body) -> u32 {
        self.acks.exchange(header, body)
    }

    /// Stores a message of a real-time scheme in the same way.
    pub(crate) fn put_media(&mut self, header: Header, body: &mut Body) -> u32 {
        self.media.exchange(header, body)
    }

    /// A copy of `packet` came into being.
    pub(crate) fn share(&mut self, packet: &SimPacket) {
        match packet.kind {
            SimPacketKind::Data => self.data.share(packet.slot),
            SimPacketKind::Ack => self.acks.share(packet.slot),
            SimPacketKind::Datagram => self.stamps.share(packet.slot),
            SimPacketKind::Media | SimPacketKind::Feedback => self.media.share(packet.slot),
        }
    }

    /// `packet` is gone.
    pub(crate) fn free(&mut self, packet: &SimPacket) {
        match packet.kind {
            SimPacketKind::Data => self.data.free(packet.slot),
            SimPacketKind::Ack => self.acks.free(packet.slot),
            SimPacketKind::Datagram => self.stamps.free(packet.slot),
            SimPacketKind::Media | SimPacketKind::Feedback => self.media.free(packet.slot),
        }
    }
}
