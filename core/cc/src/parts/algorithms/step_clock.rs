//! Coarse clocks: a program that counts in whole milliseconds sees sending and arrival times with that granularity.

use narrows_units::{Span, Time};

/// A clock that rounds every time down to its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepClock {
    /// In ns, at least one.
    step: u64,
}

impl StepClock {
    /// A clock with granularity `step`; zero means the finest, 1 ns.
    pub fn new(step: Span) -> Self {
        StepClock {
            step: step.ns().max(1),
        }
    }

    /// Its reading at `now`.
    #[inline]
    pub fn read(self, now: Time) -> Time {
        Time::from_ns(now.ns() / self.step * self.step)
    }

    /// A span between two of its readings, rounded down as well.
    #[inline]
    pub fn span(self, span: Span) -> Span {
        Span::from_ns(span.ns() / self.step * self.step)
    }

    /// When it first shows `time` or later.
    #[inline]
    pub fn reached(self, time: Time) -> Time {
        let steps = time.ns().div_ceil(self.step);
        steps
            .checked_mul(self.step)
            .map_or(Time::FAR, Time::from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_clock_with_steps_is_read_and_waited_for() {
        let clock = StepClock::new(Span::from_ms(3));
        assert_eq!(clock.read(Time::from_ns(5_999_999)), at(3));
        assert_eq!(clock.reached(at(20)), at(21));
        assert_eq!(clock.reached(at(21)), at(21));
        assert_eq!(clock.reached(Time::FAR), Time::FAR);
    }

    #[test]
    fn a_clock_without_steps_shows_the_time() {
        let clock = StepClock::new(Span::ZERO);
        let now = Time::from_ns(1_234_567);
        assert_eq!((clock.read(now), clock.reached(now)), (now, now));
    }
}
