//! Packets that the receiver misses and asks for.

use super::feedback;
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// A packet is asked for at most so often, so far apart.
const TRIES: u32 = 10;
const APART: Span = Span::from_ms(100);
/// With more than this nothing is repaired any more.
const MOST: u64 = 1000;

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
}

impl NackList {
    pub(super) fn new() -> Self {
        NackList {
            list: VecDeque::new(),
            due: Time::FAR,
        }
    }

    /// Packets from `first` up to before `end` have been passed over.
    pub(super) fn gap(&mut self, now: Time, first: u64, end: u64) {
        if first >= end {
            return;
        }
        if end - first + self.list.len() as u64 > MOST {
            self.list.clear();
            self.due = Time::FAR;
            return;
        }
        self.list.extend((first..end).map(|number| Missing { number, tries: 0, due: now }));
        self.due = self.due.min(now);
    }

    /// Packet `number` arrived after all.
    pub(super) fn arrived(&mut self, number: u64) {
        if let Ok(index) = self.list.binary_search_by_key(&number, |missing| missing.number) {
            self.list.remove(index);
        }
    }

    /// A repetition of the packet with these lower bits of its number arrived.
    pub(super) fn repaired(&mut self, lower: u32) {
        let found = self.list.iter().position(|missing| missing.number as u32 == lower);
        found.map(|index| self.list.remove(index));
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

    #[test]
    fn a_packet_is_asked_for_ten_times_unless_it_comes() {
        let mut list = NackList::new();
        list.gap(Time::ZERO, 5, 8);
        list.arrived(6);
        list.repaired(7);
        let (mut bytes, mut times) = (vec![], vec![]);
        while list.due() < Time::FAR {
            let now = list.due();
            bytes.clear();
            assert!(list.write(now, &mut bytes));
            let Some(feedback::Message::Missing { base, above }) = feedback::Message::read(&bytes) else { panic!() };
            assert_eq!(feedback::missing(base, above).collect::<Vec<_>>(), [5]);
            times.push(now.ns() / 1_000_000);
        }
        assert_eq!(times, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    }

    #[test]
    fn too_many_are_given_up() {
        let mut list = NackList::new();
        list.gap(Time::ZERO, 0, 10);
        list.gap(Time::ZERO, 20, 1020);
        assert_eq!(list.due(), Time::FAR);
    }
}
