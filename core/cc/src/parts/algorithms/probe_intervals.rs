//! Probes: the monitor intervals on which a decision of the PCC family is based, usually pairs slightly above and below
//! the rate, in random order.

use narrows_units::Stream;

/// Maximum number of probes of a decision.
const MAX_PROBES: usize = 4;

/// The probes of one decision: their intervals, and the result `R` of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes<R> {
    signs: [f64; MAX_PROBES],
    count: usize,
    /// Number of the first one's interval.
    first: Option<u64>,
    begun: usize,
    results: [Option<R>; MAX_PROBES],
}

impl<R: Copy> Probes<R> {
    fn new(count: usize, signs: [f64; MAX_PROBES]) -> Self {
        Probes {
            signs,
            count,
            first: None,
            begun: 0,
            results: [None; MAX_PROBES],
        }
    }

    /// Without probes.
    pub fn none() -> Self {
        Probes::new(0, [0.0; MAX_PROBES])
    }

    /// One interval at the rate itself.
    pub fn single() -> Self {
        Probes::new(1, [0.0; MAX_PROBES])
    }

    /// One or two pairs above and below the rate. Random numbers for two pairs are always drawn.
    pub fn pairs(pairs: usize, random: &mut Stream) -> Self {
        let mut signs = [1.0, -1.0, 1.0, -1.0];
        for pair in signs.chunks_exact_mut(2) {
            if random.chance(0.5) {
                pair.swap(0, 1);
            }
        }
        Probes::new(2 * pairs, signs)
    }

    /// Repeats the same intervals.
    pub fn restart(&mut self) {
        *self = Probes::new(self.count, self.signs);
    }

    /// Number of probes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// True if a probe has begun.
    pub fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// Interval `id` begins: 1 for a probe above the rate, -1 below, 0 at the rate; `None` if no more are needed.
    pub fn begin(&mut self, id: u64) -> Option<f64> {
        let sign = *self.signs[..self.count].get(self.begun)?;
        self.first.get_or_insert(id);
        self.begun += 1;
        Some(sign)
    }

    /// True if interval `id` is one of the probes.
    pub fn contains(&self, id: u64) -> bool {
        self.first
            .is_some_and(|first| (first..first + self.count as u64).contains(&id))
    }

    /// Stores the result of interval `id`; false if it is not a probe.
    pub fn add(&mut self, id: u64, result: R) -> bool {
        let known = self.first.filter(|_| self.contains(id));
        if let Some(first) = known {
            self.results[(id - first) as usize] = Some(result);
        }
        known.is_some()
    }

    /// The results of all probes, in sending order, once they are known.
    pub fn results(&self) -> Option<&[Option<R>]> {
        let results = &self.results[..self.count];
        results.iter().all(Option::is_some).then_some(results)
    }

    /// Pairs of results: of the probe above and the one below the rate.
    pub fn more_and_less(&self) -> impl Iterator<Item = (R, R)> {
        let pairs = self.results.chunks_exact(2).zip(self.signs.chunks_exact(2));
        pairs.filter_map(|(pair, signs)| {
            let (one, other) = (pair[0]?, pair[1]?);
            Some(if signs[0] > signs[1] {
                (one, other)
            } else {
                (other, one)
            })
        })
    }
}
