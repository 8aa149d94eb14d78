//! The minimum over a sliding window of time.

use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Values that arrive within this fraction of the window after a smaller one are merged with it: they leave the window
/// that much later, and memory is bounded.
const PARTS: u64 = 256;

/// A candidate for the minimum: smaller than all later values.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    value: i64,
    /// When it arrived, and when the last value that it represents arrived.
    at: Time,
    until: Time,
}

/// The minimum of the values that arrived within a span of time, whose length may vary from value to value. The newest
/// value always counts, regardless of its age. For a maximum, pass negated values.
#[derive(Clone, Debug)]
pub struct WindowedMin {
    candidates: VecDeque<Candidate>,
}

impl Default for WindowedMin {
    /// A window without values.
    fn default() -> Self {
        WindowedMin {
            candidates: VecDeque::with_capacity(PARTS as usize),
        }
    }
}

impl WindowedMin {
    /// Discards all values.
    pub fn clear(&mut self) {
        self.candidates.clear();
    }

    /// Adds a value and discards those older than `window`; returns the minimum.
    pub fn push(&mut self, now: Time, value: i64, window: Span) -> i64 {
        while self
            .candidates
            .back()
            .is_some_and(|last| last.value >= value)
        {
            self.candidates.pop_back();
        }
        match self.candidates.back_mut() {
            Some(last) if now.since(last.at).ns() < window.ns() / PARTS => last.until = now,
            _ => self.candidates.push_back(Candidate {
                value,
                at: now,
                until: now,
            }),
        }
        while self.candidates.len() > 1 && now.since(self.candidates[0].until) > window {
            self.candidates.pop_front();
        }
        self.candidates[0].value
    }

    /// The minimum as of the last value.
    pub fn min(&self) -> Option<i64> {
        self.candidates.front().map(|first| first.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Stream;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * MS)
    }

    #[test]
    fn the_smallest_counts_until_it_is_too_old_and_the_newest_always() {
        let mut window = WindowedMin::default();
        assert_eq!(window.min(), None);
        let span = Span::from_ms(100);
        for (ms, value, smallest) in [
            (0, 5, 5),
            (10, 3, 3),
            (60, 7, 3),
            (110, 9, 3),
            (111, 8, 7),
            (161, 8, 8),
            (1_000, 20, 20),
        ] {
            assert_eq!(window.push(at(ms), value, span), smallest, "at {ms} ms");
            assert_eq!(window.min(), Some(smallest));
        }
        window.clear();
        assert_eq!(window.min(), None);
    }

    #[test]
    fn it_is_the_minimum_of_the_window_to_a_part_of_its_length() {
        let mut random = Stream::new(7, "values");
        let (span, slack) = (Span::from_ms(256), Span::from_ms(1));
        let mut window = WindowedMin::default();
        let mut values: Vec<(Time, i64)> = Vec::new();
        let mut now = Time::ZERO;
        for _ in 0..20_000 {
            now += Span::from_us(random.below(300));
            // A long rise, which is the worst case: every value is a candidate.
            let value = (now.ns() / MS % 1_000) as i64 + random.below(3) as i64;
            values.push((now, value));
            let found = window.push(now, value, span);
            let least = |span: Span| {
                let recent = values
                    .iter()
                    .rev()
                    .take_while(|(at, _)| now.since(*at) <= span);
                recent.map(|(_, value)| *value).min().unwrap()
            };
            assert!(least(span + slack) <= found && found <= least(span));
            // In use or about to leave at either end.
            assert!(window.candidates.len() as u64 <= PARTS + 2);
        }
    }
}
