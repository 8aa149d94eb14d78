//! Delays of many packets, exact or as a histogram, behind the same interface.

use crate::histogram::HistogramBucket;
use std::rc::Rc;

/// The distribution of one-way delays, optionally less a constant (the propagation delay).
#[derive(Clone, Debug)]
pub struct DelayDistribution {
    values: Rc<Values>,
    less_ns: u64,
}

#[derive(Debug)]
enum Values {
    /// Every delay, in order.
    Exact { sorted: Vec<u64>, sum: u128 },
    /// Buckets in order, and the exact sum of the delays in them.
    Buckets {
        buckets: Vec<HistogramBucket>,
        count: u64,
        sum: u128,
    },
}

impl Default for DelayDistribution {
    fn default() -> Self {
        DelayDistribution::exact(Vec::new())
    }
}

impl DelayDistribution {
    /// The distribution of these delays, in any order.
    pub fn exact(mut delays: Vec<u64>) -> Self {
        // Stable sorting merges runs that are already in order, such as the concatenated delays of
        // several flows.
        #[allow(clippy::stable_sort_primitive)]
        delays.sort();
        let sum = delays.iter().map(|&delay| u128::from(delay)).sum();
        Self::new(Values::Exact {
            sorted: delays,
            sum,
        })
    }

    /// The distribution of these buckets, in any order, whose delays sum up to `sum`.
    pub fn buckets(mut buckets: Vec<HistogramBucket>, sum: u128) -> Self {
        buckets.sort_unstable_by_key(|bucket| (bucket.low, bucket.high));
        let count = buckets.iter().map(|bucket| bucket.count).sum();
        Self::new(Values::Buckets {
            buckets,
            count,
            sum,
        })
    }

    fn new(values: Values) -> Self {
        DelayDistribution {
            values: Rc::new(values),
            less_ns: 0,
        }
    }

    /// The same delays, each reduced by `ns`; the values are shared, not copied.
    pub fn less(&self, ns: u64) -> Self {
        DelayDistribution {
            values: Rc::clone(&self.values),
            less_ns: self.less_ns + ns,
        }
    }

    /// All delays of several distributions together.
    pub fn pooled<'a>(parts: impl Iterator<Item = &'a DelayDistribution>) -> Self {
        let mut delays = Vec::new();
        let mut buckets = Vec::new();
        let mut bucket_sum = 0;
        for part in parts {
            let less = |value: u64| value.saturating_sub(part.less_ns);
            match &*part.values {
                Values::Exact { sorted, .. } => delays.extend(sorted.iter().map(|&d| less(d))),
                Values::Buckets {
                    buckets: more,
                    count,
                    sum,
                } => {
                    buckets.extend(more.iter().map(|bucket| HistogramBucket {
                        low: less(bucket.low),
                        high: less(bucket.high),
                        count: bucket.count,
                    }));
                    bucket_sum += sum.saturating_sub(u128::from(part.less_ns) * u128::from(*count));
                }
            }
        }
        if buckets.is_empty() {
            return Self::exact(delays);
        }
        // A record holds either packets or bins, so this loop has nothing to do in practice.
        for delay in delays {
            buckets.push(HistogramBucket {
                low: delay,
                high: delay,
                count: 1,
            });
            bucket_sum += u128::from(delay);
        }
        Self::buckets(buckets, bucket_sum)
    }

    /// The number of packets.
    pub fn count(&self) -> u64 {
        match &*self.values {
            Values::Exact { sorted, .. } => sorted.len() as u64,
            Values::Buckets { count, .. } => *count,
        }
    }

    /// The exact mean.
    pub fn mean(&self) -> Option<f64> {
        let (Values::Exact { sum, .. } | Values::Buckets { sum, .. }) = &*self.values;
        let less = u128::from(self.less_ns) * u128::from(self.count());
        (self.count() > 0).then(|| sum.saturating_sub(less) as f64 / self.count() as f64)
    }

    /// The smallest delay that at least the share `p` of all packets does not exceed (nearest
    /// rank); from a histogram, the middle of its bucket.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = rank(p, count);
        let value = match &*self.values {
            Values::Exact { sorted, .. } => sorted[rank as usize - 1],
            Values::Buckets { buckets, .. } => {
                let mut seen = 0;
                let bucket = buckets.iter().find(|bucket| {
                    seen += bucket.count;
                    seen >= rank
                })?;
                bucket.low + (bucket.high - bucket.low) / 2
            }
        };
        Some(value.saturating_sub(self.less_ns))
    }

    /// The largest delay.
    pub fn max(&self) -> Option<u64> {
        let max = match &*self.values {
            Values::Exact { sorted, .. } => *sorted.last()?,
            // The last bucket of each flow ends at its exact maximum.
            Values::Buckets { buckets, .. } => buckets.iter().map(|bucket| bucket.high).max()?,
        };
        Some(max.saturating_sub(self.less_ns))
    }
}

/// The nearest rank `ceil(p n)`, from 1. Shares with at most six decimals are taken exactly, so
/// that 0.95 of 20 is 19 and not, by a rounding error, 20.
fn rank(p: f64, count: u64) -> u64 {
    let millionths = (p * 1e6).round() as u128;
    let rank = (millionths * u128::from(count)).div_ceil(1_000_000) as u64;
    rank.clamp(1, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use proptest::prelude::*;

    #[test]
    fn nearest_ranks_by_hand() {
        let d = DelayDistribution::exact((1..=20).rev().collect());
        assert_eq!(d.percentile(0.95), Some(19));
        assert_eq!(d.percentile(0.5), Some(10));
        assert_eq!(d.percentile(0.99), Some(20));
        assert_eq!(d.percentile(0.0), Some(1));
        assert_eq!((d.max(), d.mean()), (Some(20), Some(10.5)));
        assert_eq!(d.less(1).percentile(0.95), Some(18));
        assert_eq!(d.less(1).mean(), Some(9.5));
        let one = DelayDistribution::exact(vec![7]);
        assert_eq!(
            (one.percentile(0.5), one.percentile(0.99)),
            (Some(7), Some(7))
        );
    }

    #[test]
    fn nothing_has_no_percentile() {
        let none = DelayDistribution::exact(Vec::new());
        assert_eq!(
            (none.count(), none.mean(), none.percentile(0.5)),
            (0, None, None)
        );
        assert_eq!(none.max(), None);
    }

    #[test]
    fn pooling_takes_shifts_into_account() {
        let a = DelayDistribution::exact(vec![10, 30]).less(5);
        let b = DelayDistribution::exact(vec![20]).less(10);
        let pool = DelayDistribution::pooled([&a, &b].into_iter());
        assert_eq!((pool.percentile(0.34), pool.max()), (Some(10), Some(25)));
        assert_eq!(pool.mean(), Some(40.0 / 3.0));
    }

    proptest! {
        #[test]
        fn histograms_agree_with_packets(
            flows in prop::collection::vec(
                prop::collection::vec(0u64..200_000_000, 1..200), 1..4),
            p in 0.0f64..1.0,
        ) {
            let exact: Vec<_> = flows.iter().cloned().map(DelayDistribution::exact).collect();
            let coarse: Vec<_> = flows.iter().map(|delays| {
                let mut h = Histogram::new();
                for &d in delays {
                    h.add(d);
                }
                let sum = delays.iter().map(|&d| u128::from(d)).sum();
                DelayDistribution::buckets(h.buckets().collect(), sum)
            }).collect();
            let exact = DelayDistribution::pooled(exact.iter());
            let coarse = DelayDistribution::pooled(coarse.iter());
            prop_assert_eq!(exact.count(), coarse.count());
            prop_assert_eq!(exact.max(), coarse.max());
            prop_assert_eq!(exact.mean(), coarse.mean());
            let (a, b) = (exact.percentile(p).unwrap(), coarse.percentile(p).unwrap());
            prop_assert!(a.abs_diff(b) <= a / 512 + 1, "{a} against {b}");
        }

        #[test]
        fn percentiles_grow_with_their_share(
            delays in prop::collection::vec(0u64..1000, 1..100), p in 0.0f64..1.0, q in 0.0f64..1.0,
        ) {
            let d = DelayDistribution::exact(delays);
            prop_assert!(d.percentile(p.min(q)) <= d.percentile(p.max(q)));
            prop_assert_eq!(d.percentile(1.0), d.max());
        }
    }
}
