//! Application limits, and probes for the path's additional capacity.
//!
//! A budget fills at two thirds of the target and is drained by sent bytes; when it is full, the application does not
//! use its rate (Chromium of 2018, AlrDetector: modules/pacing/alr_detector.h).

use narrows_units::{Span, Time};

/// Share of the target at which the budget fills.
const FILLS: f64 = 0.65;
/// The budget holds at most this many seconds of its rate, and may be overdrawn by as much.
const HOLDS: f64 = 0.5;
/// The flow becomes application-limited above the first fraction of a full budget, and stops being so below the second.
const FULL: f64 = 0.8;
const USED: f64 = 0.5;

#[derive(Clone, Debug)]
pub(super) struct AppLimit {
    /// Zero: no probes.
    interval: Span,
    /// In bytes.
    budget: f64,
    sent: Time,
    /// Start of the application-limited period.
    since: Option<Time>,
    probed: Time,
}

impl AppLimit {
    pub(super) fn new(interval: Span, now: Time) -> Self {
        AppLimit {
            interval,
            budget: 0.0,
            sent: now,
            since: None,
            probed: now,
        }
    }

    /// A packet of `size` is sent while the target is `target_bps`. Returns whether a probe is due.
    pub(super) fn sent(&mut self, now: Time, size: f64, target_bps: f64) -> bool {
        let rate = FILLS * target_bps / 8.0;
        let most = rate * HOLDS;
        self.budget = (self.budget + rate * (now - self.sent).secs()).clamp(-most, most);
        self.budget = (self.budget - size).max(-most);
        self.sent = now;
        if self.budget > FULL * most {
            self.since.get_or_insert(now);
        } else if self.budget < USED * most {
            self.since = None;
        }
        let due = self.since.is_some_and(|since| now - since.max(self.probed) >= self.interval);
        if due && !self.interval.is_zero() {
            self.probed = now;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes, `apart` ms apart, with a target of 1 Mbit/s: when probes were due, in ms.
    fn probes(limit: &mut AppLimit, apart: u64, from: u64, to: u64) -> Vec<u64> {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let due = (from..to).step_by(apart as usize);
        due.filter(|&ms| limit.sent(at(ms), 1000.0, 1e6)).collect()
    }

    #[test]
    fn who_uses_less_than_two_thirds_is_asked_for_more_every_five_seconds() {
        let new = || AppLimit::new(Span::from_ms(5000), Time::ZERO);
        // 0.8 Mbit/s, and 0.66.
        assert_eq!(probes(&mut new(), 10, 0, 60_000), [0u64; 0]);
        assert_eq!(probes(&mut new(), 12, 0, 60_000), [0u64; 0]);
        // 0.2 Mbit/s: of 3250 bytes per packet 2250 are left, and 0.8 of 40625 bytes are reached after 600 ms.
        assert_eq!(probes(&mut new(), 40, 0, 17_000), [5600, 10_600, 15_600]);
        let mut limit = new();
        assert_eq!(probes(&mut limit, 40, 0, 6000), [5600]);
        // The saved budget is used up within half a second, and then the path is the limit.
        assert_eq!(probes(&mut limit, 8, 6000, 30_000), [0u64; 0]);
        assert_eq!(probes(&mut limit, 40, 30_000, 37_000).len(), 1);
    }

    #[test]
    fn without_an_interval_nobody_asks() {
        let mut limit = AppLimit::new(Span::ZERO, Time::ZERO);
        assert_eq!(probes(&mut limit, 40, 0, 30_000), [0u64; 0]);
    }
}
