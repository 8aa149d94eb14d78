//! The two minima of LEDBAT (RFC 6817): the base delay over minutes, and the current delay over the last few samples.
//!
//! Values are signed, because a one-way delay contains the unknown offset of the peer's clock. Only differences between
//! them are meaningful.

use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// The minimum over the last slots of time, for example ten minutes. Slots begin at whole multiples of their span,
/// whether or not anything is sent (RFC 6817, section 2.4.2: one minimum per minute of the clock).
#[derive(Clone, Debug)]
pub struct BaseDelays {
    span: Span,
    /// Newest last; a slot without a sample is empty.
    slots: VecDeque<Option<i64>>,
    /// Number of the newest slot since time zero.
    newest: u64,
}

impl BaseDelays {
    /// The last `slots` slots of `span` each, without samples.
    pub fn new(slots: usize, span: Span) -> Self {
        BaseDelays {
            span: span.max(Span::from_ns(1)),
            slots: std::iter::repeat_n(None, slots.max(1)).collect(),
            newest: 0,
        }
    }

    /// Adds a sample; returns whether it is the minimum of all slots.
    pub fn update(&mut self, now: Time, value: i64) -> bool {
        let slot = now.ns() / self.span.ns();
        // After a long silence everything is cleared, in a bounded number of steps.
        for _ in 0..(slot.saturating_sub(self.newest)).min(self.slots.len() as u64) {
            self.slots.pop_front();
            self.slots.push_back(None);
        }
        self.newest = self.newest.max(slot);
        let smallest = self.min().is_none_or(|min| value < min);
        if let Some(last) = self.slots.back_mut() {
            *last = Some(last.map_or(value, |last| last.min(value)));
        }
        smallest
    }

    /// The minimum of all slots; `None` before the first sample.
    pub fn min(&self) -> Option<i64> {
        self.slots.iter().flatten().copied().min()
    }
}

/// The minimum of the last few recent samples.
#[derive(Clone, Debug)]
pub struct CurrentDelays {
    most: usize,
    samples: VecDeque<(Time, i64)>,
}

impl CurrentDelays {
    /// A filter over at most `most` samples.
    pub fn new(most: usize) -> Self {
        let most = most.max(1);
        CurrentDelays {
            most,
            samples: VecDeque::with_capacity(most),
        }
    }

    /// Adds a sample.
    pub fn push(&mut self, now: Time, value: i64) {
        if self.samples.len() == self.most {
            self.samples.pop_front();
        }
        self.samples.push_back((now, value));
    }

    /// The smallest sample no older than `age`; the newest always counts.
    pub fn min(&self, now: Time, age: Span) -> Option<i64> {
        let newest = self.samples.back()?.1;
        let recent = self.samples.iter().rev();
        let recent = recent.take_while(|(at, _)| now.since(*at) <= age);
        Some(recent.fold(newest, |min, (_, value)| min.min(*value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(minute: f64) -> Time {
        Time::from_ns((minute * 60e9) as u64)
    }

    #[test]
    fn the_base_is_the_smallest_of_ten_minutes() {
        let mut base = BaseDelays::new(10, Span::from_ms(60_000));
        assert_eq!(base.min(), None);
        assert!(base.update(minute(0.5), -300));
        for step in 1..=18 {
            base.update(minute(0.5 + f64::from(step) / 2.0 - 0.01), 100);
            assert_eq!(base.min(), Some(-300), "step {step}");
        }
        // The tenth minute is over: the first one is forgotten.
        assert!(!base.update(minute(10.0), 120));
        assert_eq!(base.min(), Some(100));
    }

    #[test]
    fn silent_minutes_count() {
        let mut base = BaseDelays::new(10, Span::from_ms(60_000));
        base.update(minute(0.0), 5);
        base.update(minute(9.9), 50);
        assert_eq!(base.min(), Some(5));
        base.update(minute(10.1), 60);
        assert_eq!(base.min(), Some(50));
        base.update(minute(1e6), 70);
        assert_eq!(base.min(), Some(70));
    }

    #[test]
    fn only_recent_samples_are_filtered() {
        let ms = Span::from_ms;
        let mut recent = CurrentDelays::new(4);
        assert_eq!(recent.min(Time::ZERO, ms(100)), None);
        for (at, value) in [(0, 10), (10, 40), (20, 30), (30, 50)] {
            recent.push(Time::ZERO + ms(at), value);
        }
        assert_eq!(recent.min(Time::ZERO + ms(30), ms(100)), Some(10));
        assert_eq!(recent.min(Time::ZERO + ms(30), ms(20)), Some(30));
        // A fifth sample pushes the first one out, and after a pause only the newest counts.
        recent.push(Time::ZERO + ms(40), 60);
        assert_eq!(recent.min(Time::ZERO + ms(40), ms(100)), Some(30));
        assert_eq!(recent.min(Time::ZERO + ms(900), ms(100)), Some(60));
    }
}
