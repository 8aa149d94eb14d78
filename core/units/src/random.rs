//! Named streams of random numbers.
//!
//! Each consumer of random numbers (a lossy link, a jittery link, a source) has its own stream, derived from the seed
//! of the run and a name. Adding a flow or an element therefore leaves all other random numbers unchanged. The
//! generator is `ChaCha8`; the distributions are implemented here, because those of libraries may change between
//! versions and would change every recorded result.

use crate::Span;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// One named, reproducible stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: ChaCha8Rng,
}

impl Stream {
    /// The stream called `name` of the run with seed `seed`.
    ///
    /// The same pair always yields the same numbers, on every machine. Names are paths such as `"link/forward.2"` or
    /// `"flow/3"`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a of the name, mixed with the seed, expanded to 256 bits by SplitMix64 (Steele, Lea and Flood 2014).
        // Streams must be distinct, not unpredictable.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut state = seed ^ hash.rotate_left(32);
        let mut key = [0u8; 32];
        for (index, chunk) in key.chunks_exact_mut(8).enumerate() {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state ^ if index == 0 { hash } else { 0 };
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        Stream {
            generator: ChaCha8Rng::from_seed(key),
        }
    }

    /// A uniform 64-bit number.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// `true` with probability `p` (never for `p <= 0`, always for `p >= 1`).
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// A uniform integer in `[0, bound)`; zero when `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift; the bias of at most bound/2^64 is far below anything measurable.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An exponentially distributed number with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        -mean * (1.0 - self.uniform()).ln()
    }

    /// A standard normal number (polar method of Marsaglia and Bray 1964).
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * (-2.0 * s.ln() / s).sqrt();
            }
        }
    }

    /// A uniform span in `[low, high)`.
    #[inline]
    pub fn span(&mut self, low: Span, high: Span) -> Span {
        low + Span::from_ns(self.below(high.saturating_sub(low).ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_and_seed_give_the_same_numbers() {
        let take = |seed, name| {
            let mut stream = Stream::new(seed, name);
            [stream.bits(), stream.bits()]
        };
        assert_eq!(take(1, "link/forward.2"), take(1, "link/forward.2"));
        assert_ne!(take(1, "link/forward.2"), take(2, "link/forward.2"));
        assert_ne!(take(1, "link/forward.2"), take(1, "link/forward.3"));
        // Fixed here: a change changes every recorded result and needs a new major version of the record.
        assert_eq!(take(1, "flow/1"), FIRST_OF_FLOW_1);
    }

    const FIRST_OF_FLOW_1: [u64; 2] = [9_071_939_201_760_187_780, 7_715_206_517_790_731_885];

    #[test]
    fn moments_are_those_of_the_laws() {
        let mut s = Stream::new(7, "moments");
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        // Tolerances: five standard errors of the mean of n samples.
        let se = 5.0 / f64::from(n).sqrt();
        assert!((mean(&mut || s.uniform()) - 0.5).abs() < se * 0.289);
        assert!((mean(&mut || s.exponential(3.0)) - 3.0).abs() < se * 3.0);
        assert!(mean(&mut || s.normal()).abs() < se);
        assert!((mean(&mut || s.normal().powi(2)) - 1.0).abs() < se * 2f64.sqrt());
        assert!((mean(&mut || s.below(10) as f64) - 4.5).abs() < se * 2.88);
        assert!((mean(&mut || f64::from(u8::from(s.chance(0.01)))) - 0.01).abs() < se * 0.1);
    }
}
