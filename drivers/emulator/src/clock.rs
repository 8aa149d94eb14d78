//! The clock of a data plane: model time from the machine's clocks.

use narrows_sys::clock;
use narrows_units::{Span, Time};

/// A source of model time.
pub trait Clock {
    /// Time since the start.
    fn now(&mut self) -> Time;
    /// Model time of the kernel's stamp of a frame, which is a reading of `CLOCK_REALTIME`.
    fn time_of(&mut self, stamp_ns: u64) -> Time;
    /// True if a frame sent at `stamp_ns` is part of the run.
    fn covers(&self, stamp_ns: u64) -> bool;
    /// End of the run.
    fn end(&self) -> Time;
}

/// `CLOCK_REALTIME` from the start of a run to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    pub(crate) start_ns: u64,
    pub(crate) duration: Span,
}

impl Clock for RunClock {
    #[inline]
    fn now(&mut self) -> Time {
        self.time_of(clock::real_ns())
    }

    #[inline]
    fn time_of(&mut self, stamp_ns: u64) -> Time {
        Time::from_ns(stamp_ns.saturating_sub(self.start_ns))
    }

    #[inline]
    fn covers(&self, stamp_ns: u64) -> bool {
        (self.start_ns..self.start_ns + self.duration.ns()).contains(&stamp_ns)
    }

    #[inline]
    fn end(&self) -> Time {
        Time::ZERO + self.duration
    }
}
