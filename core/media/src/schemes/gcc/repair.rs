//! Retransmission of packets requested by the receiver, as in browsers (RFC 4588): under the packet's original media
//! sequence number. A lost retransmission is requested again under that number and leaves no separate gap.

use crate::packetizer::RtpPacket;
use crate::rate_meter::RateMeter;
use crate::rtp::Rtp;
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Maximum number of packets stored for retransmission: more than four seconds at 10 Mbit/s.
const MAX_PACKETS: usize = 4096;
/// Window over which retransmissions are limited to the target rate (Chromium: retransmission_rate_limiter).
const LIMITED_OVER: Span = Span::from_ms(500);
/// Window over which their rate is measured.
const WINDOW: Span = Span::from_ms(1000);

#[derive(Clone, Copy, Debug)]
struct Kept {
    packet: RtpPacket,
    /// When a retransmission was last granted, and whether it is still to be sent.
    granted: Option<Time>,
    waits: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Repairs {
    kept: VecDeque<Kept>,
    /// Sequence number of the first one.
    first: u64,
    /// Packets to retransmit, and their bytes with RTP's header.
    waiting: VecDeque<u64>,
    bytes: u64,
    /// Bytes granted within the last window.
    granted: VecDeque<(Time, u64)>,
    granted_bytes: u64,
    /// The rate of retransmissions.
    meter: RateMeter,
}

impl Repairs {
    pub(super) fn new(now: Time) -> Self {
        Repairs {
            kept: VecDeque::new(),
            first: 0,
            waiting: VecDeque::new(),
            bytes: 0,
            granted: VecDeque::new(),
            granted_bytes: 0,
            meter: RateMeter::new(now, WINDOW, 0.0),
        }
    }

    /// Stores a media packet sent for the first time; returns it with its number.
    pub(super) fn keep(&mut self, packet: RtpPacket) -> RtpPacket {
        let sequence = self.first + self.kept.len() as u64;
        if self.kept.len() == MAX_PACKETS {
            self.kept.pop_front();
            self.first += 1;
        }
        let rtp = Rtp { sequence: sequence as u32, ..packet.rtp };
        let packet = RtpPacket { rtp, ..packet };
        self.kept.push_back(Kept { packet, granted: None, waits: false });
        packet
    }

    fn get(&mut self, sequence: u64) -> Option<&mut Kept> {
        let index = sequence.checked_sub(self.first)?;
        self.kept.get_mut(usize::try_from(index).ok()?)
    }

    /// Handles a request for missing packets. Each is retransmitted at most once per `apart` (a round trip, before
    /// which its fate is unknown), and all of them at no more than `bps`: the rest has to be requested again.
    pub(super) fn asked(&mut self, now: Time, apart: Span, bps: f64, missing: impl Iterator<Item = u64>) {
        while let Some((_, size)) = self.granted.pop_front_if(|(then, _)| now - *then >= LIMITED_OVER) {
            self.granted_bytes -= size;
        }
        let most = (bps * LIMITED_OVER.secs() / 8.0) as u64;
        for sequence in missing {
            let used = self.granted_bytes;
            let Some(kept) = self.get(sequence) else { continue };
            if kept.waits || kept.granted.is_some_and(|then| now - then < apart) {
                continue;
            }
            let size = u64::from(kept.packet.size());
            if used > 0 && used + size > most {
                return;
            }
            (kept.granted, kept.waits) = (Some(now), true);
            self.granted.push_back((now, size));
            self.granted_bytes += size;
            self.waiting.push_back(sequence);
            self.bytes += size;
        }
    }

    /// The next retransmission.
    pub(super) fn pop(&mut self) -> Option<RtpPacket> {
        while let Some(sequence) = self.waiting.pop_front() {
            let Some(kept) = self.get(sequence) else { continue };
            kept.waits = false;
            let rtp = Rtp { repeated: true, ..kept.packet.rtp };
            let packet = RtpPacket { rtp, ..kept.packet };
            self.bytes -= u64::from(packet.size());
            self.meter.add(packet.size());
            return Some(packet);
        }
        self.bytes = 0;
        None
    }

    /// RTP bytes that wait.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Their rate in bit/s.
    pub(super) fn bps(&mut self, now: Time) -> f64 {
        self.meter.update(now);
        self.meter.bps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_ms(50);

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// `count` packets of 1000 bytes.
    fn sent(count: u64) -> Repairs {
        let mut repairs = Repairs::new(Time::ZERO);
        for _ in 0..count {
            repairs.keep(RtpPacket { rtp: Rtp { count: 1, ..Rtp::default() }, payload: 980 });
        }
        repairs
    }

    fn popped(repairs: &mut Repairs) -> Vec<u32> {
        let packets = std::iter::from_fn(|| repairs.pop());
        packets.inspect(|packet| assert!(packet.rtp.repeated)).map(|packet| packet.rtp.sequence).collect()
    }

    #[test]
    fn a_packet_is_repeated_under_its_own_number_once_per_round_trip() {
        let mut repairs = sent(10);
        repairs.asked(ms(0), RTT, 1e6, [3, 5, 5, 70].into_iter());
        assert_eq!(repairs.bytes(), 2000);
        repairs.asked(ms(100), RTT, 1e6, [3].into_iter());
        assert_eq!(popped(&mut repairs), [3, 5], "a waiting packet is not requested twice");
        assert_eq!((repairs.bytes(), repairs.is_empty()), (0, true));
        repairs.asked(ms(120), RTT, 1e6, [3].into_iter());
        assert_eq!(popped(&mut repairs), [3]);
        repairs.asked(ms(169), RTT, 1e6, [3].into_iter());
        assert!(popped(&mut repairs).is_empty());
        repairs.asked(ms(170), RTT, 1e6, [3].into_iter());
        assert_eq!(popped(&mut repairs), [3]);
        // 4000 bytes in a second.
        assert_eq!(repairs.bps(ms(1000)), 32e3);
        // First transmissions continue the numbering.
        assert_eq!(repairs.keep(RtpPacket { rtp: Rtp::default(), payload: 1 }).rtp.sequence, 10);
    }

    #[test]
    fn together_they_get_no_more_than_the_target() {
        let mut repairs = sent(100);
        let mut granted = 0;
        for tenth in 0..20 {
            repairs.asked(ms(100 * tenth), RTT, 80e3, (5 * tenth)..100);
            granted += popped(&mut repairs).len();
        }
        // 80 kbit/s are 5 packets in half a second, of which two seconds have four.
        assert_eq!(granted, 20);
        // One packet at least, however low the target.
        repairs.asked(ms(5000), RTT, 1e3, 0..100);
        assert_eq!(popped(&mut repairs).len(), 1);
    }

    #[test]
    fn what_is_forgotten_is_not_repeated() {
        let mut repairs = sent(10);
        repairs.asked(ms(0), RTT, 1e6, [0, 9].into_iter());
        for _ in 0..MAX_PACKETS - 5 {
            repairs.keep(RtpPacket { rtp: Rtp::default(), payload: 980 });
        }
        assert_eq!(popped(&mut repairs), [9]);
        assert_eq!(repairs.bytes(), 0);
    }
}
