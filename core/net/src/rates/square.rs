//! A square wave.

use crate::rate_schedule::{ScheduledRate, RateTable};
use crate::{Entry, Example, RateServer};
use narrows_units::{ParamError, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "square",
    summary: "Alternates between a high and a low rate, the high one first",
    source: "a packet in service continues at the new rate",
    params: SquareParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{square: {low: 2 Mbit/s, high: 10 Mbit/s, period: 1 s, duty: 0.3}}",
        "High for 30 % of each second.",
    )
    .picture(r#"{"seconds": 4}"#),
};

params! {
    /// Parameters.
    struct SquareParams {
        /// The low rate in IP bits per second.
        #[trial("1000000", "0")]
        low: Rate(0.0..=1e13);
        /// The high rate in IP bits per second.
        high: Rate(1.0..=1e13);
        /// Total length of one high and one low part.
        #[trial("300000000", "100000000")]
        period: Span(1000.0..=1e18);
        /// Share of the period that is high.
        duty: Ratio(0.001..=0.999) = 0.5;
    }
}

crate::registry::build!(dyn RateServer: |params, _| {
    let params = SquareParams::read(params);
    let (low, high, period) = (params.low.bps(), params.high.bps(), params.period.ns());
    if low > high {
        return Err(ParamError::Conflict(format!(
            "the low rate ({low} bit/s) must not be above the high rate ({high} bit/s)"
        )));
    }
    let edge = (period as f64 * params.duty).round() as u64;
    let table = RateTable::new(&[(0, high), (edge.clamp(1, period - 1), low)], Some(period))?;
    ScheduledRate::new(table)
});
