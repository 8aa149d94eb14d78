//! Rate, bursts and window from the model.

use super::super::Quantum;
use super::{BbrMode, MIN_PACKETS, Machine};
use crate::{AckEvent, CaState};

/// Gain of the window, and its increment while probing.
const CWND_GAIN: f64 = 2.0;
const PROBE_CWND_GAIN: f64 = 2.25;
/// Gain of the rate while probing.
const UP_GAIN: f64 = 1.25;
/// Share of the bandwidth-delay product in flight in PROBE_RTT.
const PROBE_RTT_GAIN: f64 = 0.5;
/// Maximum burst in bytes: the largest segment of a network card, and the same less headers.
const MAX_BURST: f64 = 65_536.0;
const MAX_SEGMENT: f64 = 65_536.0 - 1.0 - 320.0;

impl Machine {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup => self.profile.params.startup_gain,
            BbrMode::Drain => self.profile.drain_gain,
            BbrMode::Down => self.profile.down_gain,
            BbrMode::Up => UP_GAIN,
            BbrMode::Cruise | BbrMode::Refill | BbrMode::ProbeRtt => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Up => PROBE_CWND_GAIN,
            BbrMode::ProbeRtt => self.profile.probe_rtt_cwnd_gain,
            _ => CWND_GAIN,
        }
    }

    pub(super) fn set_pacing(&mut self, gain: f64) {
        self.flow.set_pacing(self.bandwidth(), gain);
    }

    /// Bytes that may leave at once.
    pub(super) fn quantum(&self) -> f64 {
        let per_second = self.flow.pacing.bps() as f64 / 8.0;
        let bytes = match self.profile.quantum {
            Quantum::Draft => (per_second / 1000.0).min(MAX_BURST),
            Quantum::Linux => {
                let halvings = self
                    .min_rtt
                    .get()
                    .map_or(u64::MAX, |rtt| (rtt.ns() / 1000) >> 9);
                let short_path = if halvings < 32 {
                    MAX_BURST / (1u64 << halvings) as f64
                } else {
                    0.0
                };
                let bytes = (per_second / 1024.0 + short_path).min(MAX_SEGMENT);
                (bytes / self.flow.mss).floor() * self.flow.mss
            }
        };
        bytes.max(2.0 * self.flow.mss)
    }

    /// `gain` bandwidth-delay products; the initial window before any RTT.
    pub(super) fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        self.flow.bdp(bandwidth, self.min_rtt.get(), gain)
    }

    /// No less than required by bursts at sender, path and receiver.
    fn with_budget(&self, bytes: f64) -> f64 {
        let bytes = bytes
            .max(3.0 * self.quantum())
            .max(MIN_PACKETS * self.flow.mss);
        if self.mode == BbrMode::Up {
            bytes + 2.0 * self.flow.mss
        } else {
            bytes
        }
    }

    /// Bytes in flight for `gain` bandwidth-delay products.
    pub(super) fn target(&self, bandwidth: f64, gain: f64) -> f64 {
        self.with_budget(self.bdp(bandwidth, gain))
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bandwidth(), PROBE_RTT_GAIN)
            .max(MIN_PACKETS * self.flow.mss)
    }

    /// Saves the last good window, for the end of a recovery or of PROBE_RTT.
    pub(super) fn save_cwnd(&mut self) {
        self.flow.save_cwnd(self.mode == BbrMode::ProbeRtt);
    }

    /// At the end of a recovery the window is restored; the model's bounds apply below.
    pub(super) fn leave_recovery(&mut self, ack: &AckEvent<'_>) {
        let before = self.flow.prior;
        self.flow.prior = ack.phase;
        let calm = matches!(ack.phase, CaState::Open | CaState::Cwr);
        let restores = match before {
            CaState::Loss => ack.phase != CaState::Loss,
            CaState::Recovery => calm && self.profile.restore_after_recovery,
            CaState::Open | CaState::Cwr => false,
        };
        if restores {
            self.flow.cwnd = self.flow.cwnd.max(self.flow.prior_cwnd);
        }
    }

    pub(super) fn set_cwnd(&mut self, ack: &AckEvent<'_>) {
        let acked = ack.bytes.get() as f64;
        if acked > 0.0 {
            let extra = (self.flow).aggregated(self.bandwidth(), self.profile.aggregation_limit);
            let target = self.with_budget(self.bdp(self.bandwidth(), self.cwnd_gain()) + extra);
            let starting = match self.profile.startup_windows {
                Some(windows) => self.flow.cwnd < windows as f64 * self.flow.initial,
                None => (ack.delivered.get() as f64) < self.flow.initial,
            };
            self.flow.grow(acked, target, starting);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.flow.cwnd = self.flow.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    fn bound_cwnd(&mut self) {
        let bound = match self.mode {
            BbrMode::Startup | BbrMode::Drain => f64::INFINITY,
            BbrMode::Down | BbrMode::Refill | BbrMode::Up => self.bounds.long_term,
            BbrMode::Cruise | BbrMode::ProbeRtt => self.with_headroom(),
        };
        let bound = bound
            .min(self.bounds.short_term)
            .max(MIN_PACKETS * self.flow.mss);
        self.flow.cwnd = self.flow.cwnd.min(bound);
    }
}
