//! Acknowledged packet numbers, with the time of their first acknowledgement.

use std::collections::BTreeMap;

/// A set of numbers as intervals that do not touch, with the time at which each number entered it.
///
/// A QUIC acknowledgement repeats the ranges of earlier ones. Only new numbers are kept, so that the cost is
/// proportional to the numbers that an acknowledgement adds, plus the logarithm of the number of gaps for each of its
/// ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AckedNumbers {
    /// First and last number of each interval.
    covered: BTreeMap<u64, u64>,
    /// First and last number and time of new numbers.
    new: Vec<(u64, u64, i64)>,
}

impl AckedNumbers {
    /// Adds the numbers from `first` to `last`.
    pub(super) fn insert(&mut self, first: u64, last: u64, time: i64) {
        let before = self.covered.range(..=first).next_back();
        let (mut from, mut to) = (first, last);
        if let Some((&start, &end)) = before
            && end.saturating_add(1) >= first
        {
            if end >= last {
                return;
            }
            from = start;
        }
        // Numbers covered within the range; all others are new.
        let mut next = first;
        while let Some((&start, &end)) = self.covered.range(from..=last.saturating_add(1)).next() {
            if start > next {
                self.new.push((next, start - 1, time));
            }
            next = next.max(end.saturating_add(1));
            to = to.max(end);
            self.covered.remove(&start);
        }
        if next <= last {
            self.new.push((next, last, time));
        }
        self.covered.insert(from, to);
    }

    /// Adds another set.
    pub(super) fn extend(&mut self, other: AckedNumbers) {
        let mut all = std::mem::take(&mut self.new);
        all.extend(other.new);
        all.sort_by_key(|part| part.2);
        self.covered.clear();
        for (first, last, time) in all {
            self.insert(first, last, time);
        }
    }

    /// The times, indexed by number.
    pub(super) fn times(mut self) -> AckTimes {
        self.new.sort_unstable_by_key(|part| part.0);
        AckTimes(self.new)
    }

    /// Intervals that are kept.
    #[cfg(test)]
    fn parts(&self) -> usize {
        self.new.len().max(self.covered.len())
    }
}

/// When each number was acknowledged.
pub(super) struct AckTimes(Vec<(u64, u64, i64)>);

impl AckTimes {
    /// The time of `number`.
    pub(super) fn time(&self, number: u64) -> Option<i64> {
        let after = self.0.partition_point(|part| part.0 <= number);
        let &(_, last, time) = self.0.get(after.checked_sub(1)?)?;
        (number <= last).then_some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_have_the_time_at_which_they_were_first_acknowledged(
            ranges in prop::collection::vec((0u64..200, 0u64..60), 0..60),
        ) {
            let mut naive: BTreeMap<u64, i64> = BTreeMap::new();
            let mut set = AckedNumbers::default();
            for (time, &(first, length)) in (0..).zip(&ranges) {
                set.insert(first, first + length, time);
                for number in first..=first + length {
                    naive.entry(number).or_insert(time);
                }
                let ends: Vec<(u64, u64)> = set.covered.iter().map(|(&a, &b)| (a, b)).collect();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{ends:?}");
            }
            let times = set.times();
            for number in 0..300 {
                prop_assert_eq!(times.time(number), naive.get(&number).copied());
            }
        }
    }

    #[test]
    fn ranges_that_are_repeated_cost_nothing() {
        let mut set = AckedNumbers::default();
        for time in 0..10_000 {
            set.insert(0, 2 * time as u64, time);
            set.insert(1 << 61, (1 << 62) - 1, time);
        }
        assert_eq!(set.parts(), 10_001);
        assert_eq!(set.times().time(19_998), Some(9_999));
        let mut gaps = AckedNumbers::default();
        for time in (0..10_000).rev() {
            gaps.insert(2 * time, 2 * time, 0);
        }
        gaps.insert(0, u64::MAX, 7);
        assert_eq!(
            (gaps.covered.len(), gaps.times().time(u64::MAX)),
            (1, Some(7))
        );
    }
}
