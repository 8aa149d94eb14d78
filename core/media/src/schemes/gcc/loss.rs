//! The loss-based rate of browsers in 2018: evaluated once per second, the interval of video receivers' reports. If it
//! were evaluated more often, from twenty or thirty packets, random losses of 5 % would occasionally fall below the
//! lower limit and as often exceed the upper one, and the rate would wander between the two.

use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Loss ratios up to which the rate may grow, and above which it falls.
const LOW: f64 = 0.02;
const HIGH: f64 = 0.1;
const GROWTH: f64 = 1.08;
const GROWTH_MORE: f64 = 1e3;
/// Minimum number of packets for a loss ratio.
const PACKETS: u64 = 20;
/// Time between two evaluations of the loss ratio.
const LOOK: Span = Span::from_ms(1000);
/// Age at which a loss ratio expires.
const VALID: Span = Span::from_ms(6000);
/// Denominator of the loss ratio, which is rounded down as in the receiver reports of RTCP (RFC 3550, section 6.4.1).
const PARTS: u64 = 256;
/// Growth is relative to the lowest rate within this time.
const LOWEST_OF: Span = Span::from_ms(1000);
/// Minimum time between decreases, plus a round trip.
const APART: Span = Span::from_ms(300);
/// From the first report on, as long as nothing is lost, only the delay-based rate applies.
const AT_FIRST: Span = Span::from_ms(2000);

#[derive(Clone, Debug, Default)]
pub(super) struct LossRate {
    bps: f64,
    min_bps: f64,
    max_bps: f64,
    /// The time of the first report.
    first: Option<Time>,
    expected: u64,
    lost: u64,
    /// Time of the next evaluation.
    look_at: Time,
    share: f64,
    judged: Option<Time>,
    /// The loss ratio has been evaluated, and the rate has not fallen since.
    fresh: bool,
    decreased: Option<Time>,
    /// Lowest rates, ascending.
    lowest: VecDeque<(Time, f64)>,
}

impl LossRate {
    pub(super) fn new(start_bps: f64, min_bps: f64, max_bps: f64) -> Self {
        LossRate {
            bps: start_bps,
            min_bps,
            max_bps,
            ..LossRate::default()
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

    /// The last loss ratio.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Handles a report of `expected` packets, of which `lost` have not arrived; `delay_bps` is the delay-based rate.
    pub(super) fn update(&mut self, now: Time, expected: u64, lost: u64, rtt: Span, delay_bps: f64) {
        self.expected += expected;
        self.lost += lost;
        self.look(now);
        let first = *self.first.get_or_insert(now);
        if self.share == 0.0 && now - first < AT_FIRST {
            self.bps = delay_bps;
            self.remember(now);
            return;
        }
        self.remember(now);
        let valid = self.judged.is_some_and(|then| now - then < VALID);
        let apart = APART + rtt;
        if valid && self.share <= LOW {
            let lowest = self.lowest.front().map_or(self.bps, |(_, bps)| *bps);
            self.bps = self.bps.max(GROWTH * lowest + GROWTH_MORE);
        } else if self.fresh && self.share > HIGH && self.decreased.is_none_or(|then| now - then >= apart) {
            self.bps *= 1.0 - 0.5 * self.share;
            self.decreased = Some(now);
            self.fresh = false;
        }
        self.bps = self.bps.min(delay_bps).clamp(self.min_bps, self.max_bps);
    }

    /// Periodically evaluates the reports since the last evaluation.
    fn look(&mut self, now: Time) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK;
        if self.expected >= PACKETS {
            let parts = (self.lost * PARTS / self.expected).min(PARTS - 1);
            self.share = parts as f64 / PARTS as f64;
            (self.expected, self.lost) = (0, 0);
            self.judged = Some(now);
            self.fresh = true;
        }
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

    const RTT: Span = Span::from_ms(100);

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// After the first two seconds, `reports` of this many packets 100 ms apart; the first one is evaluated.
    fn play(expected: u64, lost: u64, reports: u64) -> LossRate {
        let mut rate = LossRate::new(1e6, 30e3, 10e6);
        rate.update(ms(100), 0, 0, RTT, 1e6);
        for report in 0..reports {
            rate.update(ms(2100 + 100 * report), expected, lost, RTT, 10e6);
        }
        rate
    }

    #[test]
    fn a_fifth_lost_costs_a_tenth_once_per_second() {
        // 51/256 is the largest ratio not above 20 %.
        let kept = 1.0 - 51.0 / 512.0;
        assert_eq!(play(20, 4, 1).bps(), 1e6 * kept);
        assert_eq!(play(20, 4, 10).bps(), 1e6 * kept);
        assert_eq!(play(20, 4, 11).bps(), 1e6 * kept * kept);
    }

    #[test]
    fn after_a_long_round_trip_the_next_decrease_waits() {
        let mut rate = LossRate::new(1e6, 30e3, 10e6);
        let rtt = Span::from_ms(900);
        for (at, bps) in [(0, 0.75e6), (1000, 0.75e6), (1100, 0.75e6), (1200, 0.5625e6), (1300, 0.5625e6)] {
            rate.update(ms(at), 20, 10, rtt, 10e6);
            assert_eq!(rate.bps(), bps, "{at} ms");
        }
    }

    #[test]
    fn between_2_and_10_percent_it_holds_and_below_it_grows() {
        let grown = GROWTH * 1e6 + GROWTH_MORE;
        for (expected, lost, bps) in [(20, 1, 1e6), (50, 1, grown), (20, 2, 1e6), (100, 3, 1e6), (100, 2, grown)] {
            assert_eq!(play(expected, lost, 1).bps(), bps, "{lost} of {expected}");
        }
        assert!(play(20, 3, 1).bps() < 1e6);
        // The whole step at once, and the next one when a second has passed.
        assert_eq!(play(20, 0, 10).bps(), grown);
        let two = play(20, 0, 21).bps();
        assert!((1.16e6..1.18e6).contains(&two), "{two}");
    }

    #[test]
    fn few_packets_say_nothing() {
        let mut rate = LossRate::new(1e6, 30e3, 10e6);
        rate.update(ms(2500), 10, 10, RTT, 1e6);
        assert_eq!((rate.bps(), rate.share()), (1e6, 0.0));
        rate.update(ms(2600), 10, 0, RTT, 1e6);
        assert_eq!((rate.bps(), rate.share()), (1e6, 0.0), "it is not time to look");
        rate.update(ms(3500), 0, 0, RTT, 1e6);
        assert_eq!((rate.bps(), rate.share()), (0.75e6, 0.5));
    }

    #[test]
    fn an_old_share_is_no_reason_to_grow() {
        let mut rate = play(20, 0, 1);
        let grown = rate.bps();
        rate.update(ms(8100), 0, 0, RTT, 10e6);
        assert_eq!(rate.bps(), grown);
        rate.update(ms(9100), 20, 0, RTT, 10e6);
        assert!(rate.bps() > grown);
    }

    #[test]
    fn at_first_and_always_the_delay_is_an_upper_bound() {
        let mut rate = LossRate::new(1e6, 30e3, 10e6);
        rate.update(ms(1000), 100, 0, RTT, 1.8e6);
        assert_eq!(rate.bps(), 1.8e6);
        rate.update(ms(1500), 0, 0, RTT, 0.4e6);
        assert_eq!(rate.bps(), 0.4e6);
        // A loss ends the phase in which only the delay-based rate applies.
        rate.update(ms(2000), 100, 50, RTT, 1.8e6);
        assert_eq!(rate.bps(), 0.3e6);
    }
}
