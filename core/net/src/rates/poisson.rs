//! A Poisson link: opportunities to send occur at random, independently of each other.
//!
//! The opportunities are a function of the seed and the name of the element alone: time is divided into blocks of 256
//! mean gaps, and each block has its own random stream from which exponential gaps are drawn until the block is full.
//! An exponential gap is memoryless, so that truncating one at the end of a block and drawing again does not change the
//! law. Any part of the schedule can therefore be recomputed, and an idle link costs nothing.

use crate::opportunities::{ByOpportunity, Opportunities};
use crate::{Entry, Example, RateServer};
use narrows_units::{Stream, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "poisson",
    summary: "Moves one packet's worth of bytes at each event of a Poisson process",
    source: "the varying-rate link of Yan et al., Pantheon, USENIX ATC 2018, section 4",
    params: PoissonParams::PARAMS,
    shorthand: &["rate"],
    example: Example::new(
        "{poisson: 12 Mbit/s}",
        "Opportunities with exponential gaps: the rate of each 50 ms varies.",
    )
    .picture(r#"{"seconds": 4}"#),
};

params! {
    /// Parameters.
    struct PoissonParams {
        /// Mean rate in IP bits per second.
        rate: Rate(1.0..=1e12);
        /// Bytes that one opportunity moves; several small packets may share one, unused bytes are lost.
        packet: Bytes(64.0..=1e6) = 1500, "a full Ethernet packet, as mahimahi's opportunities";
    }
}

crate::registry::build!(dyn RateServer: |params, setup| {
    let params = PoissonParams::read(params);
    let packet = params.packet.get() as u32;
    let gap = f64::from(packet) * 8e9 / params.rate.bps() as f64;
    let process = PoissonProcess {
        key: setup.stream().bits(),
        gap,
        block: (gap * 256.0).ceil() as u64,
    };
    let walk = Walk::new(process, 0);
    ByOpportunity::new(walk, packet)
});

/// State that determines all opportunities.
#[derive(Clone, Copy)]
struct PoissonProcess {
    key: u64,
    /// Mean gap in ns.
    gap: f64,
    /// Length of a block in ns.
    block: u64,
}

/// Iterates over the opportunities in order of time.
struct Walk {
    process: PoissonProcess,
    /// Number of the block and its stream.
    number: u64,
    stream: Stream,
    /// The next opportunity: ns since the start of the block, below its length.
    next: f64,
}

impl Walk {
    /// The position before the first opportunity of block `number` or, if that is empty, of a later block.
    fn new(process: PoissonProcess, number: u64) -> Self {
        let mut walk = Walk { process, number, stream: process.stream(number), next: 0.0 };
        walk.step();
        walk
    }

    /// Advances to the next opportunity.
    fn step(&mut self) {
        self.next += self.stream.exponential(self.process.gap);
        while self.next >= self.process.block as f64 {
            self.number += 1;
            self.stream = self.process.stream(self.number);
            self.next = self.stream.exponential(self.process.gap);
        }
    }

    fn time(&self) -> Time {
        let start = self.number.saturating_mul(self.process.block);
        Time::from_ns(start.saturating_add(self.next as u64))
    }
}

impl PoissonProcess {
    fn stream(&self, number: u64) -> Stream {
        Stream::new(self.key.wrapping_add(number), "opportunities")
    }
}

impl Opportunities for Walk {
    fn peek(&mut self, at: Time) -> Time {
        let block = at.ns() / self.process.block;
        if block > self.number {
            *self = Walk::new(self.process, block);
        }
        while self.time() < at {
            self.step();
        }
        self.time()
    }

    fn take(&mut self) {
        self.step();
    }

    fn count(&self, from: Time, to: Time) -> u64 {
        let mut walk = Walk::new(self.process, from.ns() / self.process.block);
        let mut count = 0;
        while walk.time() < to {
            count += u64::from(walk.time() >= from);
            walk.step();
        }
        count
    }

    fn frequency(&self, _: Time) -> f64 {
        1e9 / self.process.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(seed: u64) -> Walk {
        let process = PoissonProcess { key: seed, gap: 1e6, block: 256_000_000 };
        Walk::new(process, 0)
    }

    #[test]
    fn gaps_are_exponential_and_independent() {
        let mut walk = walk(5);
        let n = 100_000;
        let mut last = 0.0;
        let mut gaps = Vec::with_capacity(n);
        for _ in 0..n {
            let at = walk.number as f64 * 256e6 + walk.next;
            gaps.push((at - last) / 1e6);
            last = at;
            walk.take();
        }
        // Neighbouring gaps are uncorrelated: the estimate has a standard error of 1/sqrt(n); five are allowed.
        let pairs = gaps.windows(2).map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0));
        let correlation = pairs.sum::<f64>() / (n - 1) as f64;
        assert!(correlation.abs() < 5.0 / (n as f64).sqrt(), "{correlation}");
        // Kolmogorov and Smirnov: the largest distance to 1 - e^-x exceeds 1.95 / sqrt(n) by chance
        // with a probability of one in a thousand; the seed is fixed.
        gaps.sort_by(f64::total_cmp);
        let distance = gaps.iter().enumerate().map(|(index, gap)| {
            let law = 1.0 - (-gap).exp();
            let (below, above) = (index as f64 / n as f64, (index + 1) as f64 / n as f64);
            (law - below).abs().max((above - law).abs())
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / (n as f64).sqrt(), "{distance}");
    }

    #[test]
    fn counts_have_the_mean_and_the_variance_of_a_poisson_law() {
        let walk = walk(6);
        let n = 20_000;
        // Windows of ten mean gaps, some of which span two blocks.
        let counts: Vec<f64> = (0..n)
            .map(|i| walk.count(Time::from_ns(i * 10_000_000), Time::from_ns((i + 1) * 10_000_000)) as f64)
            .collect();
        let mean = counts.iter().sum::<f64>() / n as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors: sqrt(10/n) of the mean; the variance of a sample variance of a
        // Poisson law with mean m is (m + 2 m^2)/n.
        assert!((mean - 10.0).abs() < 5.0 * (10.0 / n as f64).sqrt(), "{mean}");
        assert!((variance - 10.0).abs() < 5.0 * (210.0 / n as f64).sqrt(), "{variance}");
    }

    #[test]
    fn what_is_counted_is_what_is_taken() {
        let mut taker = walk(7);
        let counter = walk(7);
        let mut taken = 0;
        let end = Time::from_ns(2_000_000_000);
        let mut at = Time::ZERO;
        while taker.peek(at) < end {
            at = taker.peek(at);
            taker.take();
            taken += 1;
        }
        assert_eq!(counter.count(Time::ZERO, end), taken);
        let middle = Time::from_ns(777_777_777);
        assert_eq!(counter.count(Time::ZERO, middle) + counter.count(middle, end), taken);
        // Looking far ahead skips whole blocks and leads to the same position.
        let mut jumper = walk(7);
        assert_eq!(jumper.peek(end), taker.peek(end));
    }
}
