//! Missing media packets that the receiver requests. Retransmissions and padding are excluded: they are numbered among
//! all packets, but leave no gap in the media sequence.

use super::feedback;
use crate::rtp::Rtp;
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Maximum number of requests for a packet, and the time between them: the default round trip of a receiver that sends
/// no media and therefore cannot measure it (Chromium: kMaxNackRetries, kDefaultRttMs).
const TRIES: u32 = 10;
const APART: Span = Span::from_ms(100);
/// With more missing packets than this, none are requested (Chromium: kMaxNackPackets).
const MAX_NACK_PACKETS: u64 = 1000;

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: u64,
    tries: u32,
    due: Time,
}

#[derive(Clone, Debug)]
pub(super) struct NackList {
    list: VecDeque<Missing>,
    due: Time,
    /// One above the highest sequence number; none before the first packet.
    next: Option<u64>,
    /// Start of the newest key frame of which any packet has arrived.
    key: u64,
}

impl NackList {
    pub(super) fn new() -> Self {
        NackList {
            list: VecDeque::new(),
            due: Time::FAR,
            next: None,
            key: 0,
        }
    }

    /// A packet of the media arrived, for the first time or retransmitted. Returns whether too many are missing: then
    /// none of them is requested, and only a key frame can help.
    pub(super) fn arrived(&mut self, now: Time, packet: &Rtp) -> bool {
        let number = u64::from(packet.sequence);
        if packet.key {
            self.key = self.key.max(number.saturating_sub(u64::from(packet.index)));
        }
        match self.next {
            Some(next) if number < next => {
                if let Ok(index) = self.list.binary_search_by_key(&number, |missing| missing.number) {
                    self.list.remove(index);
                }
                false
            }
            // A packet that was never missing cannot be a retransmission.
            _ if packet.repeated => false,
            before => {
                self.next = Some(number + 1);
                self.gap(now, before.unwrap_or(number), number)
            }
        }
    }

    /// Packets from `first` up to but excluding `end` have been skipped.
    fn gap(&mut self, now: Time, first: u64, end: u64) -> bool {
        if first >= end {
            return false;
        }
        let too_many = |list: &VecDeque<Missing>, first| end - first + list.len() as u64 > MAX_NACK_PACKETS;
        let mut first = first;
        if too_many(&self.list, first) {
            self.give_up_before(self.key);
            first = first.max(self.key.min(end));
        }
        if too_many(&self.list, first) {
            self.list.clear();
            self.due = Time::FAR;
            return true;
        }
        self.list.extend((first..end).map(|number| Missing { number, tries: 0, due: now }));
        self.due = self.due.min(now);
        false
    }

    /// Packets before this one are no longer needed: a key frame has arrived.
    pub(super) fn give_up_before(&mut self, number: u64) {
        let count = self.list.partition_point(|missing| missing.number < number);
        self.list.drain(..count);
    }

    /// When the next request is due.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Writes the due requests; returns whether there were any.
    pub(super) fn write(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let due = self.list.iter().filter(|missing| missing.due <= now);
        let mut told = feedback::write_missing(due.map(|missing| missing.number), out);
        let any = told > 0;
        for missing in &mut self.list {
            if missing.due <= now && told > 0 {
                told -= 1;
                missing.tries += 1;
                missing.due = now + APART;
            }
        }
        self.list.retain(|missing| missing.tries < TRIES);
        self.due = self.list.iter().map(|missing| missing.due).min().unwrap_or(Time::FAR);
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u32) -> Rtp {
        Rtp { sequence, count: 1, ..Rtp::default() }
    }

    fn repeated(sequence: u32) -> Rtp {
        Rtp { repeated: true, ..packet(sequence) }
    }

    fn key(sequence: u32) -> Rtp {
        Rtp { key: true, ..packet(sequence) }
    }

    /// Requests until nothing is missing: times in ms, and packets.
    fn asked(list: &mut NackList) -> Vec<(u64, Vec<u64>)> {
        let mut found = vec![];
        while list.due() < Time::FAR {
            let (now, mut bytes) = (list.due(), vec![]);
            if list.write(now, &mut bytes) {
                let Ok(feedback::GccMessage::Missing { base, above }) = feedback::GccMessage::read(&bytes) else { panic!() };
                found.push((now.ns() / 1_000_000, feedback::missing(base, above).collect()));
            }
        }
        found
    }

    #[test]
    fn a_packet_is_asked_for_ten_times_unless_it_comes() {
        let mut list = NackList::new();
        for packet in [packet(4), packet(8), packet(6), repeated(7)] {
            assert!(!list.arrived(Time::ZERO, &packet));
        }
        let expected: Vec<_> = (0..10).map(|time| (100 * time, vec![5])).collect();
        assert_eq!(asked(&mut list), expected);
    }

    #[test]
    fn a_repetition_leaves_no_gap_whatever_becomes_of_it() {
        let mut list = NackList::new();
        for packet in [packet(4), packet(6), repeated(5), repeated(5), packet(7), repeated(900), packet(8)] {
            list.arrived(Time::ZERO, &packet);
        }
        assert_eq!(asked(&mut list), []);
    }

    #[test]
    fn what_came_before_a_key_frame_is_given_up() {
        let mut list = NackList::new();
        for packet in [packet(0), packet(3), key(5), packet(7)] {
            list.arrived(Time::ZERO, &packet);
        }
        list.give_up_before(5);
        assert_eq!(asked(&mut list)[0], (0, vec![6]));
    }

    #[test]
    fn of_too_many_only_those_after_a_key_frame_are_asked_for() {
        let mut list = NackList::new();
        list.arrived(Time::ZERO, &packet(0));
        assert!(!list.arrived(Time::ZERO, &packet(10)));
        // The second packet of a key frame: the first one is useful, too.
        assert!(!list.arrived(Time::ZERO, &Rtp { index: 1, count: 2, ..key(2000) }));
        assert_eq!(asked(&mut list)[0], (0, vec![1999]));
    }

    #[test]
    fn too_many_are_given_up_and_a_key_frame_is_needed() {
        let mut list = NackList::new();
        list.arrived(Time::ZERO, &packet(0));
        list.arrived(Time::ZERO, &packet(10));
        assert!(list.arrived(Time::ZERO, &packet(1010)));
        assert_eq!(list.due(), Time::FAR);
        // It continues from there.
        assert!(!list.arrived(Time::ZERO, &packet(1012)));
        assert_eq!(asked(&mut list)[0], (0, vec![1011]));
    }
}
