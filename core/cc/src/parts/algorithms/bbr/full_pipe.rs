//! Detection of a full pipe: the bandwidth has stopped growing despite a higher sending rate.

/// Minimum growth factor.
const GROWTH: f64 = 1.25;
/// Rounds without such growth after which the pipe is full.
const ROUNDS: u32 = 3;

/// The estimator that ends STARTUP and, in later versions, each probe for bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    bandwidth: f64,
    rounds: u32,
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// True if the bandwidth has stopped growing since the last [`FullPipe::reset`].
    #[inline]
    pub fn now(&self) -> bool {
        self.now
    }

    /// True if it ever has.
    #[inline]
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// The pipe is full for another reason (losses, marks).
    pub fn set_reached(&mut self) {
        self.reached = true;
    }

    /// Resets [`FullPipe::reached`].
    pub fn set_not_reached(&mut self) {
        self.reached = false;
    }

    /// Restarts the estimate; the pipe remains full once it has been.
    pub fn reset(&mut self) {
        self.bandwidth = 0.0;
        self.rounds = 0;
        self.now = false;
    }

    /// Restarts the estimate from `bandwidth`.
    pub fn restart(&mut self, bandwidth: f64) {
        self.reset();
        self.bandwidth = bandwidth;
    }

    /// Compares `bandwidth`; at the end of a round its lack of growth counts.
    #[inline]
    pub fn observe(&mut self, bandwidth: f64, round_start: bool) {
        if bandwidth >= GROWTH * self.bandwidth {
            self.restart(bandwidth);
        } else if round_start {
            self.rounds += 1;
            self.now = self.rounds >= ROUNDS;
            self.reached |= self.now;
        }
    }

    /// The bandwidth from which growth is measured, and rounds without growth.
    pub fn estimate(&self) -> (f64, u32) {
        (self.bandwidth, self.rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_flat_rounds_fill_the_pipe() {
        // Bandwidths of the rounds of STARTUP (Cardwell et al. 2016): reached at the third flat one.
        let mut pipe = FullPipe::default();
        let reached: Vec<bool> = [10.0, 20.0, 40.0, 40.0, 40.0, 40.0]
            .into_iter()
            .map(|bandwidth| {
                pipe.observe(bandwidth, true);
                pipe.reached()
            })
            .collect();
        assert_eq!(reached, [false, false, false, false, false, true]);
    }

    #[test]
    fn a_quarter_more_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        for bandwidth in [100.0, 110.0, 124.0, 125.0, 130.0, 140.0] {
            pipe.observe(bandwidth, true);
            assert!(!pipe.reached());
        }
        pipe.observe(150.0, true);
        assert!(pipe.now() && pipe.reached());
        pipe.reset();
        assert!(!pipe.now() && pipe.reached());
    }
}
