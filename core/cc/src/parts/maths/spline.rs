//! A smoothing spline: the natural cubic spline over equally spaced nodes that is close to given points and has little
//! curvature.
//!
//! It minimises the sum of the squared distances from the points plus p times the integral of the squared second
//! derivative. p is relative: 100 times the largest norm that one node's basis function (1 at its node, 0 at the
//! others) has over the points, over the largest such integral of one of them. This is the result of the routine
//! "spline1dfitpenalized" of the library ALGLIB with rho = 2, which Verus uses; ALGLIB solves the normal equations of
//! the basis functions as a full matrix, this file those of B-splines, which span the same functions and yield a matrix
//! of seven diagonals: the cost grows with the number of points and nodes, not with its cube.

/// Off-diagonal entries on each side.
const BAND: usize = 3;
/// A basis function falls by a factor of 3.7 per node: beyond this many nodes it is negligible.
const REACH: usize = 24;
/// Relative weight of the curvature (ALGLIB: 10 to the power of rho = 2).
const WEIGHT: f64 = 100.0;

/// A fitted curve. Positions are in the units of the points; inside, nodes are one apart.
#[derive(Clone, Debug, Default)]
pub struct SmoothingSpline {
    /// Position of the first node, and distance of nodes.
    first: f64,
    step: f64,
    /// Values at the nodes, and second derivatives there (per node distance squared).
    values: Vec<f64>,
    bends: Vec<f64>,
}

impl SmoothingSpline {
    /// Fits a curve with `nodes` nodes, at least four, to points with rising positions. `None` if the points do not
    /// determine one: fewer than two.
    pub fn fit(points: &[(f64, f64)], nodes: usize) -> Option<Self> {
        let (&(first, _), &(last, _)) = (points.first()?, points.last()?);
        if nodes <= BAND || last <= first {
            return None;
        }
        let step = (last - first) / (nodes - 1) as f64;
        let at: Vec<f64> = points
            .iter()
            .map(|&(x, _)| ((x - first) / step).min((nodes - 1) as f64))
            .collect();
        let mut matrix = Banded::new(nodes);
        for (&u, &(_, y)) in at.iter().zip(points) {
            let (columns, weights) = row(u, nodes);
            matrix.add(&columns, &weights, &columns, &weights, 1.0);
            for (&column, &weight) in columns.iter().zip(&weights) {
                matrix.right[column] += weight * y;
            }
        }
        let weight = WEIGHT * relative(&at, nodes);
        let second = [1.0, -2.0, 1.0];
        for node in 1..nodes - 1 {
            let columns = [node - 1, node, node + 1];
            matrix.add(&columns, &second, &columns, &second, weight * 2.0 / 3.0);
            if node + 2 < nodes {
                let next = [node, node + 1, node + 2];
                matrix.add(&columns, &second, &next, &second, weight / 6.0);
                matrix.add(&next, &second, &columns, &second, weight / 6.0);
            }
        }
        let inner = matrix.solve()?;
        // One coefficient more at each end, such that the second derivative vanishes there.
        let end = nodes - 1;
        let coefficient = |index: usize| match index {
            0 => 2.0 * inner[0] - inner[1],
            index if index > nodes => 2.0 * inner[end] - inner[end - 1],
            index => inner[index - 1],
        };
        let mut spline = SmoothingSpline {
            first,
            step,
            values: Vec::with_capacity(nodes),
            bends: Vec::with_capacity(nodes),
        };
        for node in 0..nodes {
            let (a, b, c) = (
                coefficient(node),
                coefficient(node + 1),
                coefficient(node + 2),
            );
            spline.values.push((a + 4.0 * b + c) / 6.0);
            spline.bends.push(a - 2.0 * b + c);
        }
        Some(spline)
    }

    /// The curve at `x`; beyond its ends it is extended linearly.
    pub fn at(&self, x: f64) -> f64 {
        let u = (x - self.first) / self.step;
        let end = self.values.len() - 1;
        if u < 0.0 {
            let slope = self.values[1] - self.values[0] - self.bends[1] / 6.0;
            return self.values[0] + u * slope;
        }
        if u > end as f64 {
            return self.values[end] + (u - end as f64) * self.last_slope();
        }
        let node = (u as usize).min(end - 1);
        cubic(
            u - node as f64,
            [self.values[node], self.values[node + 1]],
            [self.bends[node], self.bends[node + 1]],
        )
    }

    /// Slope of the line beyond the last node, per unit of position.
    pub fn end_slope(&self) -> f64 {
        self.last_slope() / self.step
    }

    fn last_slope(&self) -> f64 {
        let end = self.values.len() - 1;
        self.values[end] - self.values[end - 1] + self.bends[end - 1] / 6.0
    }
}

/// A cubic `t` of the way between two nodes with these values and second derivatives.
fn cubic(t: f64, values: [f64; 2], bends: [f64; 2]) -> f64 {
    let q = 1.0 - t;
    q * values[0] + t * values[1] + ((t * t * t - t) * bends[1] + (q * q * q - q) * bends[0]) / 6.0
}

/// The non-zero B-splines at `u`, and their values. The coefficient beyond each end is twice the last one less the
/// previous one.
fn row(u: f64, nodes: usize) -> ([usize; 3 + 1], [f64; 3 + 1]) {
    let node = (u as usize).min(nodes - 2);
    let t = u - node as f64;
    let q = 1.0 - t;
    let w = [
        q * q * q / 6.0,
        (3.0 * t * t * t - 6.0 * t * t + 4.0) / 6.0,
        (3.0 * q * q * q - 6.0 * q * q + 4.0) / 6.0,
        t * t * t / 6.0,
    ];
    if node == 0 {
        let folded = [w[1] + 2.0 * w[0], w[2] - w[0], w[3], 0.0];
        ([0, 1, 2, 3], folded)
    } else if node + 2 == nodes {
        let folded = [0.0, w[0], w[1] - w[3], w[2] + 2.0 * w[3]];
        ([nodes - 4, nodes - 3, nodes - 2, nodes - 1], folded)
    } else {
        ([node - 1, node, node + 1, node + 2], w)
    }
}

/// The largest norm of a basis function over the points, over the largest integral of a squared second derivative.
fn relative(at: &[f64], nodes: usize) -> f64 {
    let (mut norm, mut bending) = (0.0f64, 0.0f64);
    let mut start = 0;
    let mut bends = Vec::with_capacity(2 * REACH + 1);
    for center in 0..nodes {
        let low = center.saturating_sub(REACH);
        let high = (center + REACH).min(nodes - 1);
        basis_bends(center - low, high - low + 1, &mut bends);
        bending = bending.max(integral(&bends));
        while at.get(start).is_some_and(|&u| u < low as f64) {
            start += 1;
        }
        let near = at[start..].iter().take_while(|&&u| u <= high as f64);
        let squares = near.map(|&u| {
            let node = (u as usize - low).min(bends.len() - 2);
            let one = |index: usize| if index + low == center { 1.0 } else { 0.0 };
            let value = cubic(
                u - (low + node) as f64,
                [one(node), one(node + 1)],
                [bends[node], bends[node + 1]],
            );
            value * value
        });
        norm = norm.max(squares.sum());
    }
    norm / bending
}

/// Second derivatives at `count` nodes of the natural spline that is 1 at node `center` and 0 at the others.
fn basis_bends(center: usize, count: usize, bends: &mut Vec<f64>) {
    // bends[i-1] + 4 bends[i] + bends[i+1] = 6 times the second difference of the values.
    bends.clear();
    bends.resize(count, 0.0);
    let mut factors = [0.0; 2 * REACH + 1];
    for node in 1..count - 1 {
        let difference = match node.abs_diff(center) {
            0 => -12.0,
            1 => 6.0,
            _ => 0.0,
        };
        let pivot = 4.0 - factors[node - 1];
        factors[node] = 1.0 / pivot;
        bends[node] = (difference - bends[node - 1]) / pivot;
    }
    for node in (1..count - 1).rev() {
        bends[node] -= factors[node] * bends[node + 1];
    }
}

/// Integral of the square of the piecewise linear function through `bends`.
fn integral(bends: &[f64]) -> f64 {
    let pairs = bends.windows(2);
    pairs
        .map(|pair| (pair[0] * pair[0] + pair[0] * pair[1] + pair[1] * pair[1]) / 3.0)
        .sum()
}

/// A symmetric positive definite banded system of equations.
struct Banded {
    /// Row by row, the entries at and left of the diagonal, the diagonal first.
    rows: Vec<[f64; BAND + 1]>,
    right: Vec<f64>,
}

impl Banded {
    fn new(size: usize) -> Self {
        Banded {
            rows: vec![[0.0; BAND + 1]; size],
            right: vec![0.0; size],
        }
    }

    /// Adds `factor` times the product of two sparse rows.
    fn add(&mut self, left: &[usize], a: &[f64], top: &[usize], b: &[f64], factor: f64) {
        for (&row, &x) in left.iter().zip(a) {
            for (&column, &y) in top.iter().zip(b) {
                if column <= row {
                    self.rows[row][row - column] += factor * x * y;
                }
            }
        }
    }

    /// Solves by Cholesky decomposition; `None` if the system is singular.
    fn solve(mut self) -> Option<Vec<f64>> {
        let size = self.rows.len();
        for row in 0..size {
            for back in (0..=BAND.min(row)).rev() {
                let column = row - back;
                let mut sum = self.rows[row][back];
                for other in row.saturating_sub(BAND)..column {
                    sum -= self.rows[row][row - other] * self.entry(column, other);
                }
                self.rows[row][back] = if back > 0 {
                    sum / self.rows[column][0]
                } else if sum > 0.0 {
                    sum.sqrt()
                } else {
                    return None;
                };
            }
        }
        let mut x = self.right;
        for row in 0..size {
            for back in 1..=BAND.min(row) {
                x[row] -= self.rows[row][back] * x[row - back];
            }
            x[row] /= self.rows[row][0];
        }
        for row in (0..size).rev() {
            x[row] /= self.rows[row][0];
            for back in 1..=BAND.min(row) {
                x[row - back] -= self.rows[row][back] * x[row];
            }
        }
        Some(x)
    }

    fn entry(&self, row: usize, column: usize) -> f64 {
        let back = row - column;
        if back > BAND {
            0.0
        } else {
            self.rows[row][back]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(points: &[(f64, f64)], nodes: usize, expected: &[(f64, f64)]) {
        let spline = SmoothingSpline::fit(points, nodes).unwrap();
        for &(x, y) in expected {
            let found = spline.at(x);
            assert!((found / y - 1.0).abs() < 1e-9, "{x}: {found} for {y}");
        }
    }

    // Computed from the definition above with full matrices and checked against ALGLIB to nine digits.
    #[test]
    fn dense_points_give_the_known_curve() {
        let sine = |x: f64| {
            // A series is enough for arguments up to 12.
            let (mut term, mut sum) = (x, x);
            for n in 1..40 {
                term *= -x * x / f64::from((2 * n) * (2 * n + 1));
                sum += term;
            }
            sum
        };
        let points: Vec<(f64, f64)> = (1..=60)
            .map(|w| {
                let w = f64::from(w);
                (w, 40.0 + 0.5 * w + 0.01 * w * w + 3.0 * sine(w / 5.0))
            })
            .collect();
        let expected = [
            (1.0, 36.701_033_998),
            (2.0, 37.726_336_788),
            (10.0, 45.940_336_513),
            (30.0, 66.805_329_615),
            (60.0, 99.213_993_897),
            (61.0, 100.301_898_303),
            (100.0, 142.730_170_142),
            (400.0, 469.101_491_980),
        ];
        check(&points, 5, &expected);
    }

    #[test]
    fn sparse_points_give_the_known_curve() {
        let windows = [3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 89.0, 144.0];
        let delays = [41.0, 41.5, 43.0, 44.0, 50.0, 61.0, 75.0, 110.0, 170.0];
        let points: Vec<(f64, f64)> = windows.into_iter().zip(delays).collect();
        let expected = [
            (1.0, 35.817_508_286),
            (3.0, 37.401_916_414),
            (10.0, 42.951_601_303),
            (34.0, 62.321_267_114),
            (100.0, 122.244_566_941),
            (144.0, 166.640_434_721),
            (200.0, 223.847_698_783),
        ];
        check(&points, 9, &expected);
    }

    #[test]
    fn a_line_stays_a_line() {
        for nodes in [4, 5, 60, 200] {
            let points: Vec<(f64, f64)> = (0..100)
                .map(|x| (f64::from(x), 7.0 + 3.0 * f64::from(x)))
                .collect();
            let spline = SmoothingSpline::fit(&points, nodes).unwrap();
            for x in [-50.0, 0.0, 33.3, 99.0, 500.0] {
                let error = spline.at(x) - (7.0 + 3.0 * x);
                assert!(error.abs() < 1e-6, "{nodes} nodes at {x}: {error}");
            }
            assert!((spline.end_slope() - 3.0).abs() < 1e-8);
        }
    }

    #[test]
    fn cutting_basis_functions_off_changes_nothing() {
        // With REACH nodes on each side an inner basis function behaves as on an infinite grid: its second derivative
        // at its own node is 6 (1 - sqrt 3), and falls by 2 + sqrt 3 from the neighbour's on.
        let mut bends = Vec::new();
        basis_bends(REACH, 2 * REACH + 1, &mut bends);
        let root = 3.0f64.sqrt();
        let own = bends[REACH];
        let law = 6.0 * (1.0 - root);
        assert!((own - law).abs() < 1e-9 * law.abs(), "{own} for {law}");
        let ratio = bends[REACH + 2] / bends[REACH + 3];
        assert!((ratio + 2.0 + root).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn points_that_determine_nothing_are_refused() {
        assert!(SmoothingSpline::fit(&[], 5).is_none());
        assert!(SmoothingSpline::fit(&[(3.0, 1.0)], 5).is_none());
        assert!(SmoothingSpline::fit(&[(3.0, 1.0), (4.0, 2.0)], 3).is_none());
        // Two points define a line.
        let spline = SmoothingSpline::fit(&[(3.0, 1.0), (4.0, 2.0)], 5).unwrap();
        assert!((spline.at(10.0) - 8.0).abs() < 1e-6);
    }
}
