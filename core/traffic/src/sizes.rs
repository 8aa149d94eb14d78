//! Sizes of transfers: a mean and a law.

use crate::TransferHeader;
use narrows_units::{Distribution, Kind, ParamError, ParamSpec, Params, Stream};

pub(crate) const LAW: ParamSpec = ParamSpec::new(
    "law",
    Kind::Choice(&["fixed", "uniform", "exponential", "lognormal", "pareto"]),
    "Law of the sizes around their mean.",
)
.default("fixed");

pub(crate) const SIGMA: ParamSpec = ParamSpec::new(
    "sigma",
    Kind::Number,
    "Lognormal: standard deviation of the natural logarithm of the size.",
)
.default("1.318")
.range(0.01, 10.0)
.source("body of web files, Barford and Crovella 1998");

pub(crate) const ALPHA: ParamSpec =
    ParamSpec::new("alpha", Kind::Number, "Pareto: exponent of the tail.")
        .default("1.2")
        .range(0.1, 10.0)
        .source("between 1.1 and 1.3 for files of the web, Crovella and Bestavros 1997");

pub(crate) const MIN_SIZE: ParamSpec = ParamSpec::new(
    "least",
    Kind::Bytes,
    "Uniform: smallest size; the largest lies as far above the mean.",
);

pub(crate) const MAX_SIZE: ParamSpec = ParamSpec::new(
    "most",
    Kind::Bytes,
    "Pareto: largest size; the smallest follows from it and the mean.",
)
.default("100000000");

/// The law of sizes with the mean `mean`, by the parameters above.
///
/// # Errors
/// A mean that the bounds do not allow.
pub(crate) fn law(params: &Params, mean: f64) -> Result<Distribution, ParamError> {
    let real = |name| params.real(name).unwrap_or_default();
    let law = match params.word("law") {
        Some("uniform") => {
            let low = params.integer("least").unwrap_or(0) as f64;
            if low > mean {
                return Err(ParamError::Conflict(
                    "least must not be above the mean size".into(),
                ));
            }
            Distribution::Uniform {
                low,
                high: 2.0 * mean - low,
            }
        }
        Some("exponential") => Distribution::Exponential { mean },
        Some("lognormal") => {
            let sigma = real("sigma");
            Distribution::Lognormal {
                mu: mean.ln() - sigma * sigma / 2.0,
                sigma,
            }
        }
        Some("pareto") => bounded(mean, real("most"), real("alpha"))?,
        _ => Distribution::Fixed(mean),
    };
    Ok(law)
}

/// The bounded Pareto law with this mean: its smallest value is searched for.
fn bounded(mean: f64, high: f64, shape: f64) -> Result<Distribution, ParamError> {
    if mean * 1.01 >= high {
        return Err(ParamError::Conflict(
            "most must be above the mean size".into(),
        ));
    }
    let with = |low| Distribution::BoundedPareto { low, high, shape };
    let (mut least, mut largest) = (1e-6, mean);
    for _ in 0..200 {
        let middle = f64::midpoint(least, largest);
        if with(middle).mean() < mean {
            least = middle;
        } else {
            largest = middle;
        }
    }
    Ok(with(largest))
}

/// Draws a size in whole bytes, at least what the head of a transfer needs.
pub(crate) fn draw(law: &Distribution, stream: &mut Stream) -> u64 {
    (law.sample(stream).round() as u64).max(TransferHeader::LENGTH as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_has_the_mean_that_was_asked_for() {
        for name in ["fixed", "uniform", "exponential", "lognormal", "pareto"] {
            let params = serde_json::json!({"law": name, "least": 30_000, "alpha": 1.5});
            let specs = [LAW, SIGMA, ALPHA, MIN_SIZE, MAX_SIZE];
            let params = Params::from_json(&specs, params.as_object().unwrap()).unwrap();
            let law = law(&params, 40_000.0).unwrap();
            assert!((law.mean() / 40_000.0 - 1.0).abs() < 1e-6, "{law:?}");
        }
        assert!(bounded(5000.0, 4000.0, 1.2).is_err());
    }
}
