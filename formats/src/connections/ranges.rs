//! Sets of byte ranges of a stream.

use std::collections::BTreeMap;

/// Disjoint ranges `[begin, end)` that do not touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// Ends by begins.
    all: BTreeMap<i64, i64>,
}

impl Ranges {
    /// Adds a range; returns how many of its bytes were in the set before.
    pub(super) fn insert(&mut self, begin: i64, end: i64) -> i64 {
        if begin >= end {
            return 0;
        }
        let mut whole = (begin, end);
        let mut known = 0;
        // Ranges that touch it, from the last one.
        while let Some((&from, &upto)) = self.all.range(..=end).next_back() {
            if upto < begin {
                break;
            }
            known += (upto.min(end) - from.max(begin)).max(0);
            whole = (whole.0.min(from), whole.1.max(upto));
            self.all.remove(&from);
        }
        self.all.insert(whole.0, whole.1);
        known
    }

    /// Bytes in the set.
    pub(super) fn length(&self) -> i64 {
        self.all.iter().map(|(begin, end)| end - begin).sum()
    }

    /// Bytes in the set between `begin` and `end`.
    pub(super) fn covered(&self, begin: i64, end: i64) -> i64 {
        if begin >= end {
            return 0;
        }
        let first = self
            .all
            .range(..=begin)
            .next_back()
            .map_or(begin, |range| *range.0);
        let ranges = self.all.range(first..end);
        ranges
            .map(|(from, upto)| ((*upto).min(end) - (*from).max(begin)).max(0))
            .sum()
    }
}
