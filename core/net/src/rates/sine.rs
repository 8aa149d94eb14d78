//! A sine wave, in fine steps.

use crate::rate_schedule::{ScheduledRate, RateTable};
use crate::{Entry, Example, RateServer};
use narrows_units::{ParamError, params};
use std::f64::consts::TAU;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "sine",
    summary: "Serves at a rate that oscillates around a mean",
    source: "360 steps per period; each has the mean of the sine over the step, rounded to bits per second",
    params: SineParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{sine: {mean: 6 Mbit/s, amplitude: 4 Mbit/s, period: 2 s}}",
        "A slow wave around the mean.",
    )
    .picture(r#"{"seconds": 4}"#),
};

const STEPS: u64 = 360;

params! {
    /// Parameters.
    struct SineParams {
        /// Mean rate in IP bits per second.
        mean: Rate(1.0..=1e13);
        /// Amplitude; at most the mean.
        #[trial("2000000", "3000000")]
        amplitude: Rate(0.0..=1e13);
        /// Period of the oscillation, which begins at the mean, upwards.
        #[trial("200000000", "500000000")]
        period: Span(360_000.0..=1e18);
    }
}

crate::registry::build!(dyn RateServer: |params, _| {
    let params = SineParams::read(params);
    let (mean, amplitude, period) = (params.mean.bps(), params.amplitude.bps(), params.period.ns());
    if amplitude > mean {
        return Err(ParamError::Conflict(format!(
            "the amplitude ({amplitude} bit/s) must not be above the mean ({mean} bit/s)"
        )));
    }
    let step = |index: u64| {
        let start = (u128::from(period) * u128::from(index) / u128::from(STEPS)) as u64;
        // The mean of a sine between two angles is the difference of its cosines over the angle.
        let angle = |index: u64| index as f64 / STEPS as f64 * TAU;
        let swing = (angle(index).cos() - angle(index + 1).cos()) * STEPS as f64 / TAU;
        (start, (mean as f64 + amplitude as f64 * swing).round() as u64)
    };
    let steps: Vec<(u64, u64)> = (0..STEPS).map(step).collect();
    ScheduledRate::new(RateTable::new(&steps, Some(period))?)
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementSetup;
    use narrows_units::Params;
    use narrows_units::Time;
    use serde_json::json;

    #[test]
    fn the_mean_over_a_period_is_the_mean() {
        let json = json!({"mean": 10_000_000, "amplitude": 10_000_000, "period": 1_000_000_000});
        let params = Params::from_json(ENTRY.params, json.as_object().unwrap()).unwrap();
        let server = build(&params, &ElementSetup::default()).unwrap();
        let bytes = |from: u64, to: u64| {
            server.capacity(Time::from_ns(from), Time::from_ns(to)).get() as f64
        };
        // Rounding each step to bits per second changes the total by less than half a bit.
        assert!((bytes(0, 1_000_000_000) - 1_250_000.0).abs() <= 1.0);
        // A half wave carries mean/2 +- amplitude/pi.
        let half = 1_250_000.0 * (0.5 + 1.0 / std::f64::consts::PI);
        assert!((bytes(0, 500_000_000) - half).abs() <= 1.0);
        assert!(server.rate(Time::from_ns(250_000_000)).bps() > 19_990_000);
        assert!(server.rate(Time::from_ns(750_000_000)).bps() < 10_000);
    }
}
