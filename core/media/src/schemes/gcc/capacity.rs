//! The link's capacity, from the rates that arrived when the path was overused. In kbit/s, as the variance needs it.

const WEIGHT: f64 = 0.05;
/// Bounds of the variance, in multiples of the estimate.
const VARIANCES: (f64, f64) = (0.4, 2.5);

#[derive(Clone, Debug)]
pub(super) struct Capacity {
    kbps: Option<f64>,
    variance: f64,
}

impl Capacity {
    pub(super) fn new() -> Self {
        Capacity {
            kbps: None,
            variance: VARIANCES.0,
        }
    }

    /// In bit/s.
    pub(super) fn bps(&self) -> Option<f64> {
        self.kbps.map(|kbps| kbps * 1e3)
    }

    /// Lower and upper bound in bit/s: three standard deviations.
    fn bounds(&self) -> (f64, f64) {
        let Some(kbps) = self.kbps else { return (0.0, f64::INFINITY) };
        let three = 3.0 * (self.variance * kbps).sqrt();
        ((kbps - three).max(0.0) * 1e3, (kbps + three) * 1e3)
    }

    /// The arrival rate is `bps`: if it exceeds the upper bound, the estimate is reset.
    pub(super) fn seen(&mut self, bps: f64) {
        if bps > self.bounds().1 {
            self.kbps = None;
        }
    }

    /// The arrival rate was `bps` while the path was overused.
    pub(super) fn overused(&mut self, bps: f64) {
        if bps < self.bounds().0 {
            self.kbps = None;
        }
        let sample = bps / 1e3;
        let Some(kbps) = self.kbps else {
            self.kbps = Some(sample);
            return;
        };
        let kbps = (1.0 - WEIGHT) * kbps + WEIGHT * sample;
        let error = kbps - sample;
        self.variance = (1.0 - WEIGHT) * self.variance + WEIGHT * error * error / kbps.max(1.0);
        self.variance = self.variance.clamp(VARIANCES.0, VARIANCES.1);
        self.kbps = Some(kbps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_forgotten_when_the_link_has_changed() {
        let mut capacity = Capacity::new();
        for _ in 0..10 {
            capacity.overused(1e6);
        }
        assert!((capacity.bps().unwrap() - 1e6).abs() < 1.0);
        // Three standard deviations: 3 * sqrt(0.4 * 1000) = 60 kbit/s.
        capacity.seen(1.059e6);
        assert!(capacity.bps().is_some());
        capacity.seen(1.061e6);
        assert_eq!(capacity.bps(), None);
        capacity.overused(1e6);
        capacity.overused(0.5e6);
        assert_eq!(capacity.bps(), Some(0.5e6), "far below: it starts anew");
    }
}
