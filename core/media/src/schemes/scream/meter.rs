//! A rate in samples of 50 ms (100 ms below 50 kbit/s), as the mean of the last four.

use narrows_units::{Span, Time};

const SHORT: Span = Span::from_ms(50);
const LONG: Span = Span::from_ms(100);
/// Below this rate in bit/s samples are longer.
const SLOW: f64 = 50e3;

#[derive(Clone, Debug)]
pub(super) struct Meter {
    since: Time,
    bytes: u64,
    samples: [f64; 4],
    count: usize,
}

impl Meter {
    pub(super) fn new(now: Time) -> Self {
        Meter {
            since: now,
            bytes: 0,
            samples: [0.0; 4],
            count: 0,
        }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Closes a sample if it is time.
    pub(super) fn update(&mut self, now: Time) {
        let span = now - self.since;
        let long_enough = if self.bps() < SLOW { LONG } else { SHORT };
        if span >= long_enough {
            self.samples[self.count % 4] = self.bytes as f64 * 8.0 / span.secs();
            self.count += 1;
            self.bytes = 0;
            self.since = now;
        }
    }

    /// The rate in bit/s.
    pub(super) fn bps(&self) -> f64 {
        let known = self.count.min(4);
        if known == 0 {
            return 0.0;
        }
        self.samples[..known].iter().sum::<f64>() / known as f64
    }
}
