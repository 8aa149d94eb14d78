//! A rate that changes at given times.

use crate::rate_schedule::{ScheduledRate, RateTable};
use crate::{Entry, Example, RateServer};
use narrows_units::{Span, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "steps",
    summary: "Serves at a rate that changes at given times, once or periodically",
    source: "the capacity steps of RFC 8867, section 5.1; a packet in service continues at the new rate",
    params: StepsParams::PARAMS,
    shorthand: &["steps"],
    example: Example::new(
        "{steps: [[0 s, 4 Mbit/s], [2 s, 2 Mbit/s], [4 s, 3.5 Mbit/s], [6 s, 1 Mbit/s], [8 s, 2 Mbit/s]]}",
        "The capacities of RFC 8867, section 5.2, on a shorter time scale.",
    )
    .picture(r#"{"seconds": 10, "bin_ms": 100}"#),
};

params! {
    /// Parameters.
    struct StepsParams {
        /// Times since the start of the run and the rates (IP bits per second) that apply from each; before the first
        /// time the first rate applies.
        steps: RateSteps(0.0..=1e13);
        /// Period after which the steps repeat; without it the last rate applies for ever.
        #[trial("2000000000")]
        period: Option<Span>(1.0..=1e18);
    }
}

crate::registry::build!(dyn RateServer: |params, _| {
    let StepsParams { steps, period } = StepsParams::read(params);
    ScheduledRate::new(RateTable::new(&steps, period.map(Span::ns))?)
});
