//! The cycle of PROBE_BW: down, cruise, refill, up.

use super::model::Feedback;
use super::{BbrMode, BbrSample, Machine};
use crate::{AckEvent, CaState};
use narrows_units::{Span, Time};

/// Maximum wait between probes in rounds: as long as a Reno flow with the bandwidth-delay product of 25 Mbit/s and 30
/// ms needs between losses.
const MAX_ROUNDS: f64 = 63.0;
/// Minimum wait in time, and the range of the random addition.
const BASE_WAIT: Span = Span::from_ms(2_000);
const RANDOM_WAIT_NS: u64 = 1_000_000_000;
/// Doublings of the growth of the long-term bound.
const MAX_DOUBLINGS: u32 = 30;

impl Machine {
    pub(super) fn start_down(&mut self, now: Time) {
        self.latest.reset();
        self.ecn.reset_cycle();
        self.probe.up_per_packet = f64::INFINITY;
        self.pick_wait();
        self.probe.since = now;
        self.probe.stop();
        self.flow.rounds.restart(self.delivered);
        self.mode = BbrMode::Down;
    }

    /// Time until the next probe; randomised, so that flows do not probe together.
    fn pick_wait(&mut self) {
        self.probe.rounds = self.random.below(2);
        self.probe.wait = BASE_WAIT + Span::from_ns(self.random.below(RANDOM_WAIT_NS));
    }

    pub(super) fn start_cruise(&mut self) {
        if self.profile.tidy_bounds && self.bounds.short_term.is_finite() {
            self.bounds.short_term = self.bounds.short_term.min(self.bounds.long_term);
        }
        self.mode = BbrMode::Cruise;
    }

    /// Forgets the short-term bounds and fills the pipe; the long-term bound will grow by
    /// 2^`doublings` packets in the first round of the probe.
    pub(super) fn start_refill(&mut self, _now: Time, doublings: u32) {
        self.bounds.reset_short_term();
        self.probe.up_rounds = doublings;
        self.probe.up_acked = 0.0;
        self.probe.precautionary = false;
        self.probe.feedback = Feedback::Refilling;
        self.flow.rounds.restart(self.delivered);
        self.mode = BbrMode::Refill;
    }

    fn start_up(&mut self, sample: &BbrSample) {
        self.probe.feedback = Feedback::Starting;
        self.flow.rounds.restart(self.delivered);
        self.flow.full.restart(sample.bandwidth);
        self.mode = BbrMode::Up;
        self.raise_slope();
    }

    /// The long-term bound grows by twice as many packets in each round.
    fn raise_slope(&mut self) {
        let growth = (1u64 << self.probe.up_rounds) as f64;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(MAX_DOUBLINGS);
        self.probe.up_per_packet = (self.flow.cwnd / growth).max(self.flow.mss);
    }

    pub(super) fn update_cycle(&mut self, ack: &AckEvent<'_>, sample: &BbrSample) {
        if !self.flow.full.reached() || self.adapt_long_term(ack, sample) {
            return;
        }
        let in_flight = if self.profile.at_departure {
            self.in_flight(ack.now, ack.in_flight_before)
        } else {
            ack.in_flight.get() as f64
        };
        match self.mode {
            BbrMode::Down => {
                if !self.probe_if_due(ack) && self.time_to_cruise(in_flight) {
                    self.start_cruise();
                }
            }
            BbrMode::Cruise => {
                self.probe_if_due(ack);
            }
            BbrMode::Refill if self.flow.round_start => {
                self.probe.samples = true;
                self.start_up(sample);
            }
            BbrMode::Up => {
                if self.time_to_go_down(ack, in_flight, sample) {
                    // No high loss yet: losses become known one round later.
                    self.probe.too_high = false;
                    self.start_down(ack.now);
                }
            }
            BbrMode::Refill | BbrMode::Startup | BbrMode::Drain | BbrMode::ProbeRtt => {}
        }
    }

    /// Follows a probe's acknowledgements and moves the long-term bound. Returns whether a transition was made.
    fn adapt_long_term(&mut self, ack: &AckEvent<'_>, sample: &BbrSample) -> bool {
        if self.flow.round_start {
            match self.probe.feedback {
                Feedback::Starting => self.probe.feedback = Feedback::Arriving,
                Feedback::Stopping => {
                    self.probe.samples = false;
                    self.probe.feedback = Feedback::None;
                    if self.mode.in_probe_bw() {
                        if !sample.app_limited {
                            self.advance_bandwidth();
                        }
                        if self.probe.precautionary && !self.probe.too_high {
                            // A whole round at the bound was safe: probe in earnest.
                            self.start_refill(ack.now, 0);
                            return true;
                        }
                    }
                }
                Feedback::None | Feedback::Refilling | Feedback::Arriving => {}
            }
        }
        if self.sample_too_high(sample) {
            if self.probe.samples && self.profile.judge_delivered {
                self.handle_too_high(ack.now, sample.in_flight, sample.app_limited);
            }
        } else if self.bounds.long_term.is_finite() {
            // An amount in flight without high loss is safe.
            self.bounds.long_term = self.bounds.long_term.max(sample.in_flight);
            if self.mode == BbrMode::Up {
                self.raise_long_term(ack);
            }
        }
        false
    }

    fn raise_long_term(&mut self, ack: &AckEvent<'_>) {
        if !ack.cwnd_limited || self.flow.cwnd < self.bounds.long_term {
            return;
        }
        self.probe.up_acked += ack.bytes.get() as f64;
        if self.probe.up_acked >= self.probe.up_per_packet {
            let packets = (self.probe.up_acked / self.probe.up_per_packet).floor();
            self.probe.up_acked -= packets * self.probe.up_per_packet;
            self.bounds.long_term += packets * self.flow.mss;
        }
        if self.flow.round_start {
            self.raise_slope();
        }
    }

    /// Begins a probe if its time has come, by the clock or by rounds.
    fn probe_if_due(&mut self, ack: &AckEvent<'_>) -> bool {
        let calm = ack.phase == CaState::Open && !self.latest.loss_in_cycle;
        if calm && self.ecn.marked_in_cycle() && self.bounds.long_term.is_finite() {
            // Marks have ceased without losses: other flows may have left, so probe at once and in large steps.
            let packets = (self.bounds.long_term / self.flow.mss * Machine::ECN_REPROBE) as u64;
            self.start_refill(ack.now, packets.max(1).ilog2());
            return true;
        }
        let rounds = (self.target_in_flight() / self.flow.mss).min(MAX_ROUNDS);
        let due =
            ack.now.since(self.probe.since) > self.probe.wait || self.probe.rounds as f64 >= rounds;
        if due {
            self.start_refill(ack.now, 0);
        }
        due
    }

    fn time_to_cruise(&self, in_flight: f64) -> bool {
        in_flight <= self.with_headroom() && in_flight <= self.target(self.max_bandwidth(), 1.0)
    }

    fn time_to_go_down(&mut self, ack: &AckEvent<'_>, in_flight: f64, sample: &BbrSample) -> bool {
        if self.probe.too_high && in_flight >= self.bounds.long_term {
            // The last probe lost too much at this bound: first check whether it is safe now.
            self.probe.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.flow.cwnd >= self.bounds.long_term {
            // The bound, not the path, limits the bandwidth.
            self.flow.full.restart(sample.bandwidth);
            return false;
        }
        self.flow.full.now()
    }
}
