//! Sleep of the ends, which wake slightly late, as processes do.

use narrows_cc::parts::StepClock;
use narrows_units::{Span, Stream, Time};

/// Maximum duration of a sleep, after which an end checks for work.
const MAX_SLEEP: Span = Span::from_ms(10);

/// Sleeps that last slightly longer than requested.
#[derive(Debug)]
pub(super) struct Sleep {
    clock: StepClock,
    late: Span,
    random: Stream,
}

impl Sleep {
    /// Sleeps that are `late` on average, measured by `clock`.
    pub(super) fn new(clock: StepClock, late: Span, random: Stream) -> Self {
        Sleep { clock, late, random }
    }

    /// When an end that falls asleep at `now` wakes: when its clock shows `due`, or earlier for a periodic check.
    ///
    /// It reads the clock and then sleeps for the difference, so the elapsed part of a clock step is added.
    pub(super) fn until(&mut self, now: Time, due: Time) -> Time {
        if due == Time::FAR {
            return due;
        }
        let late = self.random.span(self.late.scale(1, 2), self.late.scale(3, 2));
        now + due.since(self.clock.read(now)).min(MAX_SLEEP) + late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_before_the_clock_says_so() {
        let (ms, us) = (Span::from_ms, Span::from_us);
        let mut sum = Span::ZERO;
        for step in [Span::from_ns(1), ms(1)] {
            let mut sleep = Sleep::new(StepClock::new(step), us(100), Stream::new(1, "sleep"));
            for start in 0..1000 {
                let now = Time::ZERO + us(37 * start);
                let due = Time::ZERO + ms(37 * start / 1000 + start % 10 + 1);
                let woken = sleep.until(now, due);
                assert!(StepClock::new(step).read(woken) >= due);
                let part = now.since(StepClock::new(step).read(now));
                let late = woken.since(due + part);
                assert!(late >= us(50) && late < us(150), "{late:?}");
                sum += late;
            }
        }
        // A uniform distribution of 100 us width: the mean of 2000 deviates by 0.6 us.
        assert!(sum > us(2000 * 97) && sum < us(2000 * 103), "{sum:?}");
        let mut exact = Sleep::new(StepClock::new(ms(1)), Span::ZERO, Stream::new(1, "sleep"));
        assert_eq!(exact.until(Time::ZERO + us(500), Time::ZERO + ms(8)), Time::ZERO + us(8_500));
        assert_eq!(exact.until(Time::ZERO, Time::ZERO + ms(20)), Time::ZERO + ms(10));
        assert_eq!(exact.until(Time::ZERO, Time::FAR), Time::FAR);
    }
}
