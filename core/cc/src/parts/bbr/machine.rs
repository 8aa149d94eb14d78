//! BBR version 3: state machine and model. What its two descriptions do differently is in
//! [`Profile`]; what they share is here.
//!
//! `cycle` has the states of PROBE_BW, `model` what losses teach, `control` rate and window, `ecn` the
//! marks that the published code reacts to.

mod control;
mod cycle;
mod ecn;
mod model;
#[cfg(test)]
mod tests;

use super::{
    Aggregation, BbrProfile, Departures, FullPipe, MaxFilter, Memory, MinRtt, Rounds, bandwidth,
};
use crate::{
    AckEvent, Allowance, CaState, CongestionControl, Fields, LossEvent, RateSample, SendEvent,
    Setup, SpuriousLossEvent,
};
use ecn::BbrEcn;
use model::{Bounds, Latest, Probe, Undo};
use narrows_units::{Bytes, Rate, Span, Stream, Time};

/// Smallest window in packets: two on the way there, two acknowledgements on the way back.
const MIN_PACKETS: f64 = 4.0;
/// Time in PROBE_RTT with little in flight.
const PROBE_RTT_TIME: Span = Span::from_ms(200);

/// State of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BbrMode {
    /// Doubles the rate each round.
    Startup,
    /// Empties the queue that STARTUP has made.
    Drain,
    /// PROBE_BW: empties the queue of the last probe.
    Down,
    /// PROBE_BW: sends at the bandwidth, with headroom.
    Cruise,
    /// PROBE_BW: fills the pipe before a probe.
    Refill,
    /// PROBE_BW: looks for more bandwidth.
    Up,
    /// Looks for a lower RTT.
    ProbeRtt,
}

impl BbrMode {
    fn in_probe_bw(self) -> bool {
        matches!(
            self,
            BbrMode::Down | BbrMode::Cruise | BbrMode::Refill | BbrMode::Up
        )
    }

    /// True if losses are the flow's own doing, and hence no reason for lower short-term bounds.
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

/// A delivery-rate sample in the model's units; all zero where an acknowledgement brings none.
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
    mss: f64,
    initial: f64,
    random: Stream,

    mode: BbrMode,
    rounds: Rounds,
    round_start: bool,
    /// Largest bandwidth of the last cycle of PROBE_BW and of the current one.
    bandwidths: [f64; 2],
    full: FullPipe,
    drain_start: u64,
    min_rtt: MinRtt,
    recent_rtt: MinRtt,
    aggregation: Aggregation,
    departures: Departures,
    latest: Latest,
    bounds: Bounds,
    probe: Probe,
    undo: Undo,
    ecn: BbrEcn,
    /// Losses of the current round of STARTUP.
    startup_losses: u32,
    probe_rtt_end: Option<Time>,
    probe_rtt_round: bool,
    /// Sending has begun again after the application had been silent.
    restarted: bool,

    delivered: Bytes,
    cwnd: f64,
    prior_cwnd: f64,
    /// State of the transport at the last acknowledgement.
    prior: CaState,
    pacing: Rate,
    seen_rtt: bool,
}

impl Machine {
    /// A flow in STARTUP.
    pub fn new(profile: BbrProfile, setup: Setup) -> Self {
        let initial = setup.initial_cwnd().get() as f64;
        let memory = if profile.aggregation_slots {
            Memory::slots()
        } else {
            Memory::Window(MaxFilter::new(profile.aggregation_rounds))
        };
        let mut machine = Machine {
            mss: setup.mss.get() as f64,
            initial,
            random: setup.random,
            mode: BbrMode::Startup,
            rounds: Rounds::default(),
            round_start: false,
            bandwidths: [0.0; 2],
            full: FullPipe::default(),
            drain_start: 0,
            min_rtt: MinRtt::new(profile.min_rtt_window, setup.now),
            recent_rtt: MinRtt::new(profile.probe_rtt_interval, setup.now),
            aggregation: Aggregation::new(setup.now, memory),
            departures: Departures::default(),
            latest: Latest::default(),
            bounds: Bounds::NONE,
            probe: Probe::new(setup.now),
            undo: Undo::default(),
            ecn: BbrEcn::new(profile.ecn && setup.ecn),
            startup_losses: 0,
            probe_rtt_end: None,
            probe_rtt_round: false,
            restarted: false,
            delivered: Bytes::ZERO,
            cwnd: initial,
            prior_cwnd: 0.0,
            prior: CaState::Open,
            pacing: Rate::from_bps(1),
            seen_rtt: false,
            profile,
        };
        machine.pacing = machine.first_pacing(control::FIRST_RTT);
        machine
    }

    /// Largest bandwidth of two cycles, in bytes per second.
    fn max_bandwidth(&self) -> f64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    /// The bandwidth that the model goes by.
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
        self.departures.in_flight_then(now, bytes, self.bandwidth())
    }

    fn update_aggregation(&mut self, ack: &AckEvent<'_>) {
        let window = if self.full.reached() {
            self.profile.aggregation_rounds
        } else {
            1
        };
        self.aggregation.update(
            ack.now,
            ack.bytes.get() as f64,
            self.mss,
            self.bandwidth(),
            self.cwnd,
            (self.rounds.count(), self.round_start),
            window,
        );
    }

    fn check_full_pipe(&mut self, sample: &BbrSample) {
        let looks = self.round_start || self.profile.growth_at_any_ack;
        if looks && !self.full.now() && !sample.app_limited {
            self.full.observe(sample.bandwidth, self.round_start);
        }
    }

    fn check_startup(&mut self) {
        if self.mode == BbrMode::Startup && self.full.reached() {
            self.mode = BbrMode::Drain;
            self.drain_start = self.rounds.count();
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
        let rounds = self.rounds.count() - self.drain_start;
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
        if let Some(rtt) = ack.latest_rtt {
            let alone = ack.packets.len() <= 1 && (ack.bytes.get() as f64) < self.mss;
            let delayed = alone
                && !self.profile.take_delayed_rtt
                && (ack.rate).is_some_and(|r| r.prior_delivered + ack.bytes == ack.delivered);
            self.recent_rtt.offer(ack.now, rtt, delayed);
        }
        self.min_rtt.adopt(ack.now, &self.recent_rtt);
        if expired && !self.restarted && self.mode != BbrMode::ProbeRtt {
            self.save_cwnd();
            self.mode = BbrMode::ProbeRtt;
            self.probe_rtt_end = None;
            self.probe.stop();
            self.rounds.restart(ack.delivered);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack
            .rate
            .is_some_and(|sample| sample.delivered > Bytes::ZERO)
        {
            self.restarted = false;
        }
    }

    fn handle_probe_rtt(&mut self, ack: &AckEvent<'_>) {
        match self.probe_rtt_end {
            None if ack.in_flight.get() as f64 <= self.probe_rtt_cwnd() => {
                self.probe_rtt_end = Some(ack.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.rounds.restart(ack.delivered);
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt_end(ack.now);
                }
            }
        }
    }

    fn check_probe_rtt_end(&mut self, now: Time) {
        if self.probe_rtt_end.is_none_or(|end| now <= end) {
            return;
        }
        self.recent_rtt.confirm(now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.reset_short_term();
        if self.full.reached() {
            // What is in flight is below the path's capacity already.
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
        self.round_start = false;
        if let Some(rate) = &ack.rate {
            self.round_start = self.rounds.update(rate.prior_delivered, ack.delivered);
            self.probe.rounds += u64::from(self.round_start);
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
        if !self.seen_rtt && !ack.smoothed_rtt.is_zero() {
            self.seen_rtt = true;
            self.pacing = self.first_pacing(ack.smoothed_rtt);
        }
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
        if send.idle.is_some() && send.app_limited {
            self.restarted = true;
            self.aggregation.restart(send.now);
            if self.mode.in_probe_bw() {
                self.set_pacing(1.0);
            } else if self.mode == BbrMode::ProbeRtt {
                self.check_probe_rtt_end(send.now);
            }
        }
        self.departures.sent(send.now, send.bytes, self.pacing);
    }

    fn allowance(&self) -> Allowance {
        Allowance {
            cwnd: Some(super::whole(self.cwnd)),
            pacing: Some(self.pacing),
            quantum: Some(super::whole(self.quantum())),
            ..Allowance::default()
        }
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
            ("extra_acked_bytes", self.aggregation.extra()),
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
