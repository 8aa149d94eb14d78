//! The lower convex envelope of points added one by one.

/// Maximum number of points kept. Envelopes of real delays have dozens; a peer that invents delays can put every point
/// on the envelope.
const MAX_POINTS: usize = 4096;

/// Points of which each lies strictly below the line through its neighbours, in order of `x`.
#[derive(Clone, Debug, Default)]
pub(super) struct Envelope {
    points: Vec<(i64, i64)>,
}

/// Twice the signed area to the left of the path from `a` over `b` to `c`: positive when `b` lies below the line from
/// `a` to `c`.
#[inline]
fn turn(a: (i64, i64), b: (i64, i64), c: (i64, i64)) -> i128 {
    // Coordinates are below 2^61 in magnitude, so the products are below 2^124.
    let (bx, by) = (i128::from(b.0 - a.0), i128::from(b.1 - a.1));
    let (cx, cy) = (i128::from(c.0 - a.0), i128::from(c.1 - a.1));
    bx * cy - by * cx
}

impl Envelope {
    /// Adds a point; most change nothing.
    #[inline]
    pub(super) fn add(&mut self, x: i64, y: i64) {
        let points = &mut self.points;
        let mut at = match points.last() {
            Some(last) if last.0 < x => points.len(),
            _ => points.partition_point(|point| point.0 < x),
        };
        if let Some(&there) = points.get(at) {
            if there.0 == x {
                if there.1 <= y {
                    return;
                }
                points.remove(at);
            } else if at > 0 && turn(points[at - 1], (x, y), there) <= 0 {
                return;
            }
        }
        points.insert(at, (x, y));
        while at + 2 < points.len() && turn(points[at], points[at + 1], points[at + 2]) <= 0 {
            points.remove(at + 1);
        }
        while at >= 2 && turn(points[at - 2], points[at - 1], points[at]) <= 0 {
            points.remove(at - 1);
            at -= 1;
        }
        if points.len() > MAX_POINTS {
            // Every other limit remains valid, and those left bound slightly less tightly.
            let mut keep = false;
            points.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }

    /// The points, in order of `x`.
    pub(super) fn points(&self) -> impl Iterator<Item = (i64, i64)> + Clone + '_ {
        self.points.iter().copied()
    }

    /// The first and the last `x`.
    pub(super) fn ends(&self) -> Option<(i64, i64)> {
        Some((self.points.first()?.0, self.points.last()?.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A point belongs to the envelope exactly if it lies on or above the line through no pair of others.
        #[test]
        fn it_is_the_envelope_of_all_points(points in prop::collection::vec((0i64..40, -50i64..50), 1..60)) {
            let mut envelope = Envelope::default();
            for &(x, y) in &points {
                envelope.add(x, y);
            }
            let expected: Vec<_> = {
                let mut lowest = std::collections::BTreeMap::new();
                for &(x, y) in &points {
                    let least = lowest.entry(x).or_insert(y);
                    *least = y.min(*least);
                }
                let all: Vec<(i64, i64)> = lowest.into_iter().collect();
                let is_corner = |&(at, point): &(usize, (i64, i64))| {
                    let covered = all[..at].iter().any(|&a| {
                        all[at + 1..].iter().any(|&c| turn(a, point, c) <= 0)
                    });
                    !covered
                };
                all.iter().copied().enumerate().filter(is_corner).map(|(_, point)| point).collect()
            };
            prop_assert_eq!(envelope.points().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn extreme_points_do_not_overflow_and_many_are_thinned() {
        let far = (1 << 61) - 1;
        let mut envelope = Envelope::default();
        for (x, y) in [
            (0, far),
            (far, far),
            (far / 2, -far),
            (1, -far),
            (far - 1, far),
        ] {
            envelope.add(x, y);
        }
        assert_eq!(envelope.ends(), Some((0, far)));
        let mut parabola = Envelope::default();
        for x in 0..20_000 {
            parabola.add(x, x * x);
        }
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&parabola.points().count()));
    }
}
