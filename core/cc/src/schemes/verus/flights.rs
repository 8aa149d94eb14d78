//! Sent packets, the windows with which they were sent, and which of them are missing.

use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Missing for this long means lost (yzaki/verus d4b447e: MISSING_PKT_EXPIRY).
const EXPIRY: Span = Span::from_ms(150);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlightState {
    Flying,
    /// A packet sent later has been acknowledged, first at this time.
    Missing(Time),
    Done,
}

/// Packets by number, from the oldest whose fate is unknown.
#[derive(Debug, Default)]
pub(super) struct VerusFlights {
    base: u64,
    packets: VecDeque<(f64, FlightState)>,
    /// One above the newest acknowledged packet: below it none is `Flying`.
    news: u64,
    /// Packets that are not `Done`.
    open: usize,
}

impl VerusFlights {
    /// True if no packet is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Packet `number` is sent with `window`.
    pub(super) fn push(&mut self, number: u64, window: f64) {
        if number != self.base + self.packets.len() as u64 {
            // The very first packet.
            self.clear();
            self.base = number;
        }
        self.packets.push_back((window, FlightState::Flying));
        self.open += 1;
    }

    /// Packet `number` is acknowledged: returns its window, and whether later ones have overtaken it; `None` if it is
    /// not pending.
    pub(super) fn acknowledge(&mut self, number: u64, now: Time) -> Option<(f64, bool)> {
        let index = number.checked_sub(self.base)? as usize;
        let (window, state) = *self.packets.get(index)?;
        if state == FlightState::Done {
            return None;
        }
        let first = self.news.max(self.base);
        for before in first..number {
            self.packets[(before - self.base) as usize].1 = FlightState::Missing(now);
        }
        self.news = self.news.max(number + 1);
        self.packets[index].1 = FlightState::Done;
        self.open -= 1;
        self.forget();
        Some((window, state != FlightState::Flying))
    }

    /// Removes the oldest packet that has been missing for too long; returns its window.
    pub(super) fn next_lost(&mut self, now: Time) -> Option<f64> {
        let &(window, state) = self.packets.front()?;
        // Later ones went missing later.
        match state {
            FlightState::Missing(since) if now.since(since) >= EXPIRY => {}
            _ => return None,
        }
        self.packets[0].1 = FlightState::Done;
        self.open -= 1;
        self.forget();
        Some(window)
    }

    /// Marks everything sent so far as done.
    pub(super) fn clear(&mut self) {
        self.base += self.packets.len() as u64;
        self.packets.clear();
        self.open = 0;
    }

    fn forget(&mut self) {
        while let Some((_, FlightState::Done)) = self.packets.front() {
            self.packets.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn what_is_overtaken_is_lost_after_150_ms_unless_it_comes() {
        let mut flights = VerusFlights::default();
        for number in 7..12 {
            flights.push(number, number as f64);
        }
        assert_eq!(flights.acknowledge(9, ms(100)), Some((9.0, false)));
        assert_eq!(flights.acknowledge(9, ms(101)), None, "a copy");
        assert_eq!(flights.acknowledge(8, ms(120)), Some((8.0, true)), "late, but in time");
        assert_eq!(flights.acknowledge(11, ms(130)), Some((11.0, false)));
        assert_eq!(flights.next_lost(ms(249)), None);
        assert_eq!(flights.next_lost(ms(250)), Some(7.0));
        assert_eq!(flights.acknowledge(7, ms(251)), None, "too late");
        assert_eq!(flights.next_lost(ms(279)), None);
        assert_eq!(flights.next_lost(ms(280)), Some(10.0));
        assert!(flights.is_empty());
        assert_eq!(flights.next_lost(ms(1000)), None);
    }

    #[test]
    fn what_was_done_with_is_not_asked_for() {
        let mut flights = VerusFlights::default();
        flights.push(0, 1.0);
        flights.push(1, 1.0);
        flights.clear();
        assert!(flights.is_empty());
        flights.push(2, 5.0);
        assert_eq!(flights.acknowledge(1, ms(1)), None);
        assert_eq!(flights.acknowledge(2, ms(1)), Some((5.0, false)));
        assert_eq!(flights.next_lost(ms(1000)), None);
    }
}
