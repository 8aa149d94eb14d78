//! Packets that have been sent and may still be acknowledged.

use narrows_units::Time;
use std::collections::VecDeque;

/// State of a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketState {
    /// In flight.
    Outstanding,
    /// Acknowledged.
    Acked,
    /// Declared lost; kept for a while in case it was only late.
    Lost,
}

/// A sent packet, with the delivery-rate snapshot of its transmission (draft-cheng-iccrg-delivery-rate-estimation,
/// section 3.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    /// First payload byte in the stream.
    pub(crate) offset: u64,
    /// When it was sent.
    pub(crate) sent_at: Time,
    /// Bytes delivered before it was sent, and when the last of them was.
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Time,
    /// Start of the flight in which it was sent.
    pub(crate) first_sent_at: Time,
    /// Payload bytes.
    pub(crate) length_bytes: u16,
    pub(crate) state: PacketState,
    /// True if it is a retransmission.
    pub(crate) retransmission: bool,
    /// True if the sender was application-limited then.
    pub(crate) app_limited: bool,
    /// Number of the recovery epoch in which it was declared lost.
    pub(crate) lost_in_epoch: u32,
    /// Payload bytes in flight with it when it was sent.
    pub(crate) in_flight: u64,
    /// Payload bytes found lost before it was sent.
    pub(crate) lost_before: u64,
}

/// Sent packets by number: consecutive numbers from `base`.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    base: u64,
    packets: VecDeque<SentPacket>,
    /// No packet below this number is outstanding.
    lowest: u64,
}

impl SentPackets {
    /// Number of the next packet.
    #[inline]
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Packets below this number are forgotten.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Records a packet under [`SentPackets::next_number`].
    #[inline]
    pub(crate) fn push(&mut self, packet: SentPacket) {
        self.packets.push_back(packet);
    }

    /// The packet with `number`, if it is still known.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.packets.get(number.checked_sub(self.base)? as usize)
    }

    /// As [`SentPackets::get`].
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut SentPacket> {
        self.packets
            .get_mut(number.checked_sub(self.base)? as usize)
    }

    /// The lowest number in flight, or the next number if nothing is.
    #[inline]
    pub(crate) fn lowest_outstanding(&mut self) -> u64 {
        self.lowest = self.lowest.max(self.base);
        let from = (self.lowest - self.base) as usize;
        let settled = self
            .packets
            .range(from..)
            .take_while(|packet| packet.state != PacketState::Outstanding);
        self.lowest += settled.count() as u64;
        self.lowest
    }

    /// Marks a packet as outstanding again, so that searches find it.
    pub(crate) fn revive(&mut self, number: u64) {
        if let Some(packet) = self.get_mut(number) {
            packet.state = PacketState::Outstanding;
            self.lowest = self.lowest.min(number);
        }
    }

    /// Forgets packets from the bottom: acknowledged ones, and lost ones sent before `horizon` whose data lie
    /// below `snd_una`.
    #[inline]
    pub(crate) fn forget(&mut self, horizon: Time, settled: u64) {
        while let Some(packet) = self.packets.front() {
            match packet.state {
                PacketState::Acked => {}
                PacketState::Lost
                    if packet.sent_at < horizon
                        && packet.offset + u64::from(packet.length_bytes) <= settled => {}
                _ => break,
            }
            self.packets.pop_front();
            self.base += 1;
        }
        self.lowest = self.lowest.max(self.base);
    }

    /// Packets and bytes in flight, recounted.
    #[cfg(test)]
    pub(crate) fn outstanding(&self) -> (u64, u64) {
        let flying = self
            .packets
            .iter()
            .filter(|packet| packet.state == PacketState::Outstanding);
        flying.fold((0, 0), |(packets, bytes), packet| {
            (packets + 1, bytes + u64::from(packet.length_bytes))
        })
    }
}
