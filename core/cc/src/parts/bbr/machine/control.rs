//! Rate, bursts and window from the model.

use super::super::{Quantum, bdp, rate};
use super::{BbrMode, MIN_PACKETS, Machine};
use crate::{AckEvent, CaState};
use narrows_units::{Rate, Span};

/// RTT assumed for the first pacing rate.
pub(super) const FIRST_RTT: Span = Span::from_ms(1);
/// Gain of the window, and what is added to it while probing.
const CWND_GAIN: f64 = 2.0;
const PROBE_CWND_GAIN: f64 = 2.25;
/// Gain of the rate while probing.
const UP_GAIN: f64 = 1.25;
/// Share of the bandwidth-delay product in flight in PROBE_RTT.
const PROBE_RTT_GAIN: f64 = 0.5;
/// The rate stays one percent below the bandwidth, so that queues can drain.
const MARGIN: f64 = 0.99;
/// Most bytes in a burst: the largest segment of a network card, and with room for headers.
const MAX_BURST: f64 = 65_536.0;
const MAX_SEGMENT: f64 = 65_536.0 - 1.0 - 320.0;

impl Machine {
    /// The rate that sends an initial window in a round, with the gain of STARTUP.
    pub(super) fn first_pacing(&self, rtt: Span) -> Rate {
        let rtt = rtt.max(Span::from_us(1)).secs();
        rate(self.cwnd / rtt * self.profile.startup_gain * MARGIN)
    }

    pub(super) fn pacing_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup => self.profile.startup_gain,
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
        let new = rate(self.bandwidth() * gain * MARGIN);
        // Until the pipe is full the samples are too low to slow down for.
        if self.full.reached() || new > self.pacing {
            self.pacing = new;
        }
    }

    /// Bytes that may leave at once.
    pub(super) fn quantum(&self) -> f64 {
        let per_second = self.pacing.bps() as f64 / 8.0;
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
                (bytes / self.mss).floor() * self.mss
            }
        };
        bytes.max(2.0 * self.mss)
    }

    /// `gain` bandwidth-delay products; the initial window before any RTT.
    pub(super) fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        match self.min_rtt.get() {
            None => self.initial,
            Some(rtt) => gain * bdp(bandwidth, rtt),
        }
    }

    /// At least what bursts at sender, path and receiver need.
    fn with_budget(&self, bytes: f64) -> f64 {
        let bytes = bytes.max(3.0 * self.quantum()).max(MIN_PACKETS * self.mss);
        if self.mode == BbrMode::Up {
            bytes + 2.0 * self.mss
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
            .max(MIN_PACKETS * self.mss)
    }

    /// Remembers the last window that was good, for the end of a recovery or of PROBE_RTT.
    pub(super) fn save_cwnd(&mut self) {
        let good =
            matches!(self.prior, CaState::Open | CaState::Cwr) && self.mode != BbrMode::ProbeRtt;
        self.prior_cwnd = if good {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    /// At the end of a recovery the window comes back; the model bounds it below.
    pub(super) fn leave_recovery(&mut self, ack: &AckEvent<'_>) {
        let before = self.prior;
        self.prior = ack.phase;
        let calm = matches!(ack.phase, CaState::Open | CaState::Cwr);
        let restores = match before {
            CaState::Loss => ack.phase != CaState::Loss,
            CaState::Recovery => calm && self.profile.restore_after_recovery,
            CaState::Open | CaState::Cwr => false,
        };
        if restores {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
    }

    pub(super) fn set_cwnd(&mut self, ack: &AckEvent<'_>) {
        let acked = ack.bytes.get() as f64;
        if acked > 0.0 {
            let aggregated = bdp(self.bandwidth(), self.profile.aggregation_limit);
            let extra = self.aggregation.extra().min(aggregated);
            let target = self.with_budget(self.bdp(self.bandwidth(), self.cwnd_gain()) + extra);
            let starting = match self.profile.startup_windows {
                Some(windows) => self.cwnd < windows as f64 * self.initial,
                None => (ack.delivered.get() as f64) < self.initial,
            };
            if self.full.reached() {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || starting {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_PACKETS * self.mss);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
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
            .max(MIN_PACKETS * self.mss);
        self.cwnd = self.cwnd.min(bound);
    }
}
