//! Time, Span, Rate and Bytes as distinct types, so that a rate cannot be added to a size and a
//! point in time cannot be mistaken for a duration.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A rate in bits per second. Link rates count IP bytes unless a link says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

const NS_PER_S: u64 = 1_000_000_000;

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event: the wake-up time of an endpoint with no timer armed.
    pub const FAR: Time = Time(u64::MAX);

    /// `ns` nanoseconds after the start of the run.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns)
    }

    /// Nanoseconds since the start of the run.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run.
    #[inline]
    pub fn secs(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Span(ns)
    }

    /// A span of `us` microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Span(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Self {
        Span(ms * 1_000_000)
    }

    /// A span of `s` seconds, rounded to the nanosecond; negative values become zero, non-finite values the longest
    /// span.
    #[inline]
    pub fn from_secs(s: f64) -> Self {
        // `as` saturates: NaN and negatives become 0, overflow becomes the maximum.
        Span((s * NS_PER_S as f64).round() as u64)
    }

    /// Length in nanoseconds.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Length in seconds.
    #[inline]
    pub fn secs(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }

    /// True if the span is empty.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero when `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// A fraction `num / den` of the span, rounded down, without overflow on the way.
    #[inline]
    pub const fn scale(self, num: u64, den: u64) -> Span {
        if let Some(product) = self.0.checked_mul(num) {
            Span(product / den)
        } else {
            Span(((self.0 as u128 * num as u128) / den as u128) as u64)
        }
    }
}

impl Rate {
    /// `bps` bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }

    /// `mbps` megabits (10^6 bits) per second.
    #[inline]
    pub fn from_mbps(mbps: f64) -> Self {
        Rate((mbps * 1e6).round() as u64)
    }

    /// The rate of `bytes` delivered in `span`; zero when the span is empty.
    #[inline]
    pub fn of(bytes: Bytes, span: Span) -> Self {
        if span.is_zero() {
            return Rate(0);
        }
        // 64 bits suffice for two gigabytes, and 64-bit division is many times as fast.
        match bytes.0.checked_mul(8 * NS_PER_S) {
            Some(bit_ns) => Rate(bit_ns / span.0),
            None => Rate((bytes.0 as u128 * 8 * NS_PER_S as u128 / span.0 as u128) as u64),
        }
    }

    /// Bits per second.
    #[inline]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The time that `bytes` take at this rate, rounded up to the nanosecond.
    /// A zero rate never delivers anything.
    #[inline]
    pub const fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        if let Some(bit_ns) = bytes.0.checked_mul(8 * NS_PER_S) {
            return Span(bit_ns.div_ceil(self.0));
        }
        let bit_ns = bytes.0 as u128 * 8 * NS_PER_S as u128;
        let ns = bit_ns.div_ceil(self.0 as u128);
        Span(if ns > u64::MAX as u128 {
            u64::MAX
        } else {
            ns as u64
        })
    }

    /// The bytes (rounded down) that this rate delivers in `span`.
    #[inline]
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / (8 * NS_PER_S as u128)) as u64)
    }
}

impl Bytes {
    /// No data.
    pub const ZERO: Bytes = Bytes(0);

    /// An amount of `bytes` bytes.
    #[inline]
    pub const fn new(bytes: u64) -> Self {
        Bytes(bytes)
    }

    /// The number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The difference, or zero when `other` is larger.
    #[inline]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

/// Serialisation times at a constant rate without drift: the fraction of a nanosecond left over by a packet is carried
/// to the next.
///
/// After any number of packets served back to back, the sum of the spans equals the exact time rounded down, so the
/// accumulated error of a million packets is less than one nanosecond.
#[derive(Clone, Debug)]
pub struct RateClock {
    rate: Rate,
    /// Remainder in units of 1/rate nanoseconds, always less than the rate.
    carry: u64,
}

impl RateClock {
    /// A clock for `rate`, with nothing carried.
    pub const fn new(rate: Rate) -> Self {
        RateClock { rate, carry: 0 }
    }

    /// The rate that is served.
    #[inline]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The time that the next `bytes` take, in whole nanoseconds, remainder carried.
    #[inline]
    pub fn serve(&mut self, bytes: u64) -> Span {
        let rate = self.rate.0;
        if rate == 0 {
            return Span::MAX;
        }
        // 64-bit arithmetic covers any packet (below 2^31 bytes); rates stay below 2^63.
        let work = bytes as u128 * (8 * NS_PER_S) as u128 + self.carry as u128;
        if let Ok(work) = u64::try_from(work) {
            self.carry = work % rate;
            Span(work / rate)
        } else {
            self.carry = (work % rate as u128) as u64;
            Span((work / rate as u128) as u64)
        }
    }

    /// Discards the remainder: the server was idle.
    #[inline]
    pub fn rest(&mut self) {
        self.carry = 0;
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Saturates, so that `now + Span::MAX` is "never".
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        self.since(earlier)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.secs())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 as f64 / 1e6)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} Mbit/s", self.0 as f64 / 1e6)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serialisation_times_do_not_drift() {
        // 1500 bytes at 7 bit/s-odd rates never divide evenly.
        let mut clock = RateClock::new(Rate::from_bps(999_999_937));
        let total: u64 = (0..1_000_000).map(|_| clock.serve(1500).ns()).sum();
        let exact = 1_000_000u128 * 1500 * 8 * 1_000_000_000 / 999_999_937;
        assert_eq!(u128::from(total), exact);
    }

    #[test]
    fn a_dead_link_never_delivers() {
        assert_eq!(Rate::from_bps(0).time_for(Bytes::new(1)), Span::MAX);
        assert_eq!(RateClock::new(Rate::from_bps(0)).serve(1), Span::MAX);
        assert_eq!(Time::from_ns(5) + Span::MAX, Time::FAR);
    }

    #[test]
    fn seconds_round_and_saturate() {
        assert_eq!(Span::from_secs(0.04), Span::from_ms(40));
        assert_eq!(Span::from_secs(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs(f64::INFINITY), Span::MAX);
        assert_eq!(Span::from_secs(f64::NAN), Span::ZERO);
    }

    proptest! {
        #[test]
        fn rate_of_inverts_time_for(bps in 1_000u64..10_000_000_000, bytes in 1u64..10_000_000) {
            let span = Rate::from_bps(bps).time_for(Bytes::new(bytes));
            // Rounding the time up by less than 1 ns lowers the rate by at most rate/span.
            let back = Rate::of(Bytes::new(bytes), span).bps();
            prop_assert!(back <= bps && bps - back <= bps / span.ns().max(1) + 1);
        }

        #[test]
        fn carried_service_is_exact(bps in 1u64..40_000_000_000, sizes in prop::collection::vec(1u64..65_536, 1..200)) {
            let mut clock = RateClock::new(Rate::from_bps(bps));
            let total: u128 = sizes.iter().map(|&s| u128::from(clock.serve(s).ns())).sum();
            let bits: u128 = sizes.iter().map(|&s| u128::from(s) * 8).sum();
            prop_assert_eq!(total, bits * 1_000_000_000 / u128::from(bps));
        }
    }
}
