//! The queueing delay, its average and its trend.

use narrows_cc::parts::BaseDelays;
use narrows_units::{Span, Time};

/// History of the path's base delay: 50 slots of 10 s.
const SLOTS: usize = 50;
const SLOT: Span = Span::from_ms(10_000);
/// Weight of a new fraction in the average (RFC 8298: QDELAY_WEIGHT).
const WEIGHT: f64 = 0.1;
/// Number and spacing of the fractions from which the trend is computed.
const HISTORY: usize = 20;
const APART: Span = Span::from_ms(50);
/// A minimum delay above this fraction of the target for this long means that the path itself has changed.
const STANDING: f64 = 0.25;
const STANDING_FOR: Span = Span::from_ms(20_000);
const SECOND: Span = Span::from_ms(1000);

#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// Target in seconds.
    target: f64,
    base: BaseDelays,
    /// Queueing delay in seconds.
    queueing: f64,
    average: f64,
    history: [f64; HISTORY],
    newest: usize,
    sampled: Time,
    trend: f64,
    /// Minimum delay of the current second, and its average over seconds, in seconds.
    least: f64,
    least_average: f64,
    second: Time,
    low_since: Time,
}

impl Delay {
    pub(super) fn new(now: Time, target: f64) -> Self {
        Delay {
            target,
            base: BaseDelays::new(SLOTS, SLOT),
            queueing: 0.0,
            average: 0.0,
            history: [0.0; HISTORY],
            newest: 0,
            sampled: now,
            trend: 0.0,
            least: f64::INFINITY,
            least_average: 0.0,
            second: now,
            low_since: now,
        }
    }

    /// Handles a packet's one-way delay of `one_way` ns, between two clocks.
    pub(super) fn update(&mut self, now: Time, one_way: i64) {
        self.base.update(now, one_way);
        let above = one_way.saturating_sub(self.base.min().unwrap_or(one_way));
        self.queueing = above as f64 / 1e9;
        let fraction = self.queueing / self.target;
        self.average += WEIGHT * (fraction - self.average);
        if now - self.sampled >= APART {
            self.sampled = now;
            self.history[self.newest] = fraction;
            self.newest = (self.newest + 1) % HISTORY;
            self.trend = (self.average * self.correlation()).clamp(0.0, 1.0);
        }
        self.watch(now);
    }

    /// Forgets the path's base delay if the queue seems to have stood for too long.
    fn watch(&mut self, now: Time) {
        self.least = self.least.min(self.queueing);
        if now - self.second < SECOND {
            return;
        }
        self.least_average += 0.1 * (self.least - self.least_average);
        self.least = f64::INFINITY;
        self.second = now;
        if self.least_average <= STANDING * self.target {
            self.low_since = now;
        } else if now - self.low_since > STANDING_FOR {
            self.base = BaseDelays::new(SLOTS, SLOT);
            self.least_average = 0.0;
            self.low_since = now;
        }
    }

    /// Autocorrelation of the fractions at a lag of 50 ms, with their mean removed.
    fn correlation(&self) -> f64 {
        let mean = self.history.iter().sum::<f64>() / HISTORY as f64;
        let at = |index: usize| self.history[(self.newest + index) % HISTORY] - mean;
        let (mut zero, mut one) = (0.0, 0.0);
        for index in 0..HISTORY {
            zero += at(index) * at(index);
            if index > 0 {
                one += at(index) * at(index - 1);
            }
        }
        if zero > 0.0 { one / zero } else { 0.0 }
    }

    /// Queueing delay of the newest packet in seconds.
    #[inline]
    pub(super) fn queueing(&self) -> f64 {
        self.queueing
    }

    /// Average of the queueing delay in targets.
    pub(super) fn average(&self) -> f64 {
        self.average
    }

    /// Between 0 (no queue, or one that varies) and 1 (a queue that keeps growing or standing).
    #[inline]
    pub(super) fn trend(&self) -> f64 {
        self.trend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(delay: &mut Delay, from_ms: u64, to_ms: u64, one_way_ms: impl Fn(u64) -> f64) {
        for ms in (from_ms..to_ms).step_by(10) {
            let one_way = (one_way_ms(ms) * 1e6) as i64 - 3_000_000_000;
            delay.update(Time::from_ns(ms * 1_000_000), one_way);
        }
    }

    #[test]
    fn a_growing_queue_has_a_trend_and_none_has_none() {
        let mut delay = Delay::new(Time::ZERO, 0.1);
        play(&mut delay, 0, 3000, |_| 50.0);
        assert_eq!((delay.queueing(), delay.trend()), (0.0, 0.0));
        play(&mut delay, 3000, 4000, |ms| 50.0 + (ms - 3000) as f64 / 10.0);
        assert!((delay.queueing() - 0.099).abs() < 1e-9);
        assert!(delay.trend() > 0.5, "{}", delay.trend());
    }

    #[test]
    fn a_path_that_has_become_longer_is_believed_after_20_s() {
        let mut delay = Delay::new(Time::ZERO, 0.1);
        play(&mut delay, 0, 3000, |_| 50.0);
        play(&mut delay, 3000, 13_000, |_| 150.0);
        assert_eq!(delay.queueing(), 0.1);
        play(&mut delay, 13_000, 40_000, |_| 150.0);
        assert_eq!(delay.queueing(), 0.0);
    }
}
