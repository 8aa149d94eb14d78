//! Probability distributions with their means, distribution functions and quantiles.
//!
//! All except the normal are sampled by inversion of a single uniform number, so that changing a parameter preserves
//! the order of the samples.

use crate::Stream;

/// A distribution of a non-negative quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(f64),
    /// Uniform between two bounds.
    Uniform {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Log-normal: the logarithm is normal.
    Lognormal {
        /// Mean of the natural logarithm.
        mu: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// Pareto: `P(X > x) = (scale / x)^shape`.
    Pareto {
        /// Smallest value.
        scale: f64,
        /// Exponent of the tail: no variance at 2 or less, no mean at 1 or less.
        shape: f64,
    },
    /// Pareto, given that it is at most `high`.
    BoundedPareto {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Exponent of the tail.
        shape: f64,
    },
    /// Weibull: `P(X > x) = exp(-(x / scale)^shape)`.
    Weibull {
        /// Scale.
        scale: f64,
        /// Shape: the tail is heavier than exponential below 1.
        shape: f64,
    },
}

impl Distribution {
    /// Draws one value.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> f64 {
        match *self {
            Distribution::Fixed(value) => value,
            Distribution::Lognormal { mu, sigma } => (mu + sigma * stream.normal()).exp(),
            _ => self.quantile(stream.uniform()),
        }
    }

    /// The mean; infinite if the distribution has none.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Fixed(value) => value,
            Distribution::Uniform { low, high } => f64::midpoint(low, high),
            Distribution::Exponential { mean } => mean,
            Distribution::Lognormal { mu, sigma } => (mu + sigma * sigma / 2.0).exp(),
            Distribution::Pareto { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Distribution::Pareto { scale, shape } => scale * shape / (shape - 1.0),
            Distribution::BoundedPareto { low, high, shape } => {
                let mass = 1.0 - (low / high).powf(shape);
                let moment = if (shape - 1.0).abs() < 1e-9 {
                    low * (high / low).ln()
                } else {
                    let rest = low - high * (low / high).powf(shape);
                    shape / (shape - 1.0) * rest
                };
                moment / mass
            }
            Distribution::Weibull { scale, shape } => scale * gamma(1.0 + 1.0 / shape),
        }
    }

    /// The probability of at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        match *self {
            Distribution::Fixed(value) => f64::from(u8::from(x >= value)),
            Distribution::Uniform { low, high } => ((x - low) / (high - low)).clamp(0.0, 1.0),
            Distribution::Exponential { mean } => -(-x.max(0.0) / mean).exp_m1(),
            Distribution::Lognormal { .. } if x <= 0.0 => 0.0,
            Distribution::Lognormal { mu, sigma } => normal_cdf((x.ln() - mu) / sigma),
            Distribution::Pareto { scale, shape } => 1.0 - (scale / x.max(scale)).powf(shape),
            Distribution::BoundedPareto { low, high, shape } => {
                let below = 1.0 - (low / x.clamp(low, high)).powf(shape);
                below / (1.0 - (low / high).powf(shape))
            }
            Distribution::Weibull { scale, shape } => -(-(x.max(0.0) / scale).powf(shape)).exp_m1(),
        }
    }

    /// The value not exceeded with probability `p`, which lies in `[0, 1)`.
    pub fn quantile(&self, p: f64) -> f64 {
        match *self {
            Distribution::Fixed(value) => value,
            Distribution::Uniform { low, high } => low + p * (high - low),
            Distribution::Exponential { mean } => -mean * (-p).ln_1p(),
            Distribution::Lognormal { mu, sigma } => (mu + sigma * normal_quantile(p)).exp(),
            Distribution::Pareto { scale, shape } => scale * (1.0 - p).powf(-1.0 / shape),
            Distribution::BoundedPareto { low, high, shape } => {
                let tail = 1.0 - p * (1.0 - (low / high).powf(shape));
                (low * tail.powf(-1.0 / shape)).min(high)
            }
            Distribution::Weibull { scale, shape } => scale * (-(-p).ln_1p()).powf(1.0 / shape),
        }
    }
}

/// Zipf's law over the ranks 1 to n: the share of rank r is proportional to `r^-exponent`.
#[derive(Clone, Debug)]
pub struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// Over `ranks` ranks, at least one.
    pub fn new(ranks: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=ranks.max(1))
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        for value in &mut cumulative {
            *value /= sum;
        }
        Zipf { cumulative }
    }

    /// The probability of `rank`, from 1.
    pub fn share(&self, rank: usize) -> f64 {
        let before = rank
            .checked_sub(2)
            .map_or(0.0, |index| self.cumulative[index]);
        self.cumulative[rank - 1] - before
    }

    /// Draws a rank, from 1.
    pub fn sample(&self, stream: &mut Stream) -> usize {
        let u = stream.uniform();
        let index = self.cumulative.partition_point(|&value| value <= u);
        index.min(self.cumulative.len() - 1) + 1
    }
}

/// The standard normal distribution function, by its Taylor series about zero (Marsaglia 2004,
/// "Evaluating the Normal Distribution"); exact to rounding for |x| < 7.
fn normal_cdf(x: f64) -> f64 {
    if x < -8.0 {
        return 0.0;
    }
    if x > 8.0 {
        return 1.0;
    }
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    loop {
        k += 2.0;
        term *= x * x / k;
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// The inverse of [`normal_cdf`], by bisection: needed for set-up only.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    while high - low > 1e-13 {
        let middle = f64::midpoint(low, high);
        if normal_cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
        if middle == low && middle == high {
            break;
        }
    }
    f64::midpoint(low, high)
}

/// The gamma function for positive arguments, by Stirling's series after a shift beyond 10.
fn gamma(x: f64) -> f64 {
    let (mut z, mut product) = (x, 1.0);
    while z < 10.0 {
        product *= z;
        z += 1.0;
    }
    let inverse = 1.0 / z;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0));
    let ln = (z - 0.5) * z.ln() - z + 0.5 * std::f64::consts::TAU.ln() + series;
    ln.exp() / product
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [Distribution; 7] = [
        Distribution::Uniform {
            low: 3.0,
            high: 5.0,
        },
        Distribution::Exponential { mean: 2.0 },
        Distribution::Lognormal {
            mu: 1.5,
            sigma: 0.8,
        },
        Distribution::Pareto {
            scale: 1.0,
            shape: 2.43,
        },
        Distribution::BoundedPareto {
            low: 1000.0,
            high: 1e7,
            shape: 1.0,
        },
        Distribution::BoundedPareto {
            low: 2.0,
            high: 50.0,
            shape: 1.3,
        },
        Distribution::Weibull {
            scale: 1.46,
            shape: 0.382,
        },
    ];

    #[test]
    fn functions_have_known_values() {
        for (x, value) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-2.0, 0.022_750_131_948_179),
        ] {
            assert!((normal_cdf(x) - value).abs() < 1e-14);
            assert!((normal_quantile(value) - x).abs() < 1e-11);
        }
        for (x, value) in [
            (1.0, 1.0),
            (5.0, 24.0),
            (0.5, 1.772_453_850_905_516),
            (3.5, 3.323_350_970_447_843),
        ] {
            assert!((gamma(x) / value - 1.0).abs() < 1e-10, "{x}");
        }
    }

    #[test]
    fn quantiles_invert_distribution_functions() {
        for law in LAWS {
            for step in 1..200 {
                let p = f64::from(step) / 200.0;
                assert!((law.cdf(law.quantile(p)) - p).abs() < 1e-9, "{law:?} {p}");
            }
        }
    }

    #[test]
    fn means_are_the_integrals_of_the_quantiles() {
        for law in LAWS {
            // The midpoint rule over p; the last interval of heavy tails is bounded from both sides.
            let n = 1_000_000;
            let sum: f64 = (0..n)
                .map(|i| law.quantile((f64::from(i) + 0.5) / f64::from(n)))
                .sum();
            let mean = sum / f64::from(n);
            assert!(
                (mean / law.mean() - 1.0).abs() < 0.01,
                "{law:?} {mean} {}",
                law.mean()
            );
        }
    }

    #[test]
    fn samples_follow_their_laws() {
        // Kolmogorov-Smirnov at the 1 % level: 1.63 / sqrt(n).
        for (index, law) in LAWS.iter().enumerate() {
            let mut stream = Stream::new(11, &format!("law/{index}"));
            let n = 20_000;
            let mut samples: Vec<f64> = (0..n).map(|_| law.sample(&mut stream)).collect();
            samples.sort_by(f64::total_cmp);
            let distance = samples
                .iter()
                .enumerate()
                .map(|(i, &x)| {
                    let (below, above) = (i as f64 / f64::from(n), (i + 1) as f64 / f64::from(n));
                    (law.cdf(x) - below).abs().max((law.cdf(x) - above).abs())
                })
                .fold(0.0, f64::max);
            assert!(distance < 1.63 / f64::from(n).sqrt(), "{law:?} {distance}");
        }
    }

    #[test]
    fn ranks_follow_zipf() {
        let zipf = Zipf::new(20, 1.0);
        let total: f64 = (1..=20).map(|rank| zipf.share(rank)).sum();
        assert!((total - 1.0).abs() < 1e-12);
        assert!((zipf.share(1) / zipf.share(4) - 4.0).abs() < 1e-9);
        let mut stream = Stream::new(2, "zipf");
        let (n, mut counts) = (100_000, [0u32; 20]);
        for _ in 0..n {
            counts[zipf.sample(&mut stream) - 1] += 1;
        }
        // Chi-square with 19 degrees of freedom at the 1 % level: 36.2.
        let chi: f64 = (1..=20)
            .map(|rank| {
                let wanted = zipf.share(rank) * f64::from(n);
                (f64::from(counts[rank - 1]) - wanted).powi(2) / wanted
            })
            .sum();
        assert!(chi < 36.2, "{chi}");
    }
}
