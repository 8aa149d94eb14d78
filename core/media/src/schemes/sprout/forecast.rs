//! The probability distribution of the rate, and the forecasts derived from it.

use super::model::{BINS, Evolution, RateModel, TICK_S, log_means, normalise, rate, weigh};
use narrows_cc::parts::exp_log::exp;
use std::sync::{Arc, OnceLock};

/// Ticks that a forecast covers.
pub(super) const HORIZON: usize = 8;
/// Bound of the number of arrivals per tick in the tables.
const ARRIVALS: usize = 30;

/// Minimum number of packets that arrive within the next 1, 2 ... ticks.
pub(super) type Forecast = [u32; HORIZON];

/// Numbers of arrivals that the tables distinguish within `ticks` ticks.
const fn counts(ticks: usize) -> usize {
    1 + ticks * (ARRIVALS - 1)
}

/// Everything that depends on the model alone.
#[derive(Debug)]
pub(super) struct Tables {
    evolution: Evolution,
    log_means: Vec<f64>,
    /// For each horizon, then each number of arrivals, then each bin: the probability of at most that many
    /// arrivals if the rate is now that of the bin.
    cumulative: [Vec<f64>; HORIZON],
}

impl Tables {
    /// The tables of `model`; those of the published one are computed once and shared.
    pub(super) fn from_model(model: RateModel) -> Arc<Tables> {
        static PUBLISHED: OnceLock<Arc<Tables>> = OnceLock::new();
        if model == RateModel::PUBLISHED {
            PUBLISHED
                .get_or_init(|| Arc::new(Tables::new(model)))
                .clone()
        } else {
            Arc::new(Tables::new(model))
        }
    }

    fn new(model: RateModel) -> Self {
        let evolution = Evolution::new(model);
        // Per bin: the distribution of arrivals in the first tick. From tick to tick, expectations are propagated
        // backward (31 numbers per bin), instead of beliefs forward (257).
        const COLUMNS: usize = ARRIVALS + 1;
        let mut expected = Vec::with_capacity(BINS * COLUMNS);
        for bin in 0..BINS {
            let mean = rate(bin) * TICK_S;
            let mut probability = exp(-mean);
            for count in 0..ARRIVALS {
                expected.push(probability);
                probability *= mean / (count + 1) as f64;
            }
            expected.push(1.0);
        }
        // Per bin: the distribution of all arrivals so far.
        let mut laws = vec![vec![1.0]; BINS];
        let cumulative = std::array::from_fn(|index| {
            let counts = counts(index + 1);
            let mut table = vec![0.0; counts * BINS];
            for (bin, law) in laws.iter_mut().enumerate() {
                let (tick, mass) = expected[bin * COLUMNS..][..COLUMNS].split_at(ARRIVALS);
                let mut longer = vec![0.0; counts];
                for (count, probability) in tick.iter().enumerate() {
                    let probability = probability / mass[0];
                    for (sum, before) in longer[count..].iter_mut().zip(law.iter()) {
                        *sum += probability * before;
                    }
                }
                let mut sum = 0.0;
                for (count, probability) in longer.iter().enumerate() {
                    sum += probability;
                    table[count * BINS + bin] = sum;
                }
                *law = longer;
            }
            expected = evolution.expect(&expected, COLUMNS);
            table
        });
        Tables {
            evolution,
            log_means: log_means(),
            cumulative,
        }
    }

    /// The smallest numbers of arrivals that are exceeded with probability 1 - `quantile` or less.
    fn forecast(&self, belief: &[f64], quantile: f64) -> Forecast {
        std::array::from_fn(|index| {
            let table = &self.cumulative[index];
            let (mut low, mut high) = (0, counts(index + 1) - 1);
            while low < high {
                let middle = usize::midpoint(low, high);
                let column = &table[middle * BINS..][..BINS];
                let pairs = belief.iter().zip(column);
                let probability: f64 = pairs.map(|(mass, share)| mass * share).sum();
                if probability >= quantile {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            low as u32
        })
    }
}

/// Belief of the receiver about the rate, as probabilities of the bins.
#[derive(Debug)]
pub(super) struct Belief {
    tables: Arc<Tables>,
    masses: Vec<f64>,
    /// The belief of the previous tick; kept for its buffer.
    spare: Vec<f64>,
}

impl Belief {
    /// A uniform belief.
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        Belief {
            tables,
            masses: vec![1.0 / BINS as f64; BINS],
            spare: vec![0.0; BINS],
        }
    }

    /// A tick has passed, in which `count` packets arrived; `None` if silence was announced.
    pub(super) fn tick(&mut self, count: Option<f64>) {
        self.tables.evolution.apply(&self.masses, &mut self.spare);
        std::mem::swap(&mut self.masses, &mut self.spare);
        if let Some(count) = count {
            weigh(&mut self.masses, count, &self.tables.log_means);
        }
        normalise(&mut self.masses);
    }

    /// The minimum number of packets that arrive, except with probability `quantile`.
    pub(super) fn forecast(&self, quantile: f64) -> Forecast {
        self.tables.forecast(&self.masses, quantile)
    }

    /// The mean of the rate in packets per second.
    #[cfg(test)]
    fn mean(&self) -> f64 {
        let pairs = self.masses.iter().enumerate();
        pairs.map(|(bin, mass)| mass * rate(bin)).sum()
    }
}

/// The forecast before anything has arrived.
pub(super) fn first_forecast(model: RateModel, quantile: f64) -> Forecast {
    Belief::new(Tables::from_model(model)).forecast(quantile)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After `ticks` ticks with `count` packets in each.
    fn after(count: f64, ticks: usize) -> Belief {
        let mut belief = Belief::new(Tables::from_model(RateModel::PUBLISHED));
        for _ in 0..ticks {
            belief.tick(Some(count));
        }
        belief
    }

    /// All expected values were computed from the published constants with dense matrices.
    #[test]
    fn forecasts_are_those_of_the_published_model() {
        assert_eq!(first_forecast(RateModel::PUBLISHED, 0.05), [1, 1, 3, 4, 5, 6, 8, 9]);
        let rows: [(f64, Option<Forecast>, Forecast, f64); 7] = [
            (0.0, Some([0; 8]), [0; 8], 0.80),
            (1.0, Some([0, 0, 0, 1, 2, 2, 3, 4]), [0, 0, 0, 1, 1, 2, 3, 4], 68.0),
            (2.0, Some([0, 1, 1, 2, 3, 4, 6, 7]), [0, 1, 2, 2, 4, 5, 6, 7], 113.1),
            (5.0, Some([1, 4, 6, 9, 11, 14, 16, 19]), [2, 4, 8, 11, 14, 18, 21, 24], 258.3),
            (10.0, Some([4, 10, 16, 22, 28, 34, 40, 47]), [5, 12, 20, 27, 35, 43, 51, 59], 505.8),
            (20.0, Some([10, 22, 35, 47, 60, 73, 86, 99]), [12, 28, 44, 61, 77, 94, 111, 128], 953.4),
            (80.0, None, [13, 30, 47, 64, 82, 100, 118, 135], 998.4),
        ];
        for (count, first, steady, mean) in rows {
            if let Some(first) = first {
                assert_eq!(after(count, 1).forecast(0.05), first, "{count}, first tick");
            }
            let belief = after(count, 300);
            assert_eq!(belief.forecast(0.05), steady, "{count}");
            assert!((belief.mean() - mean).abs() < 0.06, "{count}: {}", belief.mean());
        }
        assert!((after(10.0, 1).mean() - 544.2).abs() < 0.06);
        assert!((after(0.0, 300).masses[0] - 0.970).abs() < 0.0005);
    }

    #[test]
    fn announced_silence_teaches_nothing_and_ends_an_outage() {
        let mut belief = after(0.0, 300);
        let mut ticks = 0;
        while belief.masses[0] > 0.5 {
            belief.tick(None);
            ticks += 1;
        }
        // 0.97 to 0.03 at first. Each tick multiplies the belief in the outage by what row 0 of the matrix keeps,
        // 0.544, and the rest by almost one, so it takes ln(0.97/0.03)/ln(1/0.544) = 5.7 ticks; the flow back into bin
        // 0 from the lowest rates adds one or two.
        assert!((6..=8).contains(&ticks), "{ticks}");
        let before = after(10.0, 100);
        let mut quiet = after(10.0, 100);
        quiet.tick(None);
        assert!((quiet.mean() - before.mean()).abs() < 1.0);
        let mut silent = after(10.0, 100);
        silent.tick(Some(0.0));
        // A Kalman filter with the same spreads (28 packets/s a tick, 158 in the count of a tick) moves by 89 of 500.
        assert!(silent.mean() < before.mean() - 60.0, "{}", silent.mean());
    }

    #[test]
    fn caution_lowers_the_forecast() {
        let belief = after(10.0, 50);
        let quantiles = [0.5, 0.25, 0.05, 0.01];
        let forecasts: Vec<u32> = quantiles.iter().map(|quantile| belief.forecast(*quantile)[4]).collect();
        assert!(forecasts.windows(2).all(|pair| pair[0] > pair[1]), "{forecasts:?}");
        // Half of the time: about the mean of five ticks.
        let mean = belief.mean() * TICK_S * 5.0;
        assert!((f64::from(forecasts[0]) - mean).abs() < 2.0, "{forecasts:?}, {mean}");
    }

    #[test]
    fn tables_of_the_published_model_are_shared() {
        let tables = Tables::from_model(RateModel::PUBLISHED);
        assert!(Arc::ptr_eq(&tables, &Tables::from_model(RateModel::PUBLISHED)));
        let calm = RateModel {
            volatility: 20.0,
            ..RateModel::PUBLISHED
        };
        let mut belief = Belief::new(Tables::from_model(calm));
        (0..300).for_each(|_| belief.tick(Some(10.0)));
        // A nearly constant link is known better: the remaining uncertainty is that of the Poisson distribution, which
        // exceeds 65 of 80 packets with 95 %.
        let (calm, published) = (belief.forecast(0.05)[7], after(10.0, 300).forecast(0.05)[7]);
        assert!(calm > published && (60..=66).contains(&calm), "{calm} {published}");
    }
}
