//! Sprout's model of a link: a Brownian rate, Poisson arrivals, and sticky outages.
//!
//! The rate is a Brownian motion on a grid of 257 values; in bin 0, an outage, it is exactly zero and rarely
//! leaves. Packets of one tick are a Poisson number with the rate of the tick. Everything follows from the
//! constants here and the two numbers of [`RateModel`].

use narrows_cc::parts::exp_log::{exp, ln};

/// Length of a tick in seconds.
pub(super) const TICK_S: f64 = 0.02;
/// Number of distinguished rates, including the outage.
pub(super) const BINS: usize = 257;
/// Width of a bin in packets per second.
const WIDTH: f64 = 1000.0 / 256.0;
/// Steps are truncated at this many standard deviations.
const REACH: f64 = 5.0;
/// The published matrix comes from a table of the normal distribution with 32768 steps over 2000 packets per second,
/// each step represented by its middle. All edges of bins lie on steps, so the table means half a step more.
const HALF_STEP: f64 = 1000.0 / 32768.0;

/// The model of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateModel {
    /// Standard deviation of the rate after one second, in packets per second.
    pub(super) volatility: f64,
    /// Rate at which outages end, per second.
    pub(super) escape: f64,
}

impl RateModel {
    /// The published one.
    pub(super) const PUBLISHED: RateModel = RateModel {
        volatility: 200.0,
        escape: 1.0,
    };
}

/// The rate of bin `bin`, in packets per second.
pub(super) fn rate(bin: usize) -> f64 {
    if bin == 0 {
        0.0
    } else {
        (bin as f64 + 0.5) * WIDTH
    }
}

/// The standard normal distribution function, by the series of G. Marsaglia ("Evaluating the normal distribution",
/// Journal of Statistical Software 11(4), 2004).
fn normal(z: f64) -> f64 {
    if z.abs() > 8.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut divisor) = (z, z, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        divisor += 2.0;
        term *= z * z / divisor;
        sum += term;
    }
    0.5 + sum * exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt()
}

/// Transitions from one bin within a tick: weights of the bins from `first` on.
#[derive(Debug)]
struct TransitionRow {
    first: usize,
    weights: Vec<f64>,
}

/// Transition of the rate in one tick.
#[derive(Debug)]
pub(super) struct Evolution {
    rows: Vec<TransitionRow>,
}

impl Evolution {
    /// The matrix of `model`.
    pub(super) fn new(model: RateModel) -> Self {
        let deviation = model.volatility * TICK_S.sqrt();
        let stay = exp(-model.escape * TICK_S);
        let rows = (0..BINS).map(|from| {
            let reached = |to: &usize| (rate(*to) - rate(from)).abs() <= REACH * deviation;
            let mut bins = (0..BINS).filter(reached);
            let first = bins.next().unwrap_or(from);
            let last = bins.next_back().unwrap_or(first);
            let below = |edge: usize| normal((edge as f64 * WIDTH - rate(from) + HALF_STEP) / deviation);
            let mut low = if first == 0 { 0.0 } else { below(first) };
            let weights = (first..=last).map(|to| {
                // The outermost bins have no outer edge.
                let high = if to == BINS - 1 { 1.0 } else { below(to + 1) };
                let mass = high - low;
                low = high;
                match (from, to) {
                    (0, 0) => mass * stay,
                    // Suppressed transitions are missing from this row, which therefore sums to about a half;
                    // everything is normalised later, and an outage ends sooner than the escape rate implies. As
                    // published.
                    (0, _) => mass * (1.0 - stay),
                    _ => mass,
                }
            });
            let weights = weights.collect();
            TransitionRow { first, weights }
        });
        Evolution {
            rows: rows.collect(),
        }
    }

    /// The belief `belief` one tick later, not normalised.
    pub(super) fn apply(&self, belief: &[f64], later: &mut [f64]) {
        later.fill(0.0);
        for (mass, row) in belief.iter().zip(&self.rows) {
            for (sum, weight) in later[row.first..].iter_mut().zip(&row.weights) {
                *sum += mass * weight;
            }
        }
    }

    /// Expectation for each bin, from the `columns` numbers per bin expected one tick later.
    pub(super) fn expect(&self, later: &[f64], columns: usize) -> Vec<f64> {
        let mut now = vec![0.0; later.len()];
        for (sums, row) in now.chunks_exact_mut(columns).zip(&self.rows) {
            let terms = later.chunks_exact(columns).skip(row.first);
            for (weight, values) in row.weights.iter().zip(terms) {
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += weight * value;
                }
            }
        }
        now
    }

    /// One entry of the matrix.
    #[cfg(test)]
    fn entry(&self, from: usize, to: usize) -> f64 {
        let row = &self.rows[from];
        let index = to.checked_sub(row.first);
        index.and_then(|index| row.weights.get(index)).copied().unwrap_or(0.0)
    }
}

/// The probability of `count` packets in a tick for each bin, times a common factor that makes the largest value not
/// ruled out by `belief` equal to one.
///
/// In logarithms, without the factorial: no count, however large, underflows.
pub(super) fn weigh(belief: &mut [f64], count: f64, log_means: &[f64]) {
    let logarithm = |bin: usize| {
        let mean = rate(bin) * TICK_S;
        match (bin, count > 0.0) {
            (_, false) => -mean,
            (0, true) => f64::NEG_INFINITY,
            (_, true) => count * log_means[bin] - mean,
        }
    };
    let mut largest = f64::NEG_INFINITY;
    for (bin, mass) in belief.iter().enumerate() {
        if *mass > 0.0 {
            largest = largest.max(logarithm(bin));
        }
    }
    // Only an outage has non-zero probability, yet a packet arrived: all rates are equally likely.
    if largest == f64::NEG_INFINITY {
        belief.fill(1.0);
        return;
    }
    for (bin, mass) in belief.iter_mut().enumerate() {
        // A bin that is ruled out may be infinitely more likely than the rest.
        if *mass > 0.0 {
            *mass *= exp(logarithm(bin) - largest);
        }
    }
}

/// Logarithms of the mean number of packets per tick of each bin; that of bin 0 is never used.
pub(super) fn log_means() -> Vec<f64> {
    let mean = |bin: usize| rate(bin.max(1)) * TICK_S;
    (0..BINS).map(|bin| ln(mean(bin))).collect()
}

/// Normalises `belief`.
pub(super) fn normalise(belief: &mut [f64]) {
    // Divides instead of multiplying by the inverse, which is infinite for the smallest numbers.
    let sum: f64 = belief.iter().sum();
    for mass in belief {
        *mass /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_law_is_one() {
        // Abramowitz and Stegun, table 26.1.
        for (z, value) in [(0.0, 0.5), (1.0, 0.841_344_746_068_543), (2.5, 0.993_790_334_674_224)] {
            assert!((normal(z) - value).abs() < 1e-14, "{z}: {}", normal(z));
            assert!((normal(-z) - (1.0 - value)).abs() < 1e-14);
        }
        assert!((normal(-5.0) - 2.866_515_718_791_9e-7).abs() < 1e-14);
        assert_eq!((normal(-9.0), normal(9.0)), (0.0, 1.0));
    }

    /// The entries are those of the published matrix, which follows from its seven constants.
    #[test]
    fn the_rate_wanders_as_published() {
        let evolution = Evolution::new(RateModel::PUBLISHED);
        let entries = [(128, 128, 0.055_053), (0, 0, 0.544_352), (1, 0, 0.472_903)];
        for (from, to, value) in entries {
            let entry = evolution.entry(from, to);
            assert!((entry - value).abs() < 5e-7, "{from} to {to}: {entry}");
        }
        let sum = |from: usize| (0..BINS).map(|to| evolution.entry(from, to)).sum::<f64>();
        assert!((sum(0) - 0.553).abs() < 0.0005, "{}", sum(0));
        for from in 1..BINS {
            // All but the tails beyond five deviations.
            assert!((sum(from) - 1.0).abs() < 1e-6, "{from}: {}", sum(from));
        }
    }

    #[test]
    fn expectations_and_beliefs_evolve_alike() {
        let evolution = Evolution::new(RateModel::PUBLISHED);
        let values: Vec<f64> = (0..BINS).map(|bin| (bin % 7) as f64).collect();
        let expected = evolution.expect(&values, 1);
        for from in [0, 1, 20, 128, 256] {
            let mut belief = vec![0.0; BINS];
            belief[from] = 1.0;
            let mut later = vec![0.0; BINS];
            evolution.apply(&belief, &mut later);
            let sum: f64 = later.iter().zip(&values).map(|(mass, value)| mass * value).sum();
            assert!((sum - expected[from]).abs() < 1e-12);
        }
    }

    #[test]
    fn no_count_makes_everything_zero() {
        let means = log_means();
        for count in [0.0, 1.0, 80.0, 700.0, 1e6, 1e12] {
            let mut belief = vec![1.0 / BINS as f64; BINS];
            weigh(&mut belief, count, &means);
            normalise(&mut belief);
            assert!((belief.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{count}");
        }
        // All belief where the count is all but impossible, down to the smallest number there is.
        for mass in [1.0, 1e-300, f64::from_bits(1)] {
            for (bin, count) in [(1, 1e5), (256, 0.0), (0, 3.0), (0, 0.0)] {
                let mut belief = vec![0.0; BINS];
                belief[bin] = mass;
                weigh(&mut belief, count, &means);
                normalise(&mut belief);
                assert!((belief.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{bin}, {count}");
            }
        }
    }
}
