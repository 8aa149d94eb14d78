//! The token bucket of shapers and policers, in exact arithmetic.

use narrows_units::{Bytes, Rate, Span, Time};

/// Tokens in integers: bits times nanoseconds per second, 8 000 000 000 per byte.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: u64,
    size: i128,
    tokens: i128,
    /// Time to which `tokens` refers.
    at: Time,
}

const PER_BYTE: i128 = 8_000_000_000;

impl TokenBucket {
    /// A full bucket of `burst` bytes that fills at `rate` bit/s.
    pub(crate) fn new(rate: u64, burst: u64) -> Self {
        let size = i128::from(burst) * PER_BYTE;
        TokenBucket {
            rate,
            size,
            tokens: size,
            at: Time::ZERO,
        }
    }

    /// The rate at which it fills.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Tokens when it is full.
    pub(crate) fn burst(&self) -> Bytes {
        Bytes::new((self.size / PER_BYTE) as u64)
    }

    /// Lets the bucket fill until `now`.
    pub(crate) fn fill(&mut self, now: Time) {
        let gained = i128::from(now.since(self.at).ns()) * i128::from(self.rate);
        self.tokens = (self.tokens + gained).min(self.size);
        self.at = self.at.max(now);
    }

    /// Removes `bytes`, even if the bucket does not hold them.
    pub(crate) fn take(&mut self, bytes: u32) {
        self.tokens -= i128::from(bytes) * PER_BYTE;
    }

    /// True if it holds `bytes`.
    pub(crate) fn holds(&self, bytes: u32) -> bool {
        self.tokens >= i128::from(bytes) * PER_BYTE
    }

    /// Changes rate and size at `now`; the content is kept up to the new size.
    pub(crate) fn change(&mut self, now: Time, rate: u64, burst: u64) {
        self.fill(now);
        self.rate = rate;
        self.size = i128::from(burst) * PER_BYTE;
        self.tokens = self.tokens.min(self.size);
    }

    /// Time after the last `fill` until it holds `bytes`, or is full if it is smaller than that.
    pub(crate) fn wait(&self, bytes: u32) -> Span {
        let missing = (i128::from(bytes) * PER_BYTE).min(self.size) - self.tokens;
        let missing = u128::try_from(missing).unwrap_or_default();
        let ns = missing.div_ceil(u128::from(self.rate));
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
