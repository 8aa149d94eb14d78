//! BBR, version 1: sends at the measured bandwidth with at most about two bandwidth-delay products in flight,
//! regardless of losses.
//!
//! Provenance: Linux net/ipv4/tcp_bbr.c as of 6.18; Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based
//! Congestion Control", ACM Queue 14(5), 2016. It includes all additions of Linux: the long-term sampler that
//! recognises policers, the allowance for aggregated acknowledgements, one round of packet conservation when a recovery
//! begins. Deviations: amounts are counted in bytes and real numbers where Linux rounds to packets and to 2^-24;
//! packets leave one by one at the pacing rate and in bursts (of the same size as Linux's) only after a delay; the
//! first window leaves before any RTT is known, whereas a kernel has that of the handshake.
//!
//! The bandwidth is the largest delivery rate of the last ten round trips, the round-trip time the smallest of the last
//! ten seconds. STARTUP doubles the rate each round until it grows by less than a quarter for three rounds, DRAIN
//! empties the resulting queue, PROBE_BW cycles through eight phases of one RTT: a quarter more, a quarter less, six at
//! the bandwidth. If the minimum has not been seen for ten seconds, PROBE_RTT limits the data in flight to four packets
//! for 200 ms. Losses have no effect until about a fifth of all packets is lost. Pitfalls: in buffers of less than
//! about one bandwidth-delay product BBR keeps losing packets and starves others; in deep ones several flows keep one
//! bandwidth-delay product queued; flows with long RTTs get more.

use crate::parts::bbr::{BbrFlow, MIN_PACKETS, MaxFilter, Memory, MinRtt, PolicerDetector, PolicerTally, bandwidth};
use crate::{
    AckEvent, Allowance, CaState, CongestionControl, EcnUse, Fields, LossCause, LossEvent, RateSample, Recovery,
    Scheme, SendEvent, Setup, SpuriousLossEvent,
};
use narrows_units::{Bytes, Span, Stream, Time, params};

mod bursts;
mod probing;
#[cfg(test)]
mod tests;

use bursts::{quantum, with_budget, MAX_BURST};
pub(super) use probing::Probing;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "bbr1",
    summary: "Paces at the measured bandwidth, probing it every eight round trips (BBR version 1)",
    source: "Linux net/ipv4/tcp_bbr.c; Cardwell et al. 2016",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    transport: &[],
    profiles: &[],
    params: Bbr1Params::PARAMS,
    build: |params, setup| {
        let params = Bbr1Params::read(params);
        let probing = Probing::linux(params.probe_gain);
        Ok(Box::new(Bbr1::new(params, setup, probing)))
    },
};

params! {
    /// Parameters of BBR; FillP's are among them.
    pub(super) struct Bbr1Params {
        /// Gain of rate and window in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.88671875, "Linux tcp_bbr.c: bbr_high_gain; the paper has 2/ln 2";
        /// Gain of the phase of PROBE_BW that sends more; the next phase sends as much less.
        probe_gain: Number(1.0..=1.9) = 1.25, "Linux tcp_bbr.c: bbr_pacing_gain";
        /// Maximum bandwidth-delay products in flight in PROBE_BW.
        cwnd_gain: Number(1.0..=10.0) = 2, "Linux tcp_bbr.c: bbr_cwnd_gain";
        /// Time after which the minimum RTT is probed again.
        min_rtt_window: Span(1e8..=1e12) = "10 s", "Linux tcp_bbr.c: bbr_min_rtt_win_sec";
        /// Minimum time in PROBE_RTT with four packets in flight.
        probe_rtt_time: Span(0.0..=1e10) = "200 ms", "Linux tcp_bbr.c: bbr_probe_rtt_mode_ms";
        /// Detect token-bucket policers and adopt their rate.
        policer: Flag = true, "Linux tcp_bbr.c: the lt_bw sampler";
        /// Allow for aggregated acknowledgements.
        aggregation: Flag = true, "Linux tcp_bbr.c: bbr_extra_acked_gain";
    }
}

/// Gain that empties the queue built by STARTUP in one round.
const DRAIN_GAIN: f64 = 88.0 / 256.0;

/// Rounds of each of the two slots of the allowance for aggregation.
const AGGREGATION_ROUNDS: u64 = 5;
/// The allowance is at most the amount that the bandwidth delivers in this time.
const AGGREGATION_LIMIT: Span = Span::from_ms(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state; FillP uses it, too.
pub(super) struct Bbr1 {
    mss: u64,
    flow: BbrFlow,
    params: Bbr1Params,
    probing: Probing,
    random: Stream,

    mode: Mode,
    bandwidth: MaxFilter,
    rtt: MinRtt,
    policer: PolicerDetector,
    /// Totals at the last event.
    tally: PolicerTally,
    /// Phase of PROBE_BW, and when it began.
    phase: usize,
    phase_start: Time,
    /// The first round of a recovery: packet conservation.
    conserve: bool,
}

impl Bbr1 {
    pub(super) fn new(params: Bbr1Params, setup: Setup, probing: Probing) -> Self {
        Bbr1 {
            mss: setup.mss.get(),
            flow: BbrFlow::new(&setup, params.startup_gain, Memory::slots()),
            random: setup.random,
            mode: Mode::Startup,
            bandwidth: MaxFilter::new(probing.rounds),
            probing,
            rtt: MinRtt::new(params.min_rtt_window, setup.now),
            params,
            policer: PolicerDetector::default(),
            tally: PolicerTally::default(),
            phase: 0,
            phase_start: setup.now,
            conserve: false,
        }
    }

    /// The model's bandwidth: the policer's if one has been detected.
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.max())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => self.params.startup_gain,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw if self.policer.rate().is_none() => self.probing.gains[self.phase],
            Mode::ProbeBw | Mode::ProbeRtt => 1.0,
        }
    }

    fn gain_of_window(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.params.startup_gain,
            Mode::ProbeBw => self.params.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    fn quantum(&self) -> u64 {
        quantum(self.flow.pacing, self.mss, MAX_BURST)
    }

    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        self.flow.bdp(bandwidth, self.rtt.get(), gain)
    }

    fn budget(&self, bytes: f64) -> u64 {
        let probing = self.mode == Mode::ProbeBw && self.phase == 0;
        with_budget(bytes, self.quantum(), self.mss, probing)
    }

    /// Bytes in flight for `gain` bandwidth-delay products.
    fn target(&self, gain: f64) -> u64 {
        self.budget(self.bdp(self.bandwidth.max(), gain))
    }

    /// Bytes in flight when the next packet leaves, including the following burst while probing.
    fn in_flight_then(&self, now: Time, in_flight: Bytes) -> f64 {
        let mut bytes = in_flight.get() as f64;
        if self.pacing_gain() > 1.0 {
            bytes += self.quantum() as f64;
        }
        self.flow.departures.in_flight_then(now, bytes, self.bandwidth())
    }

    fn sample_bandwidth(&mut self, ack: &AckEvent<'_>, sample: &RateSample) {
        self.flow.round_start = self.flow.rounds.update(sample.prior_delivered, ack.delivered);
        if self.flow.round_start {
            self.conserve = false;
        }
        if self.params.policer {
            let round = self.mode == Mode::ProbeBw && self.flow.round_start;
            if self.policer.rate().is_none() {
                let loss = ack.lost > Bytes::ZERO;
                self.policer.sample(self.tally, self.flow.round_start, loss, sample.app_limited);
            } else if round && self.policer.used_long_enough(self.tally) {
                self.enter_probe_bw(ack.now);
            }
        }
        let measured = bandwidth(sample);
        if !sample.app_limited || measured >= self.bandwidth.max() {
            self.bandwidth.update(self.flow.rounds.count(), measured);
        }
        if self.params.aggregation && ack.bytes > Bytes::ZERO {
            self.flow.update_aggregation(ack, self.bandwidth(), AGGREGATION_ROUNDS);
        }
        if !self.flow.full.reached() && self.flow.round_start && !sample.app_limited {
            self.flow.full.observe(self.bandwidth.max(), true);
        }
    }

    fn update_phase(&mut self, ack: &AckEvent<'_>) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let gain = self.pacing_gain();
        let full_length = self.rtt.get().is_none_or(|rtt| ack.now.since(self.phase_start) > rtt);
        let in_flight = self.in_flight_then(ack.now, ack.in_flight_before);
        let over = if gain > 1.0 {
            // The probe has time to fill the path unless losses show that it is full.
            full_length && (ack.lost > Bytes::ZERO || in_flight >= self.target(gain) as f64)
        } else if gain < 1.0 {
            (full_length && !self.probing.until_drained) || in_flight <= self.target(1.0) as f64
        } else {
            full_length
        };
        if over {
            self.next_phase(ack.now);
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % self.probing.gains.len();
        self.phase_start = now;
    }

    /// Any phase except the one that sends less may be the first: flows that begin together should not probe together.
    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        let phases = self.probing.gains.len();
        self.phase = phases - 1 - self.random.below(phases as u64 - 1) as usize;
        self.next_phase(now);
    }

    fn check_drain(&mut self, ack: &AckEvent<'_>) {
        if self.mode == Mode::Startup && self.flow.full.reached() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.in_flight_then(ack.now, ack.in_flight) <= self.target(1.0) as f64
        {
            self.enter_probe_bw(ack.now);
        }
    }

    fn update_rtt(&mut self, ack: &AckEvent<'_>) {
        let expired = self.rtt.expired(ack.now);
        self.flow.offer_rtt(ack, &mut self.rtt, false);
        if expired && !self.flow.restarted && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.flow.save_cwnd(true);
            self.flow.probe_rtt_end = None;
        }
        let few = MIN_PACKETS * self.flow.mss;
        if self.mode == Mode::ProbeRtt && self.flow.handle_probe_rtt(ack, few, self.params.probe_rtt_time) {
            self.check_probe_rtt_end(ack.now);
        }
        self.flow.on_delivered(ack);
    }

    fn check_probe_rtt_end(&mut self, now: Time) {
        if !self.flow.ends_probe_rtt(now, &mut self.rtt) {
            return;
        }
        if self.flow.full.reached() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn set_pacing(&mut self, gain: f64) {
        self.flow.set_pacing(self.bandwidth(), gain);
    }

    fn set_cwnd(&mut self, ack: &AckEvent<'_>) {
        let acked = ack.bytes.get() as f64;
        if acked > 0.0 && !self.recover_or_restore(ack) {
            let mut bytes = self.bdp(self.bandwidth(), self.gain_of_window());
            if self.params.aggregation && self.flow.full.reached() {
                bytes += self.flow.aggregated(self.bandwidth(), AGGREGATION_LIMIT);
            }
            let starting = (ack.delivered.get() as f64) < self.flow.initial;
            self.flow.grow(acked, self.budget(bytes) as f64, starting);
        }
        if self.mode == Mode::ProbeRtt {
            self.flow.cwnd = self.flow.cwnd.min(MIN_PACKETS * self.flow.mss);
        }
    }

    /// The window in and around a recovery; returns whether it is decided here.
    fn recover_or_restore(&mut self, ack: &AckEvent<'_>) -> bool {
        let in_flight_before = (ack.in_flight + ack.bytes).get() as f64;
        if ack.lost > Bytes::ZERO {
            self.flow.cwnd = (self.flow.cwnd - ack.lost.get() as f64).max(self.flow.mss);
        }
        let before = self.flow.prior;
        self.flow.prior = ack.phase;
        let recovering = |phase| matches!(phase, CaState::Recovery | CaState::Loss);
        if ack.phase == CaState::Recovery && before != CaState::Recovery {
            self.conserve = true;
            self.flow.rounds.restart(ack.delivered);
            self.flow.cwnd = in_flight_before;
        } else if recovering(before) && !recovering(ack.phase) {
            self.conserve = false;
            self.flow.cwnd = self.flow.cwnd.max(self.flow.prior_cwnd);
        }
        if self.conserve {
            self.flow.cwnd = self.flow.cwnd.max(in_flight_before);
        }
        self.conserve
    }
}

impl CongestionControl for Bbr1 {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.tally = PolicerTally {
            now: ack.now,
            delivered: ack.delivered.get(),
            lost: ack.lost_total.get(),
        };
        self.flow.round_start = false;
        if let Some(sample) = &ack.rate {
            self.sample_bandwidth(ack, sample);
        }
        self.update_phase(ack);
        self.check_drain(ack);
        self.update_rtt(ack);
        self.flow.on_first_rtt(ack);
        self.set_pacing(self.pacing_gain());
        self.set_cwnd(ack);
    }

    fn on_duplicate(&mut self, ack: &AckEvent<'_>) {
        self.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        if loss.new_epoch {
            self.flow.save_cwnd(self.mode == Mode::ProbeRtt);
        }
        if loss.cause == LossCause::Reordering {
            return;
        }
        self.flow.on_timeout(loss);
        if self.params.policer {
            self.tally.now = loss.now;
            self.tally.lost = loss.lost_total.get();
            self.policer.sample(self.tally, true, true, false);
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        // The window is restored with the next acknowledgement, as after any recovery.
        self.flow.full.reset();
        self.policer.reset(self.tally);
    }

    fn on_send(&mut self, send: &SendEvent) {
        if self.flow.restarts(send) {
            match self.mode {
                Mode::ProbeBw => self.set_pacing(1.0),
                Mode::ProbeRtt => self.check_probe_rtt_end(send.now),
                Mode::Startup | Mode::Drain => {}
            }
        }
        self.flow.departures.sent(send.now, send.bytes, self.flow.pacing);
    }

    fn allowance(&self) -> Allowance {
        self.flow.allowance(Bytes::new(self.quantum()))
    }

    fn holds_back(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw => "probe_bw",
            Mode::ProbeRtt => "probe_rtt",
        };
        let rtt = self.rtt.get().map_or(0.0, Span::secs);
        fields.values.extend([
            ("bandwidth_bps", self.bandwidth() * 8.0),
            ("bbr_min_rtt_ms", rtt * 1e3),
            ("pacing_gain", self.pacing_gain()),
            ("cwnd_gain", self.gain_of_window()),
            ("extra_acked_bytes", self.flow.aggregation.extra()),
        ]);
    }
}
