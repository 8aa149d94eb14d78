//! A square wave.

use crate::rate_schedule::{ScheduledRate, RateTable};
use crate::{Entry, Example, RateServer};
use narrows_units::{Kind, ParamError, ParamSpec};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "square",
    summary: "Serves at a high and a low rate in turn, the high one first",
    source: "a packet in service goes on at the new rate",
    params: &[
        ParamSpec::new("low", Kind::Rate, "The low rate in IP bits per second.")
            .trial(&["1000000", "0"])
            .range(0.0, 1e13)
            .required(),
        ParamSpec::new("high", Kind::Rate, "The high rate in IP bits per second.")
            .range(1.0, 1e13)
            .required(),
        ParamSpec::new("period", Kind::Span, "Length of one high and one low part together.")
            .trial(&["300000000", "100000000"])
            .range(1000.0, 1e18)
            .required(),
        ParamSpec::new("duty", Kind::Ratio, "Share of the period that is high.")
            .default("0.5")
            .range(0.001, 0.999),
    ],
    shorthand: &[],
    example: Example::new(
        "{square: {low: 2 Mbit/s, high: 10 Mbit/s, period: 1 s, duty: 0.3}}",
        "High for 30 % of each second.",
    )
    .picture(r#"{"seconds": 4}"#),
};

crate::registry::build!(dyn RateServer: |params, _| {
    let (low, high) = (params.integer("low"), params.integer("high"));
    let (low, high) = (low.unwrap_or_default(), high.unwrap_or_default());
    if low > high {
        return Err(ParamError::Conflict(format!(
            "the low rate ({low} bit/s) must not be above the high rate ({high} bit/s)"
        )));
    }
    let period = params.integer("period").unwrap_or_default();
    let duty = params.real("duty").unwrap_or_default();
    let edge = (period as f64 * duty).round() as u64;
    let table = RateTable::new(&[(0, high), (edge.clamp(1, period - 1), low)], Some(period))?;
    ScheduledRate::new(table)
});
