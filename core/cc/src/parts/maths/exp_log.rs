//! Exponentials and logarithms with the same bits on every machine, unlike those of libraries.
//!
//! Built only from additions, multiplications, divisions and shifts of exponents, which IEEE 754 defines to the last
//! bit. The relative error of all of them is at most 1e-15 for normal results.

/// The natural logarithm of 2: as many leading bits as leave a multiple by any exponent exact, and the rest.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
/// Beyond these the exponential is infinite, or zero.
const MAX_EXPONENT: f64 = 709.782_712_893_384;
const MIN_EXPONENT: f64 = -745.133_219_101_941_2;
/// Bits below the leading one, and the value of the exponent of 1.
const FRACTION_BITS: u32 = 52;
const BIAS: i64 = 1023;

/// e to the power of `x`: infinite above 709.78, 0 below -745.13 (with fewer digits below -708.4, where results are
/// subnormal), NaN for NaN.
pub fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// The natural logarithm of `x`: minus infinity for 0, NaN for NaN and negative numbers.
pub fn ln(x: f64) -> f64 {
    if let Some(limit) = limit_of_ln(x) {
        return limit;
    }
    let (high, low) = ln_in_two(x);
    high + low
}

/// The hyperbolic tangent of `x`: 1 or -1 from 20 or -20 on, NaN for NaN.
pub fn tanh(x: f64) -> f64 {
    let twice = 2.0 * x.abs();
    if twice > 40.0 {
        return 1.0f64.copysign(x);
    }
    // For small numbers the difference to 1 keeps all its digits only if 1 is never added.
    let above_one = if twice < 0.3 {
        exp_above_one(twice)
    } else {
        exp(twice) - 1.0
    };
    (above_one / (above_one + 2.0)).copysign(x)
}

/// `x` to the power of `y`, for `x` not negative: 1 if `y` is 0 or `x` is 1, for any value of the other; NaN for any
/// negative `x`, and for NaN.
pub fn powf(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if y.is_nan() {
        return y;
    }
    if let Some(limit) = limit_of_ln(x) {
        return exp(y * limit);
    }
    let (high, low) = ln_in_two(x);
    let product = y * high;
    if !(MIN_EXPONENT - 1.0..=MAX_EXPONENT + 1.0).contains(&product) {
        return exp(product);
    }
    // The rounding error of the product is magnified by its size.
    exp_of_sum(product, product_error(y, high, product) + y * low)
}

/// e to the power of `x + rest`, where `rest` is a few of the last digits of `x`.
fn exp_of_sum(x: f64, rest: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > MAX_EXPONENT {
        return f64::INFINITY;
    }
    if x < MIN_EXPONENT {
        return 0.0;
    }
    let doublings = (x * std::f64::consts::LOG2_E + 0.5).floor();
    let reduced = x - doublings * LN_2_HIGH - doublings * LN_2_LOW + rest;
    // In two steps, since the first or the last powers of two are not normal numbers.
    let first = (doublings as i64).div_euclid(2);
    (1.0 + exp_above_one(reduced)) * power_of_two(first) * power_of_two(doublings as i64 - first)
}

/// e to the power of `x`, less 1, for `x` between -0.35 and 0.35: Taylor's series, of which the term after
/// the last is below 1e-17 of the sum.
fn exp_above_one(x: f64) -> f64 {
    let mut sum = 0.0;
    for divisor in (2..=14).rev() {
        sum = (1.0 + sum) * x / f64::from(divisor);
    }
    x + x * sum
}

/// 2 to the power of `exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + BIAS) as u64) << FRACTION_BITS)
}

/// The logarithm of anything but a positive finite number.
fn limit_of_ln(x: f64) -> Option<f64> {
    if x == 0.0 {
        Some(f64::NEG_INFINITY)
    } else if x < 0.0 || x.is_nan() {
        Some(f64::NAN)
    } else if x == f64::INFINITY {
        Some(x)
    } else {
        None
    }
}

/// The natural logarithm of a positive finite number as a sum, accurate to nearly twice the usual number of digits.
fn ln_in_two(x: f64) -> (f64, f64) {
    // Subnormal numbers are scaled into the normal range first.
    let lifted = if x < f64::MIN_POSITIVE {
        x * power_of_two(54)
    } else {
        x
    };
    let lift = if x < f64::MIN_POSITIVE { 54 } else { 0 };
    let mut exponent = (lifted.to_bits() >> FRACTION_BITS) as i64 - BIAS;
    let mut fraction = lifted * power_of_two(-exponent.div_euclid(2));
    fraction *= power_of_two(-(exponent - exponent.div_euclid(2)));
    if fraction > std::f64::consts::SQRT_2 {
        fraction /= 2.0;
        exponent += 1;
    }
    // ln(fraction) = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 ...), s = (fraction - 1)/(fraction + 1), |s| < 0.172.
    let (above, sum) = (fraction - 1.0, fraction + 1.0);
    let sum_error = fraction - (sum - 1.0);
    let s = above / sum;
    let multiple = s * sum;
    let s_error = (above - multiple - product_error(s, sum, multiple) - s * sum_error) / sum;
    let square = s * s;
    let mut series = 0.0;
    for term in (1..=12u8).rev() {
        series = (series + 1.0 / f64::from(2 * term + 1)) * square;
    }
    let doublings = (exponent - lift) as f64;
    let whole = doublings * LN_2_HIGH;
    let head = whole + 2.0 * s;
    // The rounding error of the head: either of its two terms may be the smaller.
    let other = head - whole;
    let lost = (whole - (head - other)) + (2.0 * s - other);
    let tail = lost + (2.0 * s_error + doublings * LN_2_LOW + 2.0 * s * series);
    let high = head + tail;
    (high, tail - (high - head))
}

/// Rounding error of `product`, the rounded `x * y` (Dekker 1971).
fn product_error(x: f64, y: f64, product: f64) -> f64 {
    let ((x_high, x_low), (y_high, y_low)) = (halves(x), halves(y));
    ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
}

/// `x` as a sum of two numbers with half the digits each (Veltkamp 1968); `x` is below 1e300.
fn halves(x: f64) -> (f64, f64) {
    let scaled = x * 134_217_729.0; // 2^27 + 1
    let high = scaled - (scaled - x);
    (high, x - high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of both signs and all magnitudes from `low` to `high`.
    fn grid(low: f64, high: f64, steps: u32) -> impl Iterator<Item = f64> {
        (0..=steps).map(move |step| low + (high - low) * f64::from(step) / f64::from(steps))
    }

    #[track_caller]
    fn near(value: f64, expected: f64, what: &str) {
        assert!(
            (value - expected).abs() <= 1e-15 * expected.abs(),
            "{what}: {value:e} instead of {expected:e}"
        );
    }

    // The library's are within one unit in the last place, 2.2e-16.
    #[test]
    fn the_exponential_is_one() {
        for x in grid(-708.0, 709.7, 20_011).chain(grid(-1.0, 1.0, 2_003)) {
            near(exp(x), x.exp(), &format!("exp {x}"));
        }
        near(exp(1e-300), 1.0, "exp of next to nothing");
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn the_exponential_ends_where_numbers_end() {
        for (x, limit) in [
            (709.79, f64::INFINITY),
            (-745.2, 0.0),
            (1e300, f64::INFINITY),
            (-1e300, 0.0),
        ] {
            assert_eq!(exp(x), limit, "{x}");
        }
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert!(exp(f64::NAN).is_nan());
        assert!(exp(MAX_EXPONENT).is_finite() && exp(MAX_EXPONENT) > 1.797e308);
        // For subnormal numbers a few units of the smallest one.
        for x in grid(-745.0, -708.5, 1_009) {
            assert!((exp(x) - x.exp()).abs() <= 1.5e-323, "{x}");
        }
    }

    #[test]
    fn the_logarithm_is_one() {
        let mut x: f64 = 1e-320;
        while x < 1e308 {
            near(ln(x), x.ln(), &format!("ln {x:e}"));
            x *= 1.037;
        }
        for x in grid(0.5, 2.0, 20_011) {
            near(ln(x), x.ln(), &format!("ln {x}"));
        }
        for x in [
            1.0 + f64::EPSILON,
            1.0 - f64::EPSILON / 2.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
        ] {
            near(ln(x), x.ln(), &format!("ln {x:e}"));
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn the_logarithm_knows_its_limits() {
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert_eq!(ln(-0.0), f64::NEG_INFINITY);
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert!(ln(-1e-300).is_nan() && ln(f64::NEG_INFINITY).is_nan() && ln(f64::NAN).is_nan());
    }

    #[test]
    fn the_hyperbolic_tangent_is_one() {
        for x in grid(-21.0, 21.0, 20_011).chain(grid(-0.4, 0.4, 5_003)) {
            near(tanh(x), x.tanh(), &format!("tanh {x}"));
        }
        for x in [1e-3, 1e-8, 1e-100, 1e-300, 1e300, f64::INFINITY] {
            near(tanh(x), x.tanh(), &format!("tanh {x}"));
            assert_eq!(tanh(-x), -tanh(x));
        }
        assert_eq!(tanh(0.0).to_bits(), 0);
        assert_eq!(tanh(-0.0).to_bits(), (-0.0f64).to_bits());
        assert!(tanh(f64::NAN).is_nan());
    }

    #[test]
    fn a_power_is_one() {
        for y in [0.9, -0.9, 0.5, 1.0, 2.0, -3.0, 1.0 / 3.0, 17.25, 1e-3, 80.0] {
            let mut x: f64 = 1e-200;
            while x < 1e200 {
                let expected = x.powf(y);
                if expected.is_normal() {
                    near(powf(x, y), expected, &format!("{x:e} to {y}"));
                } else {
                    assert!(
                        powf(x, y) == expected || expected.is_subnormal(),
                        "{x:e} to {y}"
                    );
                }
                x *= 1.61;
            }
        }
        // Compound interest: the error of the base is multiplied by the number of years.
        for (x, y) in [(1.0f64 + 1e-9, 1e11), (0.999_999, 5e8), (1.000_1, -6e6)] {
            near(powf(x, y), x.powf(y), &format!("{x} to {y}"));
        }
    }

    #[test]
    fn powers_know_their_limits() {
        for (x, y, limit) in [
            (0.0, 0.9, 0.0),
            (0.0, -0.9, f64::INFINITY),
            (f64::INFINITY, 2.0, f64::INFINITY),
            (f64::INFINITY, -2.0, 0.0),
            (2.0, f64::INFINITY, f64::INFINITY),
            (0.5, f64::INFINITY, 0.0),
            (2.0, 1e300, f64::INFINITY),
            (2.0, -1e300, 0.0),
            (f64::NAN, 0.0, 1.0),
            (1.0, f64::NAN, 1.0),
        ] {
            assert_eq!(powf(x, y), limit, "{x} to {y}");
        }
        assert!(
            powf(-2.0, 2.0).is_nan()
                && powf(f64::NAN, 2.0).is_nan()
                && powf(2.0, f64::NAN).is_nan()
        );
    }

    /// A checksum over the bits of many values, the same on every machine.
    #[test]
    fn the_bits_are_the_same_everywhere() {
        let mut all = 0u64;
        for x in grid(0.01, 30.0, 3_000) {
            for value in [
                exp(x),
                exp(-x),
                ln(x),
                tanh(x / 10.0),
                powf(x, 0.9),
                powf(x, -2.5),
            ] {
                all = all.rotate_left(5) ^ value.to_bits();
            }
        }
        assert_eq!(all, 0x4266_7BD1_4EBB_B9C4, "{all:#x}");
    }
}
