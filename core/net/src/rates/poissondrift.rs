//! A Poisson link whose mean rate drifts: opportunities to send as in `poisson`, at a randomly drifting rate.
//!
//! The rate is `rate * exp(y - s^2/2)` with a stationary Gaussian autoregression of first order, AR(1), in steps: `y(k)
//! = a y(k-1) + s sqrt(1 - a^2) N(k)`, where `a = exp(-step/time)` and `s^2 = ln(1 + deviation^2)`. The rate thus has
//! the mean `rate`, the standard deviation `deviation * rate` and is never negative; the autocorrelation of its
//! logarithm decays with the time constant `time`. The process is determined by the seed and the element's name alone.

use crate::modulated::{Modulated, ModulatedPiece, Pieces};
use crate::opportunities::ByOpportunity;
use crate::{Entry, Example, RateServer};
use narrows_units::{Stream, params};
use std::cell::RefCell;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "poissondrift",
    summary: "Moves one packet's worth of bytes at each event of a Poisson process whose rate drifts",
    source: "Cox 1955, Some statistical methods connected with series of events (doubly stochastic Poisson process); \
             its rate drifts like the packet-delivery rate in Winstein et al., Sprout, NSDI 2013, section 3.1, but reverts to a mean",
    params: PoissonDriftParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{poissondrift: {rate: 12 Mbit/s, deviation: 30 %, time: 2 s}}",
        "The same with a drifting rate: its standard deviation is 30 %, and its time constant is 2 s.",
    )
    .picture(r#"{"seconds": 20, "bin_ms": 250}"#),
};

/// Number of steps after which the drift restarts: a day of the shortest steps.
const MAX_STEPS: u64 = 8_640_000;

params! {
    /// Parameters.
    struct PoissonDriftParams {
        /// Mean rate in IP bits per second.
        rate: Rate(1.0..=1e12);
        /// Standard deviation of the drifting rate, relative to its mean.
        deviation: Ratio(0.0..=3.0);
        /// Time constant of the drift, in which the autocorrelation of the logarithm of the rate falls to 1/e.
        time: Span(1e6..=1e14);
        /// Time between changes of the rate.
        step: Span(1e7..=1e14) = "100 ms";
        /// Bytes that one opportunity moves; several small packets may share one, unused bytes are lost.
        packet: Bytes(64.0..=1e6) = 1500, "a full Ethernet packet, as mahimahi's opportunities";
    }
}

crate::registry::build!(dyn RateServer: |params, setup| {
    let params = PoissonDriftParams::read(params);
    let packet = params.packet.get() as u32;
    let key = setup.stream().bits();
    let drift = RateDrift::new(&params, Stream::new(key, "drift"));
    ByOpportunity::new(Modulated::new(drift, key, packet), packet)
});

/// The rate of the process.
struct RateDrift {
    /// Mean in bit/s.
    mean: f64,
    /// In ns.
    step: u64,
    /// Standard deviation of the logarithm.
    s: f64,
    /// Correlation from step to step.
    a: f64,
    past: RefCell<Past>,
}

/// The drift up to the latest query, in standard deviations per step. It is computed in order, and earlier steps may be
/// queried again.
struct Past {
    stream: Stream,
    values: Vec<f32>,
    last: f64,
}

impl RateDrift {
    fn new(params: &PoissonDriftParams, stream: Stream) -> Self {
        let (deviation, step) = (params.deviation, params.step.ns());
        RateDrift {
            mean: params.rate.bps() as f64,
            step,
            s: (deviation * deviation).ln_1p().sqrt(),
            a: (-(step as f64) / params.time.ns() as f64).exp(),
            past: RefCell::new(Past { stream, values: Vec::with_capacity(1024), last: 0.0 }),
        }
    }

    /// The rate in step `number`.
    fn rate(&self, number: u64) -> f64 {
        let wanted = (number % MAX_STEPS) as usize;
        let mut past = self.past.borrow_mut();
        while past.values.len() <= wanted {
            let normal = past.stream.normal();
            let y = match past.values.len() {
                0 => normal,
                _ => self.a * past.last + (1.0 - self.a * self.a).sqrt() * normal,
            };
            past.last = y;
            past.values.push(y as f32);
        }
        let y = f64::from(past.values[wanted]);
        self.mean * (self.s * y - self.s * self.s / 2.0).exp()
    }
}

impl Pieces for RateDrift {
    fn piece(&self, at: u64) -> ModulatedPiece {
        let number = at / self.step;
        let start = number * self.step;
        ModulatedPiece { start, end: start.saturating_add(self.step), bps: self.rate(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::{Bytes, Rate, Span};

    fn drift(bps: u64, deviation: f64, time_ms: u64) -> RateDrift {
        let params = PoissonDriftParams {
            rate: Rate::from_bps(bps),
            deviation,
            time: Span::from_ms(time_ms),
            step: Span::from_ms(100),
            packet: Bytes::new(1500),
        };
        RateDrift::new(&params, Stream::new(3, "drift"))
    }

    #[test]
    fn the_rate_has_the_moments_and_the_memory_that_it_is_given() {
        // A deviation of 0.3, with a time constant of 5 steps.
        let drift = drift(10_000_000, 0.3, 500);
        let n = 200_000;
        let rates: Vec<f64> = (0..n).map(|k| drift.rate(k) / 1e7).collect();
        let mean = rates.iter().sum::<f64>() / n as f64;
        let deviation = (rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        // n correlated values are equivalent to n (1 - a) / (1 + a) independent ones, about a tenth; five standard
        // errors for the mean, and twice as many for a deviation, in which large values weigh more.
        let error = 5.0 * 0.3 / (n as f64 / 10.0).sqrt();
        assert!((mean - 1.0).abs() < error, "{mean}");
        assert!((deviation - 0.3).abs() < 2.0 * error, "{deviation}");
        let logs: Vec<f64> = rates.iter().map(|r| r.ln()).collect();
        let middle = logs.iter().sum::<f64>() / n as f64;
        let variance: f64 = logs.iter().map(|l| (l - middle).powi(2)).sum();
        let with_later = |lag: usize| {
            let pairs = logs.iter().zip(&logs[lag..]);
            pairs.map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>() / variance
        };
        // Five standard errors of a correlation, for an effective number of values of a tenth.
        let error = 5.0 / (n as f64 / 10.0).sqrt();
        for lag in [1, 5, 10] {
            let wanted = (-(lag as f64) / 5.0).exp();
            assert!((with_later(lag) - wanted).abs() < error, "{lag}: {}", with_later(lag));
        }
        // Earlier steps return the same values as before.
        assert_eq!(drift.rate(17) / 1e7, rates[17]);
    }

    #[test]
    fn without_deviation_it_stands_still() {
        let drift = drift(5_000_000, 0.0, 1000);
        assert!((0..100).all(|k| drift.rate(k) == 5e6));
    }
}
