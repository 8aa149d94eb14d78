//! Variants of PROBE_BW: Linux's, and those of schemes based on BBR.

/// Variants of PROBE_BW.
#[derive(Clone, Debug)]
pub(in crate::schemes) struct Probing {
    /// Gains of its phases: one that sends more, one that sends less, and others.
    pub(in crate::schemes) gains: Vec<f64>,
    /// True if the phase that sends less lasts until the queue is empty, instead of at most a round trip.
    pub(in crate::schemes) until_drained: bool,
    /// Rounds over which the bandwidth is the maximum.
    pub(in crate::schemes) rounds: u64,
}

impl Probing {
    /// Linux's gain of the phase that sends more.
    pub(in crate::schemes) const LINUX_GAIN: f64 = 1.25;

    /// Linux's phases with this gain in the one that sends more; the next one sends as much less, so that the mean is 1.
    pub(in crate::schemes) fn linux(gain: f64) -> Self {
        Probing { gains: vec![gain, 2.0 - gain, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], until_drained: false, rounds: 10 }
    }
}
