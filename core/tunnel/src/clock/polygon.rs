//! The set of lines bounded above by some points and below by others, as a polygon of (value at 0, slope).

/// The region that satisfies the limits.
#[derive(Clone, Debug)]
pub(super) enum Area<T> {
    /// Limits exist on one side only, or not at all.
    Unbounded,
    /// Nothing.
    Empty,
    /// This.
    Polygon(T),
}

/// A convex polygon of lines. Values are ns, slopes ns per s.
#[derive(Clone, Debug)]
pub(super) struct Polygon {
    corners: Vec<(f64, f64)>,
}

impl Area<Polygon> {
    fn from_corners(corners: Vec<(f64, f64)>) -> Self {
        if corners.is_empty() {
            Area::Empty
        } else {
            Area::Polygon(Polygon { corners })
        }
    }
}

impl Polygon {
    /// The lines with slopes up to `steepest` either way that lie on or below all of `above` and on
    /// or above all of `below`; both are (seconds, ns).
    pub(super) fn between(
        above: impl Iterator<Item = (f64, f64)> + Clone,
        below: impl Iterator<Item = (f64, f64)> + Clone,
        steepest: f64,
    ) -> Area<Polygon> {
        // The first limits define a box no larger than needed: distant corners would cost significant digits.
        let (Some(high), Some(low)) = (above.clone().next(), below.clone().next()) else {
            return Area::Unbounded;
        };
        let top = high.1 + steepest * high.0.abs();
        let bottom = low.1 - steepest * low.0.abs();
        if top < bottom {
            return Area::Empty;
        }
        let mut corners = vec![
            (bottom, -steepest),
            (top, -steepest),
            (top, steepest),
            (bottom, steepest),
        ];
        reduce(&mut corners, above, below);
        Area::from_corners(corners)
    }

    /// The part of it that satisfies further limits.
    pub(super) fn narrowed(
        &self,
        above: impl Iterator<Item = (f64, f64)>,
        below: impl Iterator<Item = (f64, f64)>,
    ) -> Area<Polygon> {
        let mut corners = self.corners.clone();
        reduce(&mut corners, above, below);
        Area::from_corners(corners)
    }

    /// The flattest and the steepest slope.
    pub(super) fn slopes(&self) -> (f64, f64) {
        range(self.corners.iter().map(|corner| corner.1))
    }

    /// The line in the middle of the strip with this slope (value at 0, slope); without a given slope, with the
    /// feasible slope nearest to zero.
    pub(super) fn middle(
        &self,
        slope: Option<f64>,
        above: impl Iterator<Item = (f64, f64)>,
        below: impl Iterator<Item = (f64, f64)>,
    ) -> (f64, f64) {
        let (flattest, steepest) = self.slopes();
        let slope = slope.unwrap_or(0.0).max(flattest).min(steepest);
        let (low, high) = strip(slope, above, below);
        (f64::midpoint(low, high), slope)
    }

    /// The smallest and the largest value of any line at `x` seconds.
    pub(super) fn extent(&self, x: f64) -> (f64, f64) {
        range(self.corners.iter().map(|(value, slope)| value + slope * x))
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Values at 0 of the lowest and the highest line with this slope between all limits.
fn strip(
    slope: f64,
    above: impl Iterator<Item = (f64, f64)>,
    below: impl Iterator<Item = (f64, f64)>,
) -> (f64, f64) {
    let high = above
        .map(|(x, y)| y - slope * x)
        .fold(f64::INFINITY, f64::min);
    let low = below
        .map(|(x, y)| y - slope * x)
        .fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// Clips the region to the limits.
fn reduce(
    corners: &mut Vec<(f64, f64)>,
    above: impl Iterator<Item = (f64, f64)>,
    below: impl Iterator<Item = (f64, f64)>,
) {
    let mut spare = Vec::new();
    let above = above.map(|(x, y)| (x, y, 1.0));
    let below = below.map(|(x, y)| (x, y, -1.0));
    for (x, y, side) in above.chain(below) {
        cut(
            corners,
            |(value, slope)| side * (y - (value + slope * x)),
            &mut spare,
        );
        std::mem::swap(corners, &mut spare);
    }
}

/// The part of a convex polygon in which `room` is not negative (Sutherland and Hodgman 1974).
fn cut(corners: &[(f64, f64)], room: impl Fn((f64, f64)) -> f64, out: &mut Vec<(f64, f64)>) {
    out.clear();
    let Some(&last) = corners.last() else { return };
    let (mut before, mut room_before) = (last, room(last));
    for &corner in corners {
        let here = room(corner);
        if (here >= 0.0) != (room_before >= 0.0) {
            let share = room_before / (room_before - here);
            out.push((
                before.0 + (corner.0 - before.0) * share,
                before.1 + (corner.1 - before.1) * share,
            ));
        }
        if here >= 0.0 {
            out.push(corner);
        }
        (before, room_before) = (corner, here);
    }
}
