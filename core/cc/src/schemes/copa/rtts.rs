//! Values that Copa takes from round-trip times.

use crate::parts::WindowedMin;
use narrows_units::{Span, Time};

/// Gain of the smoothed RTT.
const GAIN: f64 = 1.0 / 16.0;
/// Window of the minimum RTT: this time, or this many times itself if that is longer.
const BASE_WINDOW: u64 = 10_000_000_000;
const BASE_RTTS: u64 = 20;
/// Smoothed RTTs over which the queue must have been nearly empty once.
const EMPTY_RTTS: u64 = 4;

/// Round-trip times of one connection, in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct Rtts {
    /// Smoothed RTT; 0 before the first sample.
    pub(super) smoothed: f64,
    base: WindowedMin,
    standing: WindowedMin,
    low: WindowedMin,
    /// The maximum, as the minimum of negated values.
    high: WindowedMin,
}

impl Rtts {
    /// Adds a sample.
    pub(super) fn push(&mut self, now: Time, rtt: Span) {
        let value = rtt.ns() as i64;
        if self.base.min().is_none() {
            self.smoothed = value as f64;
        } else {
            self.smoothed += GAIN * (value as f64 - self.smoothed);
        }
        let base = self.base.min().unwrap_or(value).unsigned_abs();
        let long = BASE_WINDOW.max(base.saturating_mul(BASE_RTTS));
        let smoothed = self.smoothed as u64;
        let recent = Span::from_ns(smoothed.saturating_mul(EMPTY_RTTS));
        self.base.push(now, value, Span::from_ns(long));
        self.standing
            .push(now, value, Span::from_ns(long.min(smoothed / 2)));
        self.low.push(now, value, recent);
        self.high.push(now, -value, recent);
    }

    /// The smallest RTT of the last ten seconds.
    pub(super) fn base(&self) -> f64 {
        self.base.min().unwrap_or(0) as f64
    }

    /// The smallest RTT of the last half of a smoothed one: delayed acknowledgements do not raise it.
    pub(super) fn standing(&self) -> f64 {
        self.standing.min().unwrap_or(0) as f64
    }

    /// True if the queue was nearly empty within the last four round trips: below a tenth of its height, or, unless
    /// `strict`, exactly at it.
    pub(super) fn were_low(&self, strict: bool) -> bool {
        let base = self.base();
        let high = -self.high.min().unwrap_or(0) as f64;
        let low = self.low.min().unwrap_or(0) as f64;
        let bound = base + 0.1 * (high - base);
        // On a path without any queue all are equal.
        low < bound || (low <= bound && !strict)
    }

    /// Resets all state.
    pub(super) fn clear(&mut self) {
        self.smoothed = 0.0;
        for window in [
            &mut self.base,
            &mut self.standing,
            &mut self.low,
            &mut self.high,
        ] {
            window.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn play(samples: &[(u64, u64)]) -> Rtts {
        let mut rtts = Rtts::default();
        for &(ms, rtt) in samples {
            rtts.push(at(ms), Span::from_ms(rtt));
        }
        rtts
    }

    #[test]
    fn the_standing_rtt_forgets_within_half_a_round_trip() {
        let rtts = play(&[(0, 40), (10, 60), (21, 60)]);
        // Half of (40 + 20/16 + (60 - 41.25)/16) is 21.2 ms: the first sample still counts.
        assert_eq!(rtts.standing(), 40e6);
        let rtts = play(&[(0, 40), (10, 60), (22, 60)]);
        assert_eq!((rtts.standing(), rtts.base()), (60e6, 40e6));
        assert!((rtts.smoothed - (41.25e6 + 18.75e6 / 16.0)).abs() < 1.0);
    }

    #[test]
    fn the_base_is_forgotten_after_ten_seconds_or_twenty_round_trips() {
        assert_eq!(play(&[(0, 40), (10_000, 60)]).base(), 40e6);
        assert_eq!(play(&[(0, 40), (10_001, 60)]).base(), 60e6);
        // 20 x 600 ms.
        assert_eq!(play(&[(0, 600), (12_000, 700)]).base(), 600e6);
        assert_eq!(play(&[(0, 600), (12_001, 700)]).base(), 700e6);
    }

    #[test]
    fn a_queue_counts_as_empty_below_a_tenth_of_its_height() {
        assert!(play(&[(0, 40), (10, 40)]).were_low(false));
        // Between 44 and 80 ms above a base of 40 ms: a tenth of the height is 4 ms.
        let mut samples = vec![(0, 40)];
        samples.extend((1..100).map(|step| (step * 10, if step % 10 == 0 { 80 } else { 44 })));
        assert!(play(&samples).were_low(false));
        for sample in &mut samples[1..] {
            sample.1 += 1;
        }
        assert!(!play(&samples).were_low(false));
    }

    #[test]
    fn equal_round_trips_are_an_empty_queue_unless_the_comparison_is_strict() {
        let equal = play(&[(0, 40), (10, 40)]);
        assert!(equal.were_low(false) && !equal.were_low(true));
        // One sample above is enough to tell the others from it.
        let queue = play(&[(0, 40), (10, 41)]);
        assert!(queue.were_low(false) && queue.were_low(true));
    }
}
