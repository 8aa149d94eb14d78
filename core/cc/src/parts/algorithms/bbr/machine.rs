//! BBR version 3: state machine and model. The differences between its two descriptions are in [`BbrProfile`]; their
//! common part is here.
//!
//! `cycle` implements the states of PROBE_BW, `model` the bounds learned from losses, `control` rate and window, `ecn`
//! the published code's reaction to marks.

mod control;
mod cycle;
mod ecn;
mod model;
#[cfg(test)]
mod tests;

use super::{BbrFlow, BbrProfile, MIN_PACKETS, MaxFilter, Memory, MinRtt, bandwidth, whole};
use crate::{
    AckEvent, Allowance, CongestionControl, Fields, LossEvent, RateSample, SendEvent, Setup,
    SpuriousLossEvent,
};
use ecn::BbrEcn;
use model::{Bounds, Latest, Probe, Undo};
use narrows_units::{Bytes, Span, Stream, Time};

/// Time in PROBE_RTT with little in flight.
const PROBE_RTT_TIME: Span = Span::from_ms(200);

/// State of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BbrMode {
    /// Doubles the rate each round.
    Startup,
    /// Empties the queue built by STARTUP.
    Drain,
    /// PROBE_BW: empties the queue of the last probe.
    Down,
    /// PROBE_BW: sends at the bandwidth, with headroom.
    Cruise,
    /// PROBE_BW: fills the pipe before a probe.
    Refill,
    /// PROBE_BW: probes for more bandwidth.
    Up,
    /// Probes for a lower RTT.
    ProbeRtt,
}

impl BbrMode {
    fn in_probe_bw(self) -> bool {
        matches!(
            self,
            BbrMode::Down | BbrMode::Cruise | BbrMode::Refill | BbrMode::Up
        )
    }

    /// True if losses are caused by the flow's own probing, and hence no reason to lower the short-term bounds.
    fn probes(self) -> bool {
        matches!(self, BbrMode::Startup | BbrMode::Refill | BbrMode::Up)
    }

    fn name(self) -> &'static str {
        match self {
            BbrMode::Startup => "startup",
            BbrMode::Drain => "drain",
            BbrMode::Down => "probe_bw_down",
            BbrMode::Cruise => "probe_bw_cruise",
            BbrMode::Refill => "probe_bw_refill",
            BbrMode::Up => "probe_bw_up",
            BbrMode::ProbeRtt => "probe_rtt",
        }
    }
}

/// A delivery-rate sample in the model's units; all zero if an acknowledgement has none.
#[derive(Clone, Copy, Debug, Default)]
struct BbrSample {
    bandwidth: f64,
    delivered: f64,
    app_limited: bool,
    /// In flight when the sampled packet was sent, and lost since.
    in_flight: f64,
    lost: f64,
}

impl BbrSample {
    fn new(rate: &RateSample) -> Self {
        BbrSample {
            bandwidth: bandwidth(rate),
            delivered: rate.delivered.get() as f64,
            app_limited: rate.app_limited,
            in_flight: rate.in_flight_at_send.get() as f64,
            lost: rate.lost.get() as f64,
        }
    }
}

/// BBR version 3.
pub struct Machine {
    profile: BbrProfile,
    flow: BbrFlow,
    random: Stream,

    mode: BbrMode,
    /// Largest bandwidth of the last cycle of PROBE_BW and of the current one.
    bandwidths: [f64; 2],
    drain_start: u64,
    min_rtt: MinRtt,
    recent_rtt: MinRtt,
    latest: Latest,
    bounds: Bounds,
    probe: Probe,
    undo: Undo,
    ecn: BbrEcn,
    /// Losses of the current round of STARTUP.
    startup_losses: u32,
    delivered: Bytes,
}

impl Machine {
    /// A flow in STARTUP.
    pub fn new(profile: BbrProfile, setup: Setup) -> Self {
        let memory = if profile.aggregation_slots {
            Memory::slots()
        } else {
            Memory::Window(MaxFilter::new(profile.aggregation_rounds))
        };
        Machine {
            flow: BbrFlow::new(&setup, profile.params.startup_gain, memory),
            random: setup.random,
            mode: BbrMode::Startup,
            bandwidths: [0.0; 2],
            drain_start: 0,
            min_rtt: MinRtt::new(profile.params.min_rtt_window, setup.now),
            recent_rtt: MinRtt::new(profile.params.probe_rtt_interval, setup.now),
            latest: Latest::default(),
            bounds: Bounds::NONE,
            probe: Probe::new(setup.now),
            undo: Undo::default(),
            ecn: BbrEcn::new(profile.ecn && setup.ecn),
            startup_losses: 0,
            delivered: Bytes::ZERO,
            profile,
        }
    }

    /// Largest bandwidth of two cycles, in bytes per second.
    fn max_bandwidth(&self) -> f64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    /// The model's bandwidth.
    fn bandwidth(&self) -> f64 {
        self.max_bandwidth().min(self.bounds.bandwidth)
    }

    /// Bytes in flight for the tests of the state machine.
    fn in_flight(&self, now: Time, in_flight: Bytes) -> f64 {
        let mut bytes = in_flight.get() as f64;
        if !self.profile.at_departure {
            return bytes;
        }
        if self.pacing_gain() > 1.0 {
            bytes += self.quantum();
        }
        self.flow
            .departures
            .in_flight_then(now, bytes, self.bandwidth())
    }

    fn update_aggregation(&mut self, ack: &AckEvent<'_>) {
        let window = if self.flow.full.reached() {
            self.profile.aggregation_rounds
        } else {
            1
        };
        self.flow.update_aggregation(ack, self.bandwidth(), window);
    }

    fn check_full_pipe(&mut self, sample: &BbrSample) {
        let looks = self.flow.round_start || self.profile.growth_at_any_ack;
        if looks && !self.flow.full.now() && !sample.app_limited {
            self.flow
                .full
                .observe(sample.bandwidth, self.flow.round_start);
        }
    }

    fn check_startup(&mut self) {
        if self.mode == BbrMode::Startup && self.flow.full.reached() {
            self.mode = BbrMode::Drain;
            self.drain_start = self.flow.rounds.count();
            if self.profile.tidy_bounds {
                self.latest.reset();
            }
        }
    }

    fn check_drain(&mut self, ack: &AckEvent<'_>) {
        if self.mode != BbrMode::Drain {
            return;
        }
        let drained =
            self.in_flight(ack.now, ack.in_flight) <= self.target(self.max_bandwidth(), 1.0);
        let rounds = self.flow.rounds.count() - self.drain_start;
        if drained
            || self
                .profile
                .drain_rounds
                .is_some_and(|limit| rounds >= limit)
        {
            self.start_down(ack.now);
        }
    }

    fn update_rtt(&mut self, ack: &AckEvent<'_>) {
        let expired = self.recent_rtt.expired(ack.now);
        let take_delayed = self.profile.take_delayed_rtt;
        self.flow.offer_rtt(ack, &mut self.recent_rtt, take_delayed);
        self.min_rtt.adopt(ack.now, &self.recent_rtt);
        if expired && !self.flow.restarted && self.mode != BbrMode::ProbeRtt {
            self.save_cwnd();
            self.mode = BbrMode::ProbeRtt;
            self.flow.probe_rtt_end = None;
            self.probe.stop();
            self.flow.rounds.restart(ack.delivered);
        }
        if self.mode == BbrMode::ProbeRtt {
            let few = self.probe_rtt_cwnd();
            if self.flow.handle_probe_rtt(ack, few, PROBE_RTT_TIME) {
                self.check_probe_rtt_end(ack.now);
            }
        }
        self.flow.on_delivered(ack);
    }

    fn check_probe_rtt_end(&mut self, now: Time) {
        if !self.flow.ends_probe_rtt(now, &mut self.recent_rtt) {
            return;
        }
        self.bounds.reset_short_term();
        if self.flow.full.reached() {
            // The data in flight is already below the path's capacity.
            self.start_down(now);
            self.start_cruise();
        } else {
            self.mode = BbrMode::Startup;
        }
    }
}

impl CongestionControl for Machine {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.delivered = ack.delivered;
        let sample = ack.rate.as_ref().map(BbrSample::new).unwrap_or_default();
        self.flow.round_start = false;
        if let Some(rate) = &ack.rate {
            self.flow.round_start = self.flow.rounds.update(rate.prior_delivered, ack.delivered);
            self.probe.rounds += u64::from(self.flow.round_start);
            self.latest
                .take(&sample, rate.prior_delivered, ack.delivered);
        } else {
            self.latest.round_start = false;
        }
        self.update_ecn(ack);
        self.leave_recovery(ack);
        if ack.rate.is_some() {
            self.take_bandwidth(&sample);
            self.update_bounds();
            self.update_aggregation(ack);
            self.check_startup_losses(ack, &sample);
            self.check_full_pipe(&sample);
        }
        self.check_startup();
        self.check_drain(ack);
        self.update_cycle(ack, &sample);
        self.update_rtt(ack);
        if ack.rate.is_some() {
            self.latest.advance(&sample);
        }
        self.flow.on_first_rtt(ack);
        self.set_pacing(self.pacing_gain());
        self.set_cwnd(ack);
    }

    fn on_duplicate(&mut self, ack: &AckEvent<'_>) {
        self.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.handle_losses(loss);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLossEvent) {
        self.undo_losses(spurious.now);
    }

    fn on_send(&mut self, send: &SendEvent) {
        if self.flow.restarts(send) {
            if self.mode.in_probe_bw() {
                self.set_pacing(1.0);
            } else if self.mode == BbrMode::ProbeRtt {
                self.check_probe_rtt_end(send.now);
            }
        }
        self.flow
            .departures
            .sent(send.now, send.bytes, self.flow.pacing);
    }

    fn allowance(&self) -> Allowance {
        self.flow.allowance(whole(self.quantum()))
    }

    fn holds_back(&self) -> bool {
        self.mode == BbrMode::ProbeRtt
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = self.mode.name();
        let rtt = self.min_rtt.get().map_or(0.0, Span::secs);
        fields.values.extend([
            ("bandwidth_bps", self.bandwidth() * 8.0),
            ("max_bandwidth_bps", self.max_bandwidth() * 8.0),
            ("bbr_min_rtt_ms", rtt * 1e3),
            ("pacing_gain", self.pacing_gain()),
            ("cwnd_gain", self.cwnd_gain()),
            ("extra_acked_bytes", self.flow.aggregation.extra()),
        ]);
        // Bounds that are not set have no value.
        let bounds = [
            ("bandwidth_shortterm_bps", self.bounds.bandwidth * 8.0),
            ("inflight_shortterm_bytes", self.bounds.short_term),
            ("inflight_longterm_bytes", self.bounds.long_term),
        ];
        fields
            .values
            .extend(bounds.into_iter().filter(|(_, value)| value.is_finite()));
    }
}
