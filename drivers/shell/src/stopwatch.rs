//! The time of a session. It uses the monotonic clock, so that a path continues when the machine's
//! clock is set or the machine has slept; the kernel's stamps of frames, which follow the real-time
//! clock, are converted.

use narrows_emulator::Clock;
use narrows_sys::clock;
use narrows_units::{Span, Time};

/// Smaller differences between two readings of both clocks are due to interruptions.
const NOISE_NS: u64 = 100_000;
/// Time between readings of both clocks.
const LOOK: Span = Span::from_ms(20);

/// Time since the start.
#[derive(Debug)]
pub(super) struct Stopwatch {
    /// When it was started, by the monotonic clock.
    start_ns: u64,
    /// Offset in ns by which the clock of stamps is ahead of the monotonic clock.
    ahead_ns: i64,
    next_look: Time,
    /// Reads `ahead_ns`; tests replace it instead of setting the machine's clock.
    ahead: fn() -> i64,
}

impl Stopwatch {
    /// Starts at zero.
    pub(super) fn start() -> Stopwatch {
        Stopwatch {
            start_ns: clock::mono_ns(),
            ahead_ns: clock::real_minus_mono_ns(),
            next_look: Time::ZERO,
            ahead: clock::real_minus_mono_ns,
        }
    }

    #[inline]
    fn elapsed(&self) -> Time {
        Time::from_ns(clock::mono_ns() - self.start_ns)
    }

    /// Detects that the clock of stamps was set.
    fn look(&mut self) {
        let ahead_ns = (self.ahead)();
        if ahead_ns.abs_diff(self.ahead_ns) > NOISE_NS {
            self.ahead_ns = ahead_ns;
        }
    }

    #[inline]
    fn translate(&self, stamp_ns: u64) -> Time {
        let since_boot = stamp_ns.saturating_add_signed(self.ahead_ns.saturating_neg());
        Time::from_ns(since_boot.saturating_sub(self.start_ns))
    }
}

impl Clock for Stopwatch {
    #[inline]
    fn now(&mut self) -> Time {
        let now = self.elapsed();
        if now >= self.next_look {
            self.next_look = now + LOOK;
            self.look();
        }
        now
    }

    /// Never in the future.
    #[inline]
    fn time_of(&mut self, stamp_ns: u64) -> Time {
        let time = self.translate(stamp_ns);
        let now = self.elapsed();
        if time <= now {
            return time;
        }
        // The clock was set forward, or two processors differ by some nanoseconds.
        if time.since(now) > Span::from_ns(NOISE_NS) {
            self.look();
        }
        self.translate(stamp_ns).min(now)
    }

    #[inline]
    fn covers(&self, _stamp_ns: u64) -> bool {
        true
    }

    #[inline]
    fn end(&self) -> Time {
        Time::FAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    const HOUR_NS: i64 = 3_600_000_000_000;

    /// Offset in ns by which the test has set the clock forward.
    static SET: AtomicI64 = AtomicI64::new(0);

    fn ahead() -> i64 {
        clock::real_minus_mono_ns() + SET.load(Ordering::Relaxed)
    }

    fn stamp() -> u64 {
        clock::real_ns().saturating_add_signed(SET.load(Ordering::Relaxed))
    }

    #[test]
    fn a_path_goes_on_when_the_clock_is_set() {
        let mut stopwatch = Stopwatch {
            ahead,
            ..Stopwatch::start()
        };
        for hours in [0, 5, -20, 0] {
            SET.store(hours * HOUR_NS, Ordering::Relaxed);
            // Setting it forward is noticed immediately; setting it back, with the next reading.
            let unseen = stopwatch.time_of(stamp());
            assert!(unseen <= stopwatch.elapsed());
            stopwatch.look();
            let before = stopwatch.elapsed();
            let time = stopwatch.time_of(stamp());
            let after = stopwatch.elapsed();
            // Between two readings of the clock, apart from their noise.
            let noise = Span::from_ns(2 * NOISE_NS);
            assert!(before <= time + noise && time <= after, "{hours} h");
        }
    }

    #[test]
    fn stamps_from_before_the_start_count_as_the_start() {
        let mut stopwatch = Stopwatch::start();
        assert_eq!(
            stopwatch.time_of(clock::real_ns() - 1_000_000_000),
            Time::ZERO
        );
    }
}
