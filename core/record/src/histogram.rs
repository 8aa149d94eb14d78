//! A log-linear histogram: exact below 1024 ns, relative bucket width at most 1/512 above.
//!
//! Values are split into octaves, each octave into 512 buckets of equal width. Only the octaves between the smallest
//! and the largest value take memory (4 kB each), adding a value takes a few instructions, and the minimum and maximum
//! are exact.

/// Buckets per octave; the relative width of a bucket is at most its inverse.
const PER_OCTAVE: u64 = 512;
const SHIFT: u32 = PER_OCTAVE.trailing_zeros();

/// A histogram of non-negative integers.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    /// Index of the bucket that the first count belongs to.
    first: usize,
    total: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// One bucket that is not empty; both bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    /// Smallest value counted here.
    pub low: u64,
    /// Largest value counted here.
    pub high: u64,
    /// Number of values.
    pub count: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Histogram::default()
    }

    /// Counts `value`.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let index = index_of(value);
        if index.wrapping_sub(self.first) >= self.counts.len() {
            self.cover(index, index);
        }
        self.counts[index - self.first] += 1;
        if self.total == 0 {
            self.min = value;
        }
        self.total += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Makes room for the buckets from `low` to `high`.
    #[cold]
    fn cover(&mut self, low: usize, high: usize) {
        // Whole octaves, so that a slowly growing maximum does not cause repeated resizing.
        let per = PER_OCTAVE as usize;
        let (from, to) = (low / per * per, (high / per + 1) * per);
        if self.counts.is_empty() {
            self.first = from;
        }
        if from < self.first {
            self.counts
                .splice(..0, std::iter::repeat_n(0, self.first - from));
            self.first = from;
        }
        if to > self.first + self.counts.len() {
            self.counts.resize(to - self.first, 0);
        }
    }

    /// Counts everything that `other` has counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.total == 0 {
            return;
        }
        self.cover(other.first, other.first + other.counts.len() - 1);
        let counts = &mut self.counts[other.first - self.first..];
        for (count, more) in counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        if self.total == 0 {
            self.min = other.min;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The exact mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The exact minimum, `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.min)
    }

    /// The exact maximum, `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The buckets that are not empty, in order. The first begins at the exact minimum, the last
    /// ends at the exact maximum.
    pub fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        self.counts
            .iter()
            .zip(self.first..)
            .map(|(count, index)| (index, count))
            .filter(|&(_, &count)| count > 0)
            .map(|(index, &count)| {
                let (low, high) = bounds_of(index);
                HistogramBucket {
                    low: low.max(self.min),
                    high: high.min(self.max),
                    count,
                }
            })
    }

    /// The value of nearest rank `ceil(p n)`, as the middle of its bucket (the exact extreme for the outermost ranks);
    /// `None` without values.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((p * self.total as f64).ceil() as u64).clamp(1, self.total);
        if rank == self.total {
            return Some(self.max);
        }
        let mut seen = 0;
        for bucket in self.buckets() {
            seen += bucket.count;
            if seen >= rank {
                return Some(bucket.low + (bucket.high - bucket.low) / 2);
            }
        }
        Some(self.max)
    }
}

/// The bucket of `value`: the first two octaves' worth of buckets hold one value each.
#[inline]
fn index_of(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    // 2^(SHIFT + octave) <= value, so value >> octave is in PER_OCTAVE..2 PER_OCTAVE.
    let octave = value.ilog2() - SHIFT;
    (u64::from(octave) * PER_OCTAVE + (value >> octave)) as usize
}

/// The inclusive bounds of a bucket; the inverse of [`index_of`].
fn bounds_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < 2 * PER_OCTAVE {
        return (index, index);
    }
    let octave = index / PER_OCTAVE - 1;
    let low = (index - octave * PER_OCTAVE) << octave;
    (low, low + ((1 << octave) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_join_without_gap_and_are_narrow() {
        let mut next = 0;
        for index in 0..56 * 512 {
            let (low, high) = bounds_of(index);
            assert_eq!(low, next, "bucket {index}");
            assert_eq!((index_of(low), index_of(high)), (index, index));
            assert!(high - low < low.div_ceil(512).max(1), "bucket {index}");
            if high == u64::MAX {
                return;
            }
            next = high + 1;
        }
        panic!("the last bucket ends at the largest integer");
    }

    #[test]
    fn merged_histograms_are_those_of_all_values() {
        let counted = |values: &[u64]| {
            let mut histogram = Histogram::new();
            for &value in values {
                histogram.add(value);
            }
            histogram
        };
        let parts: [&[u64]; 4] = [&[], &[7, 70_000], &[], &[3, 9_000_000_000, 7]];
        let mut merged = Histogram::new();
        for part in parts {
            merged.merge(&counted(part));
        }
        let all = counted(&parts.concat());
        assert!(merged.buckets().eq(all.buckets()));
        assert_eq!((merged.total(), merged.mean()), (all.total(), all.mean()));
        assert_eq!((merged.min(), merged.max()), (Some(3), Some(9_000_000_000)));
    }

    #[test]
    fn only_octaves_between_the_extremes_take_memory() {
        let mut histogram = Histogram::new();
        for value in [40_000_000, 90_000_000, 20_000_000, 60_000_000] {
            histogram.add(value);
        }
        assert_eq!(histogram.counts.len(), 3 * PER_OCTAVE as usize);
        assert!(histogram.buckets().map(|bucket| bucket.count).eq([1; 4]));
    }

    #[test]
    fn an_empty_histogram_has_no_quantiles() {
        let h = Histogram::new();
        assert_eq!(
            (h.quantile(0.5), h.mean(), h.min(), h.max()),
            (None, None, None, None)
        );
        assert_eq!(h.buckets().count(), 0);
    }

    proptest! {
        #[test]
        fn quantiles_are_near_the_exact_ones(
            mut values in prop::collection::vec(0u64..10_000_000_000, 1..300),
            p in 0.0f64..1.0,
        ) {
            let mut h = Histogram::new();
            for &v in &values {
                h.add(v);
            }
            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let got = h.quantile(p).unwrap();
            prop_assert!(got.abs_diff(exact) <= exact / 512 + 1, "{got} for {exact}");
            prop_assert_eq!(h.max(), values.last().copied());
            prop_assert_eq!(h.min(), values.first().copied());
            prop_assert_eq!(h.buckets().map(|b| b.count).sum::<u64>(), values.len() as u64);
        }
    }
}
