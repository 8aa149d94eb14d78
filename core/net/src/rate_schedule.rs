//! Servers with a piecewise constant rate: the common part of steps, waves, on-off links and traces
//! of rates.
//!
//! All arithmetic is in integers. Work is measured in bits times nanoseconds per second: a byte is
//! 8 000 000 000 units, and a rate of r bit/s does r units per nanosecond.

use crate::RateServer;
use crate::piecewise::Piecewise;
use narrows_units::{Bytes, ParamError, Rate, Span, Time};

/// The work of a byte.
const WORK_PER_BYTE: u64 = 8_000_000_000;

/// A rate as a function of time, from the start of the run.
pub(crate) trait RateSchedule: Send {
    /// The rate at `at`, and the time until which it applies. Called with non-decreasing times.
    fn piece(&mut self, at: Time) -> (u64, Time);
    /// The work that can be done between two times.
    fn work(&self, from: Time, to: Time) -> u128;
    /// The rate at any time.
    fn rate(&self, at: Time) -> u64;
    /// Length of a period and the work in it, if the schedule repeats.
    fn cycle(&self) -> Option<(Span, u128)> {
        None
    }
}

/// Serves packets at the rate of a schedule; the fraction of a nanosecond that one packet does not
/// use is carried over to the next.
pub(crate) struct ScheduledRate<S> {
    schedule: S,
    /// Work of the last packet that did not fit into whole nanoseconds.
    carried_work: u64,
}

impl<S: RateSchedule> ScheduledRate<S> {
    pub(crate) fn new(schedule: S) -> Self {
        ScheduledRate {
            schedule,
            carried_work: 0,
        }
    }
}

impl<S: RateSchedule> RateServer for ScheduledRate<S> {
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        // Packets are below 2^31 bytes, so that their work fits into 64 bits.
        let mut work = u64::from(bytes) * WORK_PER_BYTE + self.carried_work;
        self.carried_work = 0;
        let mut at = now;
        if let Some((length, each)) = self.schedule.cycle()
            && u128::from(work) > each
        {
            // Many periods on a slow link; the last one is searched for the instant.
            let whole = (work - 1) / each as u64;
            at += length * whole;
            work -= whole * each as u64;
        }
        while at < Time::FAR {
            let (rate, until) = self.schedule.piece(at);
            if let Some(ns) = work.checked_div(rate) {
                let (end, rest) = (at + Span::from_ns(ns), work % rate);
                if end < until || (end == until && rest == 0) {
                    self.carried_work = rest;
                    return end;
                }
                work -= rate * until.since(at).ns();
            }
            at = until;
        }
        Time::FAR
    }

    fn rest(&mut self) {
        self.carried_work = 0;
    }

    fn capacity(&self, from: Time, to: Time) -> Bytes {
        if to <= from {
            return Bytes::ZERO;
        }
        let bytes = self.schedule.work(from, to) / u128::from(WORK_PER_BYTE);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    fn rate(&self, now: Time) -> Rate {
        Rate::from_bps(self.schedule.rate(now))
    }
}

/// A list of rates, applied once or periodically.
#[derive(Clone, Debug)]
pub(crate) struct RateTable {
    steps: Piecewise,
    /// The work done before each step.
    done: Vec<u128>,
    /// The work of one period, if it repeats.
    round: u128,
}

impl RateTable {
    /// See [`Piecewise::new`]; the values are rates in bit/s.
    pub(crate) fn new(steps: &[(u64, u64)], period: Option<u64>) -> Result<Self, ParamError> {
        let steps = Piecewise::new(steps, period)?;
        let mut done = vec![0];
        let mut sum = 0;
        let ends = steps.starts[1..].iter().copied().chain(period);
        for ((start, end), &rate) in steps.starts.iter().zip(ends).zip(&steps.values) {
            sum += u128::from(end - start) * u128::from(rate);
            done.push(sum);
        }
        if period.is_some() && sum == 0 {
            return Err(ParamError::Conflict(
                "the rate is always zero; at least one step must be above zero".into(),
            ));
        }
        Ok(RateTable {
            steps,
            done,
            round: sum,
        })
    }

    /// The work done since the start of the run.
    fn total(&self, at: u64) -> u128 {
        let (base, index) = self.steps.find(at);
        let rounds = self.steps.period.map_or(0, |length| base / length);
        let inside = at - base - self.steps.starts[index];
        u128::from(rounds) * self.round
            + self.done[index]
            + u128::from(inside) * u128::from(self.steps.values[index])
    }
}

impl RateSchedule for RateTable {
    #[inline]
    fn piece(&mut self, at: Time) -> (u64, Time) {
        self.steps.piece(at)
    }

    fn work(&self, from: Time, to: Time) -> u128 {
        self.total(to.ns()) - self.total(from.ns())
    }

    fn rate(&self, at: Time) -> u64 {
        self.steps.value(at)
    }

    fn cycle(&self) -> Option<(Span, u128)> {
        let period = self.steps.period?;
        Some((Span::from_ns(period), self.round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(steps: &[(u64, u64)], period: Option<u64>) -> RateTable {
        RateTable::new(steps, period).unwrap()
    }

    #[test]
    fn a_packet_spans_steps() {
        // 8 Mbit/s is a byte per microsecond; 500 bytes, then a pause of 1 ms, then half the rate.
        let steps = [(0, 8_000_000), (500_000, 0), (1_500_000, 4_000_000)];
        let mut server = ScheduledRate::new(table(&steps, None));
        assert_eq!(server.serve(Time::ZERO, 1_500).ns(), 1_500_000 + 2_000_000);
        assert_eq!(
            server.capacity(Time::ZERO, Time::from_ns(3_500_000)),
            Bytes::new(1_500)
        );
    }

    #[test]
    fn what_never_comes_never_leaves() {
        let mut server = ScheduledRate::new(table(&[(0, 8), (1_000_000_000, 0)], None));
        assert_eq!(server.serve(Time::ZERO, 1).ns(), 1_000_000_000);
        assert_eq!(server.serve(Time::from_ns(1_000_000_000), 1), Time::FAR);
    }

    #[test]
    fn the_end_of_a_packet_is_not_put_off_by_a_pause() {
        // Skipping full periods must not hide that the packet was complete before a pause.
        let mut server = ScheduledRate::new(table(&[(0, 8_000), (1_000_000, 0)], Some(10_000_000)));
        // A byte needs one millisecond of sending, hence one period; the third ends at 21 ms.
        assert_eq!(server.serve(Time::ZERO, 3).ns(), 21_000_000);
    }

    #[test]
    fn contradictions_are_refused() {
        let text = |steps: &[(u64, u64)], period| match RateTable::new(steps, Some(period)) {
            Ok(_) => panic!("accepted"),
            Err(error) => error.to_string(),
        };
        assert!(text(&[(0, 1), (10, 2)], 10).contains("do not fit into the period"));
        assert!(text(&[(0, 0)], 10).contains("always zero"));
    }

    proptest! {
        /// Packets served back to back leave when the exact integral of the rate reaches the sum of
        /// their sizes.
        #[test]
        fn back_to_back_service_is_exact(
            gaps in prop::collection::vec((1u64..2_000_000, 0u64..50_000_000), 1..8),
            looped: bool,
            sizes in prop::collection::vec(1u32..9_000, 1..60),
        ) {
            let mut at = 0;
            let mut steps = Vec::new();
            for (gap, rate) in &gaps {
                steps.push((at, *rate));
                at += gap;
            }
            steps[0].1 += 1_000;
            if !looped {
                steps.push((at, 999_983));
            }
            let schedule = table(&steps, looped.then_some(at));
            let mut server = ScheduledRate::new(schedule.clone());
            let mut now = Time::ZERO;
            let mut work = 0;
            for size in sizes {
                work += u128::from(size) * 8_000_000_000;
                let end = server.serve(now, size);
                // Not complete after the full nanoseconds, complete one nanosecond later.
                prop_assert!(schedule.work(Time::ZERO, end) <= work);
                prop_assert!(schedule.work(Time::ZERO, end + Span::from_ns(1)) >= work);
                prop_assert!(end >= now);
                now = end;
            }
        }
    }
}
