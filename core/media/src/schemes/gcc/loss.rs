//! The rate from losses, as browsers had it in 2018.

use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Shares of packets lost below which the rate may grow, and above which it falls.
const LOW: f64 = 0.02;
const HIGH: f64 = 0.1;
const GROWTH: f64 = 1.08;
const GROWTH_MORE: f64 = 1e3;
/// A share is only believed from so many packets.
const PACKETS: u64 = 20;
/// Growth is counted from the lowest rate of so long.
const LOWEST_OF: Span = Span::from_ms(1000);
/// Decreases are so far apart, plus a round trip.
const APART: Span = Span::from_ms(300);
/// At first the delay alone rules.
const AT_FIRST: Span = Span::from_ms(2000);

#[derive(Clone, Debug)]
pub(super) struct LossRate {
    bps: f64,
    min_bps: f64,
    max_bps: f64,
    born: Time,
    expected: u64,
    lost: u64,
    share: f64,
    decreased: Option<Time>,
    /// Lowest rates, rising.
    lowest: VecDeque<(Time, f64)>,
}

impl LossRate {
    pub(super) fn new(now: Time, start_bps: f64, min_bps: f64, max_bps: f64) -> Self {
        LossRate {
            bps: start_bps,
            min_bps,
            max_bps,
            born: now,
            expected: 0,
            lost: 0,
            share: 0.0,
            decreased: None,
            lowest: VecDeque::new(),
        }
    }

    /// In bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.bps
    }

    /// A probe found `bps`.
    pub(super) fn set(&mut self, bps: f64) {
        self.bps = bps.clamp(self.min_bps, self.max_bps);
        self.lowest.clear();
    }

    /// The last share of packets lost.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// A report tells of `expected` packets, of which `lost` have not arrived; `delay_bps` is what the delay
    /// allows.
    pub(super) fn update(&mut self, now: Time, expected: u64, lost: u64, rtt: Span, delay_bps: f64) {
        self.expected += expected;
        self.lost += lost;
        if now - self.born < AT_FIRST {
            self.bps = delay_bps;
            self.remember(now);
            return;
        }
        self.remember(now);
        let fresh = self.expected >= PACKETS;
        if fresh {
            self.share = self.lost as f64 / self.expected as f64;
            (self.expected, self.lost) = (0, 0);
        }
        let apart = APART + rtt;
        if self.share < LOW {
            let lowest = self.lowest.front().map_or(self.bps, |(_, bps)| *bps);
            self.bps = self.bps.max(GROWTH * lowest + GROWTH_MORE);
        } else if self.share > HIGH && fresh && self.decreased.is_none_or(|then| now - then >= apart) {
            self.bps *= 1.0 - 0.5 * self.share;
            self.decreased = Some(now);
        }
        self.bps = self.bps.min(delay_bps).clamp(self.min_bps, self.max_bps);
    }

    /// Keeps the lowest rate of the last second at the front.
    fn remember(&mut self, now: Time) {
        while self.lowest.front().is_some_and(|(then, _)| now - *then > LOWEST_OF) {
            self.lowest.pop_front();
        }
        while self.lowest.back().is_some_and(|(_, bps)| *bps >= self.bps) {
            self.lowest.pop_back();
        }
        self.lowest.push_back((now, self.bps));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn play(expected: u64, lost: u64, reports: u64) -> LossRate {
        let mut rate = LossRate::new(Time::ZERO, 1e6, 30e3, 10e6);
        rate.update(ms(100), 0, 0, Span::from_ms(100), 1e6);
        for report in 0..reports {
            rate.update(ms(2000 + 100 * report), expected, lost, Span::from_ms(100), 10e6);
        }
        rate
    }

    #[test]
    fn a_fifth_lost_costs_a_tenth() {
        assert!((play(20, 4, 1).bps() - 0.9e6).abs() < 1e-6);
        // The next ones wait for 300 ms and a round trip.
        assert!((play(20, 4, 4).bps() - 0.9e6).abs() < 1e-6);
        assert!((play(20, 4, 5).bps() - 0.81e6).abs() < 1e-6);
    }

    #[test]
    fn between_2_and_10_percent_it_holds_and_below_it_grows() {
        assert_eq!(play(20, 1, 20).bps(), 1e6);
        // Ten reports later one second has passed: 8 % and 1 kbit/s.
        assert!((play(20, 0, 10).bps() - 1.081e6).abs() < 1.0);
        let two = play(20, 0, 21).bps();
        assert!((1.16e6..1.18e6).contains(&two), "{two}");
    }

    #[test]
    fn few_packets_say_nothing() {
        let mut rate = LossRate::new(Time::ZERO, 1e6, 30e3, 10e6);
        rate.update(ms(2500), 10, 10, Span::from_ms(100), 1e6);
        assert_eq!((rate.bps(), rate.share()), (1e6, 0.0));
        rate.update(ms(2600), 10, 0, Span::from_ms(100), 1e6);
        assert_eq!((rate.bps(), rate.share()), (0.75e6, 0.5));
    }

    #[test]
    fn at_first_and_always_the_delay_is_an_upper_bound() {
        let mut rate = LossRate::new(Time::ZERO, 1e6, 30e3, 10e6);
        rate.update(ms(1000), 100, 100, Span::from_ms(100), 1.8e6);
        assert_eq!(rate.bps(), 1.8e6);
        rate.update(ms(1000), 0, 0, Span::from_ms(100), 0.4e6);
        assert_eq!(rate.bps(), 0.4e6);
    }
}
