//! The delay profile: the delays measured with each window, and the curve through them.

use crate::parts::SmoothingSpline;

/// Windows from here on are not stored (yzaki/verus d4b447e: MAX_W_DELAY_CURVE).
pub(super) const MAX_PROFILE_WINDOW: usize = 40_000;
/// Initial number of points of the profile per node of the curve, and the minimum number of nodes.
const POINTS_PER_NODE: usize = 15;
const NODES: usize = 5;
/// Until a curve exists, a delay beyond all measured ones is lowered in steps of this, in ms.
const STEP: f64 = 2.0;
/// Weight of the past in smoothed delays.
const MEMORY: f64 = 0.875;

/// `past` and `x`, smoothed.
pub(super) fn smooth(past: f64, x: f64) -> f64 {
    MEMORY * past + (1.0 - MEMORY) * x
}

/// Delays in ms by window in packets.
#[derive(Debug)]
pub(super) struct DelayProfile {
    /// Smoothed delay of each window; negative if none was measured.
    seen: Vec<f64>,
    points_per_node: usize,
    fitted: Option<SmoothingSpline>,
    /// The largest value of the curve over whole windows from 2 to the last of them, for each of these.
    highest: Vec<f64>,
    /// Kept for its capacity.
    points: Vec<(f64, f64)>,
}

impl Default for DelayProfile {
    fn default() -> Self {
        DelayProfile {
            seen: Vec::new(),
            points_per_node: POINTS_PER_NODE,
            fitted: None,
            highest: Vec::new(),
            points: Vec::new(),
        }
    }
}

impl DelayProfile {
    /// Discards everything.
    pub(super) fn reset(&mut self) {
        self.seen.clear();
        self.points_per_node = POINTS_PER_NODE;
        self.fitted = None;
    }

    /// Adds the `delay` of a packet sent with `window`.
    pub(super) fn record(&mut self, window: f64, delay: f64) {
        let index = window as usize;
        if index >= MAX_PROFILE_WINDOW {
            return;
        }
        if index >= self.seen.len() {
            self.seen.resize(index + 1, -1.0);
        }
        let past = self.seen[index];
        self.seen[index] = if past < 0.0 { delay } else { smooth(past, delay) };
    }

    /// The delay measured with `window`.
    pub(super) fn seen(&self, window: f64) -> Option<f64> {
        let delay = *self.seen.get(window as usize)?;
        (delay >= 0.0).then_some(delay)
    }

    /// Discards the delays of windows from `window` on.
    pub(super) fn forget_from(&mut self, window: f64) {
        self.seen.truncate(window.ceil() as usize);
    }

    /// The curve at `window`, once it exists.
    pub(super) fn curve(&self, window: f64) -> Option<f64> {
        Some(self.fitted.as_ref()?.at(window))
    }

    fn largest(&self) -> Option<usize> {
        self.seen.iter().rposition(|&delay| delay >= 0.0)
    }

    /// Fits the curve to the delays; returns whether they suffice. A single window does not define a curve.
    pub(super) fn fit(&mut self) -> bool {
        let largest = self.largest().unwrap_or(0);
        while largest < NODES * self.points_per_node {
            self.points_per_node -= 1;
            if self.points_per_node == 0 {
                return false;
            }
        }
        self.points.clear();
        let seen = self.seen.iter().enumerate();
        let points = seen.filter(|(_, delay)| **delay >= 0.0);
        self.points.extend(points.map(|(window, &delay)| (window as f64, delay)));
        let Some(fitted) = SmoothingSpline::fit(&self.points, largest / self.points_per_node) else {
            return true;
        };
        self.highest.clear();
        let mut highest = f64::NEG_INFINITY;
        for window in 2..=largest {
            highest = highest.max(fitted.at(window as f64));
            self.highest.push(highest);
        }
        self.fitted = Some(fitted);
        true
    }

    /// The window just before the first whole one, from 2 on, whose delay is above `target`, but not more than `reach`
    /// times the largest tried; `None` if none is below the limit. Until a curve exists the target is lowered until a
    /// window is found.
    pub(super) fn window_for(&self, target: &mut f64, reach: f64) -> Option<u64> {
        let first = match &self.fitted {
            None => self.first_seen_above(target),
            Some(fitted) => self.first_above(fitted, *target)?,
        };
        // Beyond the windows tried the curve is an extrapolation.
        let limit = self.largest().unwrap_or(1).max(1) as f64 * reach;
        Some(((first - 1) as f64).min(limit).max(1.0) as u64)
    }

    fn first_above(&self, fitted: &SmoothingSpline, target: f64) -> Option<usize> {
        let inside = self.highest.partition_point(|&highest| highest <= target);
        if inside < self.highest.len() {
            return Some(inside + 2);
        }
        // On the line beyond the last point.
        let last = self.highest.len() + 1;
        let slope = fitted.end_slope();
        let steps = (target - fitted.at(last as f64)) / slope;
        if slope <= 0.0 || steps >= MAX_PROFILE_WINDOW as f64 {
            return None;
        }
        let mut window = last + steps.max(0.0) as usize;
        while window < MAX_PROFILE_WINDOW && fitted.at(window as f64) <= target {
            window += 1;
        }
        (window < MAX_PROFILE_WINDOW).then_some(window)
    }

    fn first_seen_above(&self, target: &mut f64) -> usize {
        let seen = self.seen.get(2..).unwrap_or_default();
        let highest = seen.iter().copied().fold(-1.0, f64::max);
        if highest < 0.0 {
            return 2;
        }
        if *target >= highest {
            *target -= STEP * (((*target - highest) / STEP).floor() + 1.0);
        }
        seen.iter().position(|delay| *delay > *target && *delay >= 0.0).map_or(2, |index| index + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: usize, to: usize, at: impl Fn(f64) -> f64) -> DelayProfile {
        let mut profile = DelayProfile::default();
        for window in from..=to {
            profile.record(window as f64, at(window as f64));
        }
        profile
    }

    #[test]
    fn delays_of_a_window_are_smoothed() {
        let mut profile = DelayProfile::default();
        profile.record(10.9, 80.0);
        profile.record(10.0, 40.0);
        assert_eq!(profile.seen(10.5), Some(0.875 * 80.0 + 0.125 * 40.0));
        assert_eq!(profile.seen(9.0), None);
        profile.record(1e9, 40.0);
        assert_eq!(profile.largest(), Some(10));
        profile.forget_from(10.0);
        assert_eq!(profile.largest(), None);
    }

    #[test]
    fn the_window_is_before_the_first_with_too_much_delay() {
        let mut profile = line(1, 100, |w| 40.0 + w);
        for fitted in [false, true] {
            // At w = 61 the delay is 101 ms: the first above 100.5.
            assert_eq!(profile.window_for(&mut 100.5, 2.0), Some(60), "{fitted}");
            assert_eq!(profile.window_for(&mut 0.0, 2.0), Some(1));
            assert!(profile.fit());
        }
        // On the line, and no further than twice the largest window tried.
        assert_eq!(profile.window_for(&mut 190.5, 2.0), Some(150));
        assert_eq!(profile.window_for(&mut 400.0, 2.0), Some(200));
        assert_eq!(profile.window_for(&mut 400.5, 40_000.0), Some(360));
        // Beyond all windows.
        assert_eq!(profile.window_for(&mut 50_000.0, 2.0), None);
    }

    #[test]
    fn a_curve_that_does_not_rise_has_no_window_for_more_delay() {
        let mut profile = line(1, 100, |_| 40.0);
        assert!(profile.fit());
        assert_eq!(profile.window_for(&mut 45.0, 2.0), None);
        assert_eq!(profile.window_for(&mut 30.0, 2.0), Some(1));
    }

    #[test]
    fn a_dip_of_the_curve_does_not_hide_what_comes_before() {
        // A peak at 30, higher than the values that follow up to 80.
        let hill = |w: f64| 40.0 + w + (60.0 - 2.0 * (w - 30.0).abs()).max(0.0);
        let mut profile = line(1, 150, hill);
        assert!(profile.fit());
        let mut target = 100.0;
        let window = profile.window_for(&mut target, 2.0).unwrap();
        let curve = |w: u64| profile.curve(w as f64).unwrap();
        assert!(curve(window + 1) > target);
        assert!((2..=window).all(|w| curve(w) <= target), "{window}");
    }

    #[test]
    fn before_the_curve_a_delay_beyond_all_is_lowered() {
        let profile = line(1, 50, |w| 40.0 + w);
        let mut target = 95.0;
        // 95, 93, 91, 89: the first that is exceeded.
        assert_eq!(profile.window_for(&mut target, 2.0), Some(49));
        assert_eq!(target, 89.0);
        assert_eq!(DelayProfile::default().window_for(&mut 5.0, 2.0), Some(1));
    }

    #[test]
    fn nodes_are_fewer_points_apart_where_windows_are_small() {
        for (largest, points_per_node) in [(200, 15), (75, 15), (74, 14), (20, 4), (5, 1)] {
            let mut profile = line(1, largest, |w| 40.0 + w);
            assert!(profile.fit());
            assert_eq!(profile.points_per_node, points_per_node, "{largest}");
            // For good.
            for window in largest..300 {
                profile.record(window as f64, 40.0 + window as f64);
            }
            assert!(profile.fit());
            assert_eq!(profile.points_per_node, points_per_node);
        }
        assert!(!line(1, 4, |w| 40.0 + w).fit());
        assert!(!DelayProfile::default().fit());
    }
}
