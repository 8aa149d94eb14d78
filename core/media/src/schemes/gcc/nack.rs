//! Packets of the media that the receiver misses and asks for. Repetitions and padding are none of them: they have
//! numbers among all packets, but leave no gap among those of the media.

use super::feedback;
use crate::rtp::Rtp;
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// A packet is asked for at most so often, so far apart: the round trip that a receiver reckons with which sends no
/// media, and so measures none (Chromium: kMaxNackRetries, kDefaultRttMs).
const TRIES: u32 = 10;
const APART: Span = Span::from_ms(100);
/// With more than this nothing is repaired any more (Chromium: kMaxNackPackets).
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
    /// Where the newest key frame begins of which something has arrived.
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

    /// A packet of the media arrived, for the first time or repeated. Returns whether too many are missing: then none
    /// of them is asked for, and only a key frame can help.
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
            // What was never missed can be no repetition.
            _ if packet.repeated => false,
            before => {
                self.next = Some(number + 1);
                self.gap(now, before.unwrap_or(number), number)
            }
        }
    }

    /// Packets from `first` up to before `end` have been passed over.
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

    /// Nothing before this packet is needed any more: a key frame has arrived.
    pub(super) fn give_up_before(&mut self, number: u64) {
        let count = self.list.partition_point(|missing| missing.number < number);
        self.list.drain(..count);
    }

    /// When something must be asked for.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Writes what is due; whether that was anything.
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

    /// Asks until nothing is missing any more: when, in ms, and for what.
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
        // The second packet of a key frame: the first one is of use too.
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
        // It goes on from there.
        assert!(!list.arrived(Time::ZERO, &packet(1012)));
        assert_eq!(asked(&mut list)[0], (0, vec![1011]));
    }
}
