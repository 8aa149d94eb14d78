//! Values that change at given times, once or periodically.

use narrows_units::{ParamError, Time};

/// A list of values over time.
#[derive(Clone, Debug)]
pub(crate) struct Piecewise {
    /// When each value begins (ns); the first begins at 0.
    pub(crate) starts: Vec<u64>,
    pub(crate) values: Vec<u64>,
    /// Length of one round, if it repeats.
    pub(crate) period: Option<u64>,
    /// Position of the last query: start of the round, index.
    cursor: (u64, usize),
}

impl Piecewise {
    /// `steps` are (ns, value) with increasing times, at least one; before the first time the first
    /// value applies. With `period` the steps repeat after that many nanoseconds, otherwise the
    /// last value applies for ever.
    pub(crate) fn new(steps: &[(u64, u64)], period: Option<u64>) -> Result<Self, ParamError> {
        let (mut starts, values): (Vec<u64>, Vec<u64>) = steps.iter().copied().unzip();
        let last = starts.last().copied().unwrap_or_default();
        if let Some(length) = period
            && length <= last
        {
            return Err(ParamError::Conflict(format!(
                "the steps do not fit into the period: the last begins at {last} ns and the period is {length} ns"
            )));
        }
        starts[0] = 0;
        Ok(Piecewise {
            starts,
            values,
            period,
            cursor: (0, 0),
        })
    }

    /// The start of the round that `at` is in, and the index of the step in it.
    pub(crate) fn find(&self, at: u64) -> (u64, usize) {
        let base = self.period.map_or(0, |length| at - at % length);
        (
            base,
            self.starts.partition_point(|&start| start <= at - base) - 1,
        )
    }

    /// When step `index` of the round that starts at `base` ends.
    fn end(&self, base: u64, index: usize) -> Time {
        let next = self.starts.get(index + 1).copied().or(self.period);
        next.map_or(Time::FAR, |end| Time::from_ns(base.saturating_add(end)))
    }

    /// The value at `at` and the time until which it applies. Fast for non-decreasing times.
    #[inline]
    pub(crate) fn piece(&mut self, at: Time) -> (u64, Time) {
        let (base, index) = self.cursor;
        let mut until = self.end(base, index);
        if at >= until || at.ns() < base + self.starts[index] {
            self.cursor = self.find(at.ns());
            until = self.end(self.cursor.0, self.cursor.1);
        }
        (self.values[self.cursor.1], until)
    }

    /// The value at any time.
    pub(crate) fn value(&self, at: Time) -> u64 {
        self.values[self.find(at.ns()).1]
    }
}
