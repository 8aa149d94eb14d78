//! The arrival rate, smoothed with a weight that depends on each sample's deviation.

/// First window and later ones in ms.
const FIRST: f64 = 500.0;
const LATER: f64 = 150.0;
/// Uncertainty of a sample per relative distance from the estimate.
const SURPRISE: f64 = 10.0;
const VARIANCE: f64 = 50.0;
/// Variance that each step adds.
const DRIFT: f64 = 5.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Acked {
    at: Option<f64>,
    window: f64,
    bytes: f64,
    estimate: Option<f64>,
    variance: f64,
}

impl Acked {
    pub(super) fn new() -> Self {
        Acked {
            variance: VARIANCE,
            ..Acked::default()
        }
    }

    /// The rate in bit/s; `None` before the first window is complete.
    pub(super) fn bps(&self) -> Option<f64> {
        self.estimate
    }

    /// `bytes` arrived at `at` ms by the receiver's clock.
    pub(super) fn update(&mut self, at: f64, bytes: f64) {
        if let Some(sample) = self.sample(at, bytes) {
            let Some(estimate) = self.estimate else {
                self.estimate = Some(sample);
                return;
            };
            let uncertainty = SURPRISE * (sample - estimate).abs() / estimate.max(1.0);
            let (seen, expected) = (uncertainty * uncertainty, self.variance + DRIFT);
            let together = seen + expected;
            self.estimate = Some((seen * estimate + expected * sample) / together);
            self.variance = seen * expected / together;
        }
    }

    fn sample(&mut self, at: f64, bytes: f64) -> Option<f64> {
        let length = if self.estimate.is_none() { FIRST } else { LATER };
        let mut sample = None;
        match self.at {
            Some(before) if at >= before => {
                self.window += at - before;
                // After a silence longer than a window its bytes do not form a sample.
                if at - before > length {
                    self.bytes = 0.0;
                    self.window %= length;
                }
            }
            Some(_) => (self.window, self.bytes) = (0.0, 0.0),
            None => {}
        }
        self.at = Some(at);
        if self.window >= length {
            sample = Some(8.0 * self.bytes / self.window * 1e3);
            self.window -= length;
            self.bytes = 0.0;
        }
        self.bytes += bytes;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_a_rate_and_follows_a_change() {
        let mut acked = Acked::new();
        let mut at = 0.0;
        let mut play = |acked: &mut Acked, bytes: f64, ms: u32| {
            for _ in 0..ms / 10 {
                at += 10.0;
                acked.update(at, bytes);
            }
        };
        play(&mut acked, 1250.0, 400);
        assert_eq!(acked.bps(), None, "500 ms first");
        play(&mut acked, 1250.0, 2000);
        assert!((acked.bps().unwrap() / 1e6 - 1.0).abs() < 0.01, "{acked:?}");
        play(&mut acked, 625.0, 2000);
        assert!((acked.bps().unwrap() / 0.5e6 - 1.0).abs() < 0.1, "{acked:?}");
    }

    #[test]
    fn a_silence_is_no_sample() {
        let mut acked = Acked::new();
        for step in 0..200 {
            acked.update(f64::from(step) * 10.0, 1250.0);
        }
        let before = acked.bps().unwrap();
        acked.update(60_000.0, 1250.0);
        assert_eq!(acked.bps(), Some(before));
    }
}
