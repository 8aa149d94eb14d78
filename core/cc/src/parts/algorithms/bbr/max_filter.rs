//! The maximum over a sliding window in constant space.

/// Maximum of the last rounds: the three best candidates, each later than the previous, represent the whole window
/// (Kathleen Nichols's algorithm, as in Linux lib/win_minmax.c). It may miss a value between two candidates that would
/// have been the maximum for a while, never more than half a window back.
#[derive(Clone, Copy, Debug)]
pub struct MaxFilter {
    window: u64,
    /// Best, second and third best: (round, value).
    best: [(u64, f64); 3],
}

impl MaxFilter {
    /// A filter over `window` rounds before the current one, without values.
    pub fn new(window: u64) -> Self {
        MaxFilter {
            window,
            best: [(0, 0.0); 3],
        }
    }

    /// The maximum; 0 before any value.
    #[inline]
    pub fn max(&self) -> f64 {
        self.best[0].1
    }

    /// Sets the length of the window.
    #[inline]
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Discards everything except `value`.
    pub fn reset(&mut self, round: u64, value: f64) {
        self.best = [(round, value); 3];
    }

    /// Adds `value`, measured in `round` (rounds never decrease).
    pub fn update(&mut self, round: u64, value: f64) {
        let new = (round, value);
        let [first, second, third] = self.best;
        if value >= first.1 || round - third.0 > self.window {
            self.best = [new; 3];
            return;
        }
        if value >= second.1 {
            self.best = [first, new, new];
        } else if value >= third.1 {
            self.best = [first, second, new];
        }
        let [first, second, third] = self.best;
        let age = round - first.0;
        if age > self.window {
            // The best is too old: the next ones move up, twice if need be.
            self.best = [second, third, new];
            if round - second.0 > self.window {
                self.best = [third, new, new];
            }
        } else if second.0 == first.0 && age > self.window / 4 {
            // A quarter of the window has passed without a second candidate: take a later one, so that a recent value
            // is available when the best expires.
            self.best = [first, new, new];
        } else if third.0 == second.0 && age > self.window / 2 {
            self.best = [first, second, new];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_for_the_window_and_then_gives_way_to_later_values() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, 100.0);
        for round in 1..=10 {
            filter.update(round, 50.0 - round as f64);
            assert_eq!(filter.max(), 100.0, "round {round}");
        }
        // The best of later quarters of the window is available.
        filter.update(11, 30.0);
        assert!((40.0..50.0).contains(&filter.max()), "{}", filter.max());
        filter.update(12, 60.0);
        assert_eq!(filter.max(), 60.0);
    }

    #[test]
    fn it_never_exceeds_the_true_maximum_and_keeps_at_least_half_a_window() {
        let mut stream = narrows_units::Stream::new(3, "values");
        let mut filter = MaxFilter::new(10);
        let mut seen: Vec<f64> = vec![];
        for round in 0..5_000u64 {
            let value = stream.below(1_000) as f64;
            seen.push(value);
            filter.update(round, value);
            let since = |rounds: usize| {
                let from = seen.len().saturating_sub(rounds);
                seen[from..].iter().fold(0.0f64, |a, b| a.max(*b))
            };
            assert!(filter.max() <= since(11), "round {round}");
            assert!(filter.max() >= since(6), "round {round}");
        }
    }

    #[test]
    fn a_long_silence_forgets_all() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, 100.0);
        filter.update(50, 3.0);
        assert_eq!(filter.max(), 3.0);
    }
}
