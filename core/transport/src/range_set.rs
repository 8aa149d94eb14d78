//! Sets of numbers stored as ranges.

/// The numbers from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Smallest number.
    pub first: u64,
    /// Largest number.
    pub last: u64,
}

/// A set of numbers as ascending, disjoint, non-adjacent ranges.
///
/// Made for sets that grow at their upper end and have few holes: insertion there costs a
/// comparison, and nothing is allocated once the buffer has its size.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: Vec<Range>,
}

impl RangeSet {
    /// The ranges in ascending order.
    #[inline]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// True if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds the numbers `first..=last` and calls `added` with each run, in ascending order, that
    /// was not yet in the set.
    #[inline]
    pub fn insert(&mut self, first: u64, last: u64, mut added: impl FnMut(u64, u64)) {
        debug_assert!(first <= last);
        // The common cases: the set is empty, or the top range is extended.
        match self.ranges.last_mut() {
            None => {
                added(first, last);
                self.ranges.push(Range { first, last });
                return;
            }
            Some(top) if first > top.last => {
                added(first, last);
                if first == top.last + 1 {
                    top.last = last;
                } else {
                    self.ranges.push(Range { first, last });
                }
                return;
            }
            Some(top) if first >= top.first => {
                if last > top.last {
                    added(top.last + 1, last);
                    top.last = last;
                }
                return;
            }
            Some(_) => {}
        }
        self.insert_below(first, last, &mut added);
    }

    #[cold]
    fn insert_below(&mut self, first: u64, last: u64, added: &mut dyn FnMut(u64, u64)) {
        // Ranges from `low` up to (not including) `high` touch or overlap the new one.
        let low = self.first_at_or_above(first.saturating_sub(1));
        let mut high = low;
        let mut next = first;
        while let Some(range) = self.ranges.get(high) {
            if range.first > last.saturating_add(1) {
                break;
            }
            if next < range.first && next <= last {
                added(next, last.min(range.first - 1));
            }
            next = next.max(range.last.saturating_add(1));
            high += 1;
        }
        if next <= last {
            added(next, last);
        }
        if low == high {
            self.ranges.insert(low, Range { first, last });
        } else {
            let merged = Range {
                first: first.min(self.ranges[low].first),
                last: last.max(self.ranges[high - 1].last),
            };
            self.ranges[low] = merged;
            self.ranges.drain(low + 1..high);
        }
    }

    /// Index of the first range that does not end below `number`. Searched from the upper end, where most insertions
    /// are.
    fn first_at_or_above(&self, number: u64) -> usize {
        let (mut above, mut step) = (self.ranges.len(), 1);
        while step <= above && self.ranges[above - step].last >= number {
            above -= step;
            step *= 2;
        }
        let below = above.saturating_sub(step);
        below + self.ranges[below..above].partition_point(|range| range.last < number)
    }

    /// True if `number` is in the set.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let index = self.first_at_or_above(number);
        self.ranges
            .get(index)
            .is_some_and(|range| range.first <= number)
    }

    /// Removes all numbers below `floor`.
    #[inline]
    pub fn remove_below(&mut self, floor: u64) {
        // The common cases: everything is removed, or the floor lies in the lowest range.
        if self.ranges.last().is_none_or(|top| top.last < floor) {
            self.ranges.clear();
        } else if self.ranges[0].last >= floor {
            self.ranges[0].first = self.ranges[0].first.max(floor);
        } else {
            self.remove_ranges_below(floor);
        }
    }

    #[cold]
    fn remove_ranges_below(&mut self, floor: u64) {
        let gone = self.ranges.partition_point(|range| range.last < floor);
        self.ranges.drain(..gone);
        if let Some(range) = self.ranges.first_mut() {
            range.first = range.first.max(floor);
        }
    }

    /// If the set begins at or below `start`, the number after its first range; else `start`.
    /// With everything below `start` known, this is the first number that is missing.
    #[inline]
    pub fn first_missing(&self, start: u64) -> u64 {
        match self.ranges.first() {
            Some(range) if range.first <= start && range.last >= start => range.last + 1,
            _ => start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(
            steps in prop::collection::vec((0u64..200, 0u64..20, 0u8..10), 0..80),
        ) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (first, length, action) in steps {
                if action == 0 {
                    set.remove_below(first);
                    model.retain(|number| *number >= first);
                } else {
                    let mut added = Vec::new();
                    set.insert(first, first + length, |a, b| added.extend(a..=b));
                    let new: Vec<u64> =
                        (first..=first + length).filter(|number| model.insert(*number)).collect();
                    prop_assert_eq!(added, new);
                }
                let numbers: Vec<u64> = set.ranges().iter().flat_map(|r| r.first..=r.last).collect();
                prop_assert_eq!(&numbers, &model.iter().copied().collect::<Vec<_>>());
                for pair in set.ranges().windows(2) {
                    prop_assert!(pair[0].last + 1 < pair[1].first, "merged ranges are not adjacent");
                }
                prop_assert_eq!(set.contains(first), model.contains(&first));
                let missing = (first..1_000).find(|number| !model.contains(number)).unwrap();
                if model.range(..first).next().is_none() {
                    prop_assert_eq!(set.first_missing(first), missing);
                }
            }
        }
    }
}
