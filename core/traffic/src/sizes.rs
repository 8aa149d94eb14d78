//! Sizes of transfers: a mean and a distribution.

use crate::TransferHeader;
use narrows_units::{Distribution, ParamError, Params, Stream, choice, params};

choice! {
    /// Distributions of sizes.
    pub(crate) enum SizeLaw {
        Fixed = "fixed",
        Uniform = "uniform",
        Exponential = "exponential",
        Lognormal = "lognormal",
        Pareto = "pareto",
    }
}

params! {
    /// Parameters of the sizes besides their mean.
    pub(crate) struct SizeParams {
        /// Distribution of the sizes around their mean.
        law: SizeLaw = "fixed";
        /// Lognormal: standard deviation of the natural logarithm of the size.
        sigma: Number(0.01..=10.0) = 1.318, "body of web files, Barford and Crovella 1998";
        /// Pareto: exponent of the tail.
        alpha: Number(0.1..=10.0) = 1.2, "between 1.1 and 1.3 for files of the web, Crovella and Bestavros 1997";
        /// Uniform: smallest size; the largest lies as far above the mean.
        least: Option<Bytes>;
        /// Pareto: largest size; the smallest follows from it and the mean.
        most: Bytes = 100000000;
    }
}

/// The size distribution with mean `mean`, by [`SizeParams`].
///
/// # Errors
/// A mean that the bounds do not allow.
pub(crate) fn law(params: &Params, mean: f64) -> Result<Distribution, ParamError> {
    let params = SizeParams::read(params);
    let law = match params.law {
        SizeLaw::Fixed => Distribution::Fixed(mean),
        SizeLaw::Uniform => {
            let low = params.least.unwrap_or_default().get() as f64;
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
        SizeLaw::Exponential => Distribution::Exponential { mean },
        SizeLaw::Lognormal => Distribution::Lognormal {
            mu: mean.ln() - params.sigma * params.sigma / 2.0,
            sigma: params.sigma,
        },
        SizeLaw::Pareto => bounded(mean, params.most.get() as f64, params.alpha)?,
    };
    Ok(law)
}

/// The bounded Pareto distribution with this mean; its minimum is found by search.
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

/// Draws a size in whole bytes, no smaller than the header of a transfer.
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
            let params =
                Params::from_json(SizeParams::PARAMS, params.as_object().unwrap()).unwrap();
            let law = law(&params, 40_000.0).unwrap();
            assert!((law.mean() / 40_000.0 - 1.0).abs() < 1e-6, "{law:?}");
        }
        assert!(bounded(5000.0, 4000.0, 1.2).is_err());
    }
}
