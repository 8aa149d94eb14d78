//! The queue of frames to send: split into packets when sent, in order, and discarded when too old.

use crate::FrameSent;
use crate::encoder::Frame;
use crate::rtp::{self, Rtp};
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// A packet of a frame, about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket {
    /// Its header.
    pub rtp: Rtp,
    /// Payload bytes.
    pub payload: u32,
}

impl RtpPacket {
    /// Its size with RTP's header.
    pub fn size(&self) -> u32 {
        rtp::size(rtp::length(self.payload))
    }
}

/// The queue between encoder and network.
#[derive(Clone, Debug, Default)]
pub struct Packetizer {
    payload: u32,
    frames: VecDeque<Frame>,
    /// Packets of the oldest frame that have been sent.
    sent: u32,
    /// RTP bytes queued.
    bytes: u64,
    settled: Vec<FrameSent>,
}

impl Packetizer {
    /// An empty queue whose packets carry at most `payload` bytes.
    pub fn new(payload: u32) -> Self {
        Packetizer {
            payload: payload.max(1),
            ..Packetizer::default()
        }
    }

    fn packet(&self, frame: &Frame, index: u32) -> RtpPacket {
        let rest = frame.bytes.saturating_sub(index * self.payload);
        RtpPacket {
            rtp: Rtp {
                frame: frame.number,
                index: index as u16,
                count: self.count(frame) as u16,
                key: frame.key,
                ..Rtp::default()
            },
            payload: rest.min(self.payload),
        }
    }

    fn count(&self, frame: &Frame) -> u32 {
        frame
            .bytes
            .div_ceil(self.payload)
            .clamp(1, rtp::MAX_PACKETS)
    }

    fn size_from(&self, frame: &Frame, first: u32) -> u64 {
        (first..self.count(frame))
            .map(|index| u64::from(self.packet(frame, index).size()))
            .sum()
    }

    /// Queues a frame.
    pub fn push(&mut self, frame: Frame) {
        self.bytes += self.size_from(&frame, 0);
        self.frames.push_back(frame);
    }

    /// The next packet.
    #[inline]
    pub fn peek(&self) -> Option<RtpPacket> {
        self.frames
            .front()
            .map(|frame| self.packet(frame, self.sent))
    }

    /// Removes and returns the next packet.
    pub fn pop(&mut self) -> Option<RtpPacket> {
        let packet = self.peek()?;
        self.bytes -= u64::from(packet.size());
        self.sent += 1;
        if self.sent == u32::from(packet.rtp.count) {
            self.sent = 0;
            let frame = self.frames.pop_front();
            self.settled
                .extend(frame.map(|frame| settled(&frame, false)));
        }
        Some(packet)
    }

    /// RTP bytes queued.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Age of the oldest frame.
    pub fn age(&self, now: Time) -> Span {
        self.frames
            .front()
            .map_or(Span::ZERO, |frame| now - frame.at)
    }

    /// Discards all queued frames; returns their number.
    pub fn clear(&mut self) -> usize {
        let count = self.frames.len();
        self.settled
            .extend(self.frames.drain(..).map(|frame| settled(&frame, true)));
        self.bytes = 0;
        self.sent = 0;
        count
    }

    /// Moves the finished frames into `frames`.
    pub fn take_settled(&mut self, frames: &mut Vec<FrameSent>) {
        frames.append(&mut self.settled);
    }
}

fn settled(frame: &Frame, discarded: bool) -> FrameSent {
    FrameSent {
        number: u64::from(frame.number),
        at: frame.at,
        bytes: frame.bytes,
        key: frame.key,
        discarded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32, bytes: u32) -> Frame {
        Frame {
            number,
            at: Time::from_ns(u64::from(number) * 40_000_000),
            bytes,
            key: number == 0,
        }
    }

    #[test]
    fn a_frame_is_cut_into_full_packets_and_a_rest() {
        let mut outbox = Packetizer::new(1200);
        outbox.push(frame(0, 4916));
        assert_eq!(outbox.bytes(), 4916 + 5 * 20);
        let sizes: Vec<_> = std::iter::from_fn(|| outbox.pop())
            .map(|packet| packet.size())
            .collect();
        // As SCReAM's sample program at 1 Mbit/s: four packets of 1220 bytes and one of 136.
        assert_eq!(sizes, [1220, 1220, 1220, 1220, 136]);
        assert!(outbox.is_empty() && outbox.bytes() == 0);
        // And at 64 and 200 kbit/s: one packet.
        for (bytes, size) in [(300, 320), (980, 1000)] {
            outbox.push(frame(1, bytes));
            assert_eq!(outbox.pop().map(|packet| packet.size()), Some(size));
        }
    }

    #[test]
    fn frames_are_settled_in_order_sent_or_given_up() {
        let mut outbox = Packetizer::new(1000);
        for number in 0..3 {
            outbox.push(frame(number, 2500));
        }
        for _ in 0..4 {
            outbox.pop();
        }
        assert_eq!(outbox.age(Time::from_ns(100_000_000)), Span::from_ms(60));
        assert_eq!(outbox.clear(), 2);
        assert_eq!((outbox.bytes(), outbox.peek()), (0, None));
        let mut frames = vec![];
        outbox.take_settled(&mut frames);
        let list: Vec<_> = frames
            .iter()
            .map(|frame| (frame.number, frame.discarded))
            .collect();
        assert_eq!(list, [(0, false), (1, true), (2, true)]);
        outbox.take_settled(&mut frames);
        assert_eq!(frames.len(), 3, "only once");
    }
}
