//! A sawtooth: the rate rises linearly from `low` to `high` during each period, and begins again.
//!
//! Provenance: the sawtooth wave. Deviations: none; the end of a packet's service is rounded up to nanoseconds.

use narrows_net::{ElementSetup, Entry, Example, RateServer};
use narrows_units::{Bytes, ParamError, Params, Rate, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "ramp",
    summary: "Serves at a rate that rises linearly from one value to another, again and again",
    source: "the sawtooth wave",
    params: RampParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{ramp: {low: 2 Mbit/s, high: 12 Mbit/s, period: 2 s}}",
        "Five times the rate after two seconds, then from the beginning.",
    )
    .picture(r#"{"seconds": 6}"#),
};

params! {
    /// Parameters.
    struct RampParams {
        /// Rate at the beginning of each period, in IP bits per second.
        #[trial("2000000", "3000000")]
        low: Rate(1e3..=1e13);
        /// Rate at the end of each period; not below `low`.
        #[trial("9000000", "12000000")]
        high: Rate(1e3..=1e13);
        /// Length of a period.
        #[trial("300000000", "70000000")]
        period: Span(1e3..=3.6e12);
    }
}

/// Builds the server from parameters that were checked one by one.
///
/// # Errors
/// `high` is below `low`.
pub fn build(params: &Params, _: &ElementSetup) -> Result<Box<dyn RateServer>, ParamError> {
    let RampParams { low, high, period } = RampParams::read(params);
    if high < low {
        return Err(ParamError::Conflict(format!(
            "high ({} bit/s) must not be below low ({} bit/s)",
            high.bps(),
            low.bps()
        )));
    }
    let [low, high, period] = [low.bps(), high.bps(), period.ns()].map(u128::from);
    Ok(Box::new(Ramp { low, high, period }))
}

/// Nanobits in a byte.
const BYTE: u128 = 8_000_000_000;

/// Rates in bit/s, the period in ns.
struct Ramp {
    low: u128,
    high: u128,
    period: u128,
}

impl Ramp {
    /// Nanobits served from the start of the run to `time` by a server that is always busy: the integral of the rate.
    fn served_until(&self, time: u64) -> u128 {
        let (whole, rest) = (u128::from(time) / self.period, u128::from(time) % self.period);
        let rise = (self.high - self.low) * rest * rest / (2 * self.period);
        whole * ((self.low + self.high) * self.period / 2) + self.low * rest + rise
    }
}

impl RateServer for Ramp {
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        let goal = self.served_until(now.ns()) + u128::from(bytes) * BYTE;
        // The integral grows, so the first instant at which it reaches the goal is found by bisection.
        let longest = u128::from(bytes) * BYTE / self.low + 2;
        let (mut early, mut late) = (now.ns(), now.ns() + longest as u64);
        while early < late {
            let middle = early + (late - early) / 2;
            if self.served_until(middle) < goal {
                early = middle + 1;
            } else {
                late = middle;
            }
        }
        Time::from_ns(late)
    }

    fn rest(&mut self) {}

    fn capacity(&self, from: Time, to: Time) -> Bytes {
        let bytes = |time: Time| self.served_until(time.ns()) / BYTE;
        Bytes::new((bytes(to) - bytes(from)) as u64)
    }

    fn rate(&self, now: Time) -> Rate {
        let rest = u128::from(now.ns()) % self.period;
        let bps = self.low + (self.high - self.low) * rest / self.period;
        Rate::from_bps(bps as u64)
    }
}
