//! The trend of the delay, and the detection of overuse.

use super::groups::Deltas;

/// Points of the line.
const POINTS: usize = 20;
/// Weight of the past in the smoothed delay.
const SMOOTHING: f64 = 0.9;
/// The slope is scaled by this and by the number of deltas, at most `MOST_DELTAS`.
const GAIN: f64 = 4.0;
const MAX_DELTAS: u32 = 60;
/// Overuse must last longer than this (ms) to count.
const OVER_FOR: f64 = 10.0;
const FIRST_THRESHOLD: f64 = 12.5;
/// Gains of the threshold per ms, upwards and downwards (draft-ietf-rmcat-gcc-02, section 5.4: K_u and K_d differ
/// from these; Chromium has 0.0087 and 0.039).
const UP: f64 = 0.0087;
const DOWN: f64 = 0.039;
/// Trends further above the threshold than this do not adapt it.
const FAR: f64 = 15.0;
const MAX_STEP_MS: f64 = 100.0;
const THRESHOLDS: (f64, f64) = (6.0, 600.0);

/// State of the path according to its delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Usage {
    #[default]
    Normal,
    Under,
    Over,
}

/// The adaptive threshold: a fixed one would let queue-filling flows starve this one.
#[derive(Clone, Debug)]
pub(super) struct Threshold(f64);

impl Default for Threshold {
    fn default() -> Self {
        Threshold(FIRST_THRESHOLD)
    }
}

impl Threshold {
    pub(super) fn get(&self) -> f64 {
        self.0
    }

    /// Adapts to a modified trend, `elapsed` ms after the previous one.
    pub(super) fn adapt(&mut self, trend: f64, elapsed: f64) {
        let size = trend.abs();
        if size > self.0 + FAR {
            return;
        }
        let gain = if size < self.0 { DOWN } else { UP };
        self.0 += gain * (size - self.0) * elapsed.min(MAX_STEP_MS);
        self.0 = self.0.clamp(THRESHOLDS.0, THRESHOLDS.1);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Trend {
    /// (ms since the first arrival, smoothed delay), a ring.
    points: [(f64, f64); POINTS],
    count: usize,
    first: Option<f64>,
    accumulated: f64,
    smoothed: f64,
    slope: f64,
    threshold: Threshold,
    adapted: Option<f64>,
    over: Option<f64>,
    hits: u32,
    usage: Usage,
    /// The modified trend in ms.
    modified: f64,
}

impl Trend {
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The modified trend and the threshold it is compared with, in ms.
    pub(super) fn values(&self) -> (f64, f64) {
        (self.modified, self.threshold.get())
    }

    /// Handles a group that arrived at `arrived` ms.
    pub(super) fn update(&mut self, deltas: &Deltas, arrived: f64) {
        let since = arrived - *self.first.get_or_insert(arrived);
        self.accumulated += deltas.arrived - deltas.sent;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.accumulated;
        self.points[self.count % POINTS] = (since, self.smoothed);
        self.count += 1;
        let before = self.slope;
        if self.count >= POINTS
            && let Some(slope) = slope(&self.points)
        {
            self.slope = slope;
        }
        let deltas_seen = (self.count.min(MAX_DELTAS as usize)) as f64;
        self.detect(self.slope * deltas_seen * GAIN, before, deltas.sent, arrived);
    }

    fn detect(&mut self, trend: f64, slope_before: f64, sent: f64, arrived: f64) {
        self.modified = trend;
        let threshold = self.threshold.get();
        if trend > threshold {
            // When overuse began within the first group is unknown.
            let over = self.over.map_or(sent / 2.0, |over| over + sent);
            self.over = Some(over);
            self.hits += 1;
            if over > OVER_FOR && self.hits >= 2 && self.slope >= slope_before {
                self.usage = Usage::Over;
                self.over = Some(0.0);
                self.hits = 0;
            }
        } else {
            self.over = None;
            self.hits = 0;
            self.usage = if trend < -threshold { Usage::Under } else { Usage::Normal };
        }
        let elapsed = arrived - self.adapted.unwrap_or(arrived);
        self.threshold.adapt(trend, elapsed.max(0.0));
        self.adapted = Some(arrived);
    }
}

/// Slope of the line of least squares through `points`.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let over: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (under > 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_adapts_as_in_chromium() {
        // (trend, threshold after 50 ms at 12.5): 12.5 + 0.0087 * 7.5 * 50; 12.5 - 0.039 * 10.5 * 50 held at 6;
        // too far away.
        for (trend, after) in [(20.0, 15.7625), (2.0, 6.0), (30.0, 12.5)] {
            let mut threshold = Threshold::default();
            threshold.adapt(trend, 50.0);
            assert!((threshold.get() - after).abs() < 1e-9, "{trend}");
        }
        let mut threshold = Threshold::default();
        threshold.adapt(20.0, 5000.0);
        assert!((threshold.get() - (12.5 + 0.0087 * 7.5 * 100.0)).abs() < 1e-9);
    }

    #[test]
    fn a_line_has_its_slope() {
        let points: Vec<_> = (0..20).map(|x| (f64::from(x) * 30.0, f64::from(x) * 6.0 + 4.0)).collect();
        assert!((slope(&points).unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }

    /// Groups every 33 ms, of which each takes `more` ms longer than the one before.
    fn play(trend: &mut Trend, groups: u32, more: f64, at: &mut f64) -> Vec<Usage> {
        let step = |_| {
            *at += 33.0 + more;
            trend.update(&Deltas { sent: 33.0, arrived: 33.0 + more }, *at);
            trend.usage()
        };
        (0..groups).map(step).collect()
    }

    #[test]
    fn a_growing_queue_is_overuse_and_a_draining_one_underuse() {
        let (mut trend, mut at) = (Trend::default(), 0.0);
        assert!(play(&mut trend, 60, 0.0, &mut at).iter().all(|usage| *usage == Usage::Normal));
        let usages = play(&mut trend, 60, 3.0, &mut at);
        assert!(usages.contains(&Usage::Over));
        let usages = play(&mut trend, 60, -3.0, &mut at);
        assert_eq!(usages.last(), Some(&Usage::Under));
        let usages = play(&mut trend, 100, 0.0, &mut at);
        assert_eq!(usages.last(), Some(&Usage::Normal));
    }

    #[test]
    fn one_late_group_is_not_overuse() {
        let (mut trend, mut at) = (Trend::default(), 0.0);
        play(&mut trend, 60, 0.0, &mut at);
        trend.update(&Deltas { sent: 33.0, arrived: 38.0 }, at + 38.0);
        assert_eq!(trend.usage(), Usage::Normal);
    }
}
