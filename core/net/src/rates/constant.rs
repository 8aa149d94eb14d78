//! A constant rate.

use crate::{Entry, Example, RateServer};
use narrows_units::{Bytes, Kind, ParamSpec, Params, Rate, RateClock, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "constant",
    summary: "Serves packets one after the other at a constant rate",
    source: "exact serialisation time, sub-nanosecond remainder carried from packet to packet",
    params: &[ParamSpec::new("rate", Kind::Rate, "Rate in IP bits per second.")
        .range(1.0, 1e13)
        .required()],
    shorthand: &["rate"],
    example: Example::new("12 Mbit/s", "Always the same.")
    .picture(r#"{"seconds": 2}"#),
};

crate::registry::build!(dyn RateServer: |params, _| Constant::new(params));

pub(crate) struct Constant(RateClock);

impl Constant {
    pub(crate) fn new(params: &Params) -> Self {
        Constant(RateClock::new(params.rate("rate").unwrap_or_default()))
    }
}

impl RateServer for Constant {
    #[inline]
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        now + self.0.serve(u64::from(bytes))
    }

    fn rest(&mut self) {
        self.0.rest();
    }

    fn capacity(&self, from: Time, to: Time) -> Bytes {
        self.0.rate().bytes_in(to.since(from))
    }

    fn rate(&self, _: Time) -> Rate {
        self.0.rate()
    }
}
