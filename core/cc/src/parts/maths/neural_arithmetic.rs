//! Arithmetic of neural networks in single precision: additions, multiplications and divisions in an order that is fixed
//! here, so that results are the same on every machine.

/// Adds `vector` times `matrix` (one row for each number of the vector) to `sums`.
#[inline]
pub fn add_product(sums: &mut [f32], vector: &[f32], matrix: &[f32]) {
    let columns = sums.len();
    // Four rows at a time, to read and write the sums less often.
    let (fours, last) = vector.as_chunks::<4>();
    let (rows, rest) = matrix.split_at((fours.len() * 4 * columns).min(matrix.len()));
    for ([a, b, c, d], rows) in fours.iter().zip(rows.chunks_exact(4 * columns)) {
        let (first, second) = rows.split_at(2 * columns);
        let (row_a, row_b) = first.split_at(columns);
        let (row_c, row_d) = second.split_at(columns);
        let rows = row_a.iter().zip(row_b).zip(row_c.iter().zip(row_d));
        for (sum, ((in_a, in_b), (in_c, in_d))) in sums.iter_mut().zip(rows) {
            *sum += (a * in_a + b * in_b) + (c * in_c + d * in_d);
        }
    }
    for (value, row) in last.iter().zip(rest.chunks_exact(columns)) {
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum += value * weight;
        }
    }
}

/// Beyond these the logistic function is 0 or 1 in single precision, or nearly.
const MAX_ARGUMENT: f32 = 80.0;
/// Adding it rounds small numbers to integers, which are then in the low bits.
const ROUNDER: f32 = 12_582_912.0; // 1.5 * 2^23

/// The logistic function 1/(1 + e^-x), within 2e-7.
#[inline]
#[allow(clippy::manual_clamp)] // which would let NaN pass
pub fn logistic(x: f32) -> f32 {
    // -x = (k + r) ln 2 with k whole and r within a half; the limits also turn NaN into a number.
    let doublings = (-x).max(-MAX_ARGUMENT).min(MAX_ARGUMENT) * std::f32::consts::LOG2_E;
    let rounded = doublings + ROUNDER;
    let rest = doublings - (rounded - ROUNDER);
    // 2^r: Taylor's series of e^(r ln 2), whose next term is below 2e-8.
    let y = rest * std::f32::consts::LN_2;
    let fraction = 1.0
        + y * (1.0
            + y * (1.0 / 2.0
                + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0))))));
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3F80_0000));
    1.0 / (1.0 + fraction * power)
}

/// The hyperbolic tangent, within 4e-7.
#[inline]
pub fn tanh(x: f32) -> f32 {
    2.0 * logistic(2.0 * x) - 1.0
}

/// Index of the largest value, the first of equal ones.
pub fn largest(values: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_as_exact_as_they_say() {
        for step in -20_000..=20_000 {
            let x = step as f32 / 1000.0;
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(logistic(x)) - exact).abs() < 2e-7, "{x}");
            assert!(
                (f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 4e-7,
                "{x}"
            );
        }
        for (x, value) in [
            (1e30, 1.0),
            (f32::INFINITY, 1.0),
            (-1e30, 0.0),
            (f32::NEG_INFINITY, 0.0),
        ] {
            assert!((logistic(x) - value).abs() < 1e-30, "{x}");
        }
        assert!(logistic(f32::NAN).is_finite());
    }
}
