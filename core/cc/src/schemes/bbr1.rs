//! BBR, version 1: sends at the measured bandwidth with about two bandwidth-delay products in flight at
//! most, whatever is lost.
//!
//! Provenance: Linux net/ipv4/tcp_bbr.c as of 6.18; Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016. Everything that Linux added is here: the
//! long-term sampler that recognises policers, the allowance for aggregated acknowledgements, one round of
//! packet conservation when a recovery begins. Deviations: amounts are counted in bytes and real numbers
//! where Linux rounds to packets and to 2^-24; packets leave one by one at the pacing rate and in bursts
//! (of the same size as Linux's) only after a delay; the first window leaves before any RTT is known,
//! where a kernel has that of the handshake.
//!
//! The bandwidth is the largest delivery rate of the last ten round trips, the round-trip time the smallest
//! of the last ten seconds. STARTUP doubles the rate each round until three rounds bring no quarter more,
//! DRAIN empties the queue that this made, PROBE_BW cycles through eight phases of one RTT: a quarter more, a
//! quarter less, six at the bandwidth. If the minimum has not been seen for ten seconds, PROBE_RTT lets no more
//! than four packets fly for 200 ms. Losses do not matter until about a fifth of all packets is lost. Pitfalls:
//! in buffers of less than about one bandwidth-delay product BBR keeps losing packets and starves others;
//! in deep ones several flows keep one bandwidth-delay product queued; flows with long RTTs get more.

use crate::parts::bbr::{
    Aggregation, Departures, FullPipe, MaxFilter, Memory, MinRtt, PolicerDetector, Rounds, PolicerTally, bandwidth, bdp,
    rate,
};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossCause, LossEvent, CaState, RateSample, Recovery,
    Scheme, SendEvent, Setup, SpuriousLossEvent,
};
use narrows_units::{Bytes, Rate, Span, Stream, Time, params};

mod bursts;
mod probing;
#[cfg(test)]
mod tests;

use bursts::{quantum, with_budget, MAX_BURST};
pub(super) use probing::Probing;

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "bbr1",
    summary: "Paces at the measured bandwidth, probing it every eight round trips (BBR version 1)",
    source: "Linux net/ipv4/tcp_bbr.c; Cardwell et al. 2016",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    transport: &[],
    profiles: &[],
    params: Bbr1Params::PARAMS,
    build: |params, setup| Ok(Box::new(Bbr1::new(Bbr1Params::read(params), setup, Probing::linux()))),
};

params! {
    /// Parameters of BBR; FillP's are among them.
    pub(super) struct Bbr1Params {
        /// Gain of rate and window in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.88671875, "Linux tcp_bbr.c: bbr_high_gain; the paper has 2/ln 2";
        /// Bandwidth-delay products in flight at most in PROBE_BW.
        cwnd_gain: Number(1.0..=10.0) = 2, "Linux tcp_bbr.c: bbr_cwnd_gain";
        /// Time after which the smallest RTT is looked at again.
        min_rtt_window: Span(1e8..=1e12) = "10 s", "Linux tcp_bbr.c: bbr_min_rtt_win_sec";
        /// Least time in PROBE_RTT with four packets in flight.
        probe_rtt_time: Span(0.0..=1e10) = "200 ms", "Linux tcp_bbr.c: bbr_probe_rtt_mode_ms";
        /// Recognise token-bucket policers and keep to their rate.
        policer: Flag = true, "Linux tcp_bbr.c: the lt_bw sampler";
        /// Allow for acknowledgements that come in bursts.
        aggregation: Flag = true, "Linux tcp_bbr.c: bbr_extra_acked_gain";
    }
}

/// Gain that empties in one round the queue that STARTUP has made.
const DRAIN_GAIN: f64 = 88.0 / 256.0;

/// Rounds of each of the two slots of the allowance for aggregation.
const AGGREGATION_ROUNDS: u64 = 5;
/// That allowance is not more than the bandwidth delivers in this time.
const AGGREGATION_LIMIT: Span = Span::from_ms(100);
/// Smallest window in packets: enough for delayed acknowledgements at both ends of the path.
const MIN_PACKETS: u64 = 4;
/// The rate stays one percent below the bandwidth, so that queues can drain.
const MARGIN: f64 = 0.99;
/// RTT assumed for the first pacing rate.
const FIRST_RTT: Span = Span::from_ms(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state; FillP is made of it, too.
pub(super) struct Bbr1 {
    mss: u64,
    initial: u64,
    params: Bbr1Params,
    probing: Probing,
    random: Stream,

    mode: Mode,
    bandwidth: MaxFilter,
    rounds: Rounds,
    round_start: bool,
    full: FullPipe,
    rtt: MinRtt,
    policer: PolicerDetector,
    /// Totals at the last event.
    tally: PolicerTally,
    aggregation: Aggregation,
    departures: Departures,
    /// Phase of PROBE_BW, and when it began.
    phase: usize,
    phase_start: Time,
    /// When PROBE_RTT may end, once its few packets are in flight; and whether a round has passed.
    probe_rtt_end: Option<Time>,
    probe_rtt_round: bool,
    /// Sending has begun again after the application had been silent.
    restarted: bool,

    cwnd: u64,
    /// Window before a recovery or PROBE_RTT.
    prior_cwnd: u64,
    /// State of the transport at the last acknowledgement.
    prior: CaState,
    /// The first round of a recovery: as much is sent as is acknowledged.
    conserve: bool,
    pacing: Rate,
    seen_rtt: bool,
}

impl Bbr1 {
    pub(super) fn new(params: Bbr1Params, setup: Setup, probing: Probing) -> Self {
        let initial = setup.initial_cwnd().get();
        let mut scheme = Bbr1 {
            mss: setup.mss.get(),
            initial,
            random: setup.random,
            mode: Mode::Startup,
            bandwidth: MaxFilter::new(probing.rounds),
            probing,
            rounds: Rounds::default(),
            round_start: false,
            full: FullPipe::default(),
            rtt: MinRtt::new(params.min_rtt_window, setup.now),
            params,
            policer: PolicerDetector::default(),
            tally: PolicerTally::default(),
            aggregation: Aggregation::new(setup.now, Memory::slots()),
            departures: Departures::default(),
            phase: 0,
            phase_start: setup.now,
            probe_rtt_end: None,
            probe_rtt_round: false,
            restarted: false,
            cwnd: initial,
            prior_cwnd: 0,
            prior: CaState::Open,
            conserve: false,
            pacing: Rate::from_bps(1),
            seen_rtt: false,
        };
        scheme.pacing = scheme.first_pacing(FIRST_RTT);
        scheme
    }

    /// The rate that sends a window in a round, with the gain of STARTUP.
    fn first_pacing(&self, rtt: Span) -> Rate {
        rate(self.cwnd as f64 / rtt.max(Span::from_us(1)).secs() * self.params.startup_gain * MARGIN)
    }

    /// The bandwidth that the model goes by: the policer's if there is one.
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
        quantum(self.pacing, self.mss, MAX_BURST)
    }

    /// `gain` bandwidth-delay products; the initial window before any RTT.
    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        match self.rtt.get() {
            None => self.initial as f64,
            Some(rtt) => gain * bdp(bandwidth, rtt),
        }
    }

    fn budget(&self, bytes: f64) -> u64 {
        let probing = self.mode == Mode::ProbeBw && self.phase == 0;
        with_budget(bytes, self.quantum(), self.mss, probing)
    }

    /// Bytes in flight for `gain` bandwidth-delay products.
    fn target(&self, gain: f64) -> u64 {
        self.budget(self.bdp(self.bandwidth.max(), gain))
    }

    /// Bytes in flight when the next packet leaves, with the burst that then follows while probing.
    fn in_flight_then(&self, now: Time, in_flight: Bytes) -> f64 {
        let mut bytes = in_flight.get() as f64;
        if self.pacing_gain() > 1.0 {
            bytes += self.quantum() as f64;
        }
        self.departures.in_flight_then(now, bytes, self.bandwidth())
    }

    fn sample_bandwidth(&mut self, ack: &AckEvent<'_>, sample: &RateSample) {
        self.round_start = self.rounds.update(sample.prior_delivered, ack.delivered);
        if self.round_start {
            self.conserve = false;
        }
        if self.params.policer {
            let round = self.mode == Mode::ProbeBw && self.round_start;
            if self.policer.rate().is_none() {
                let loss = ack.lost > Bytes::ZERO;
                self.policer.sample(self.tally, self.round_start, loss, sample.app_limited);
            } else if round && self.policer.used_long_enough(self.tally) {
                self.enter_probe_bw(ack.now);
            }
        }
        let measured = bandwidth(sample);
        if !sample.app_limited || measured >= self.bandwidth.max() {
            self.bandwidth.update(self.rounds.count(), measured);
        }
        if self.params.aggregation && ack.bytes > Bytes::ZERO {
            self.aggregation.update(
                ack.now,
                ack.bytes.get() as f64,
                self.mss as f64,
                self.bandwidth(),
                self.cwnd as f64,
                (self.rounds.count(), self.round_start),
                AGGREGATION_ROUNDS,
            );
        }
        if !self.full.reached() && self.round_start && !sample.app_limited {
            self.full.observe(self.bandwidth.max(), true);
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
            // The probe is given time to fill the path unless losses tell that it is full.
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

    /// Any phase but the one that sends less may be the first: flows that begin together should not probe
    /// together.
    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        let phases = self.probing.gains.len();
        self.phase = phases - 1 - self.random.below(phases as u64 - 1) as usize;
        self.next_phase(now);
    }

    fn check_drain(&mut self, ack: &AckEvent<'_>) {
        if self.mode == Mode::Startup && self.full.reached() {
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
        if let Some(rtt) = ack.latest_rtt {
            // A short packet that is acknowledged alone and after a round of its own has waited for the
            // receiver's timer.
            let alone = ack.packets.len() <= 1 && ack.bytes.get() < self.mss;
            let delayed = alone && (ack.rate).is_some_and(|r| r.prior_delivered + ack.bytes == ack.delivered);
            self.rtt.offer(ack.now, rtt, delayed);
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_end = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_end {
                None if ack.in_flight.get() <= MIN_PACKETS * self.mss => {
                    self.probe_rtt_end = Some(ack.now + self.params.probe_rtt_time);
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
        if ack.rate.is_some_and(|sample| sample.delivered > Bytes::ZERO) {
            self.restarted = false;
        }
    }

    fn check_probe_rtt_end(&mut self, now: Time) {
        if self.probe_rtt_end.is_none_or(|end| now <= end) {
            return;
        }
        self.rtt.confirm(now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full.reached() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Remembers the last window that was good, for the end of a recovery or of PROBE_RTT.
    fn save_cwnd(&mut self) {
        let good = matches!(self.prior, CaState::Open | CaState::Cwr) && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn set_pacing(&mut self, gain: f64) {
        let new = rate(self.bandwidth() * gain * MARGIN);
        // Until the pipe is full the samples are too low to slow down for.
        if self.full.reached() || new > self.pacing {
            self.pacing = new;
        }
    }

    fn set_cwnd(&mut self, ack: &AckEvent<'_>) {
        let acked = ack.bytes.get();
        if acked > 0 && !self.recover_or_restore(ack) {
            let mut bytes = self.bdp(self.bandwidth(), self.gain_of_window());
            if self.params.aggregation && self.full.reached() {
                bytes += self.aggregation.extra().min(bdp(self.bandwidth(), AGGREGATION_LIMIT));
            }
            let target = self.budget(bytes);
            if self.full.reached() {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || ack.delivered.get() < self.initial {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_PACKETS * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PACKETS * self.mss);
        }
    }

    /// The window in and around a recovery; whether it is decided here.
    fn recover_or_restore(&mut self, ack: &AckEvent<'_>) -> bool {
        let acked = ack.bytes.get();
        let in_flight = ack.in_flight.get();
        if ack.lost > Bytes::ZERO {
            self.cwnd = self.cwnd.saturating_sub(ack.lost.get()).max(self.mss);
        }
        let before = self.prior;
        self.prior = ack.phase;
        let recovering = |phase| matches!(phase, CaState::Recovery | CaState::Loss);
        if ack.phase == CaState::Recovery && before != CaState::Recovery {
            self.conserve = true;
            self.rounds.restart(ack.delivered);
            self.cwnd = in_flight + acked;
        } else if recovering(before) && !recovering(ack.phase) {
            self.conserve = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if self.conserve {
            self.cwnd = self.cwnd.max(in_flight + acked);
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
        self.round_start = false;
        if let Some(sample) = &ack.rate {
            self.sample_bandwidth(ack, sample);
        }
        self.update_phase(ack);
        self.check_drain(ack);
        self.update_rtt(ack);
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
        if loss.new_epoch {
            self.save_cwnd();
        }
        if loss.cause == LossCause::Reordering {
            return;
        }
        self.prior = CaState::Loss;
        self.full.reset();
        self.cwnd = loss.in_flight.saturating_sub(loss.bytes).get() + self.mss;
        if self.params.policer {
            self.tally.now = loss.now;
            self.tally.lost = loss.lost_total.get();
            self.policer.sample(self.tally, true, true, false);
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        // The window comes back with the next acknowledgement, as after any recovery.
        self.full.reset();
        self.policer.reset(self.tally);
    }

    fn on_send(&mut self, send: &SendEvent) {
        if send.idle.is_some() && send.app_limited {
            self.restarted = true;
            self.aggregation.restart(send.now);
            match self.mode {
                Mode::ProbeBw => self.set_pacing(1.0),
                Mode::ProbeRtt => self.check_probe_rtt_end(send.now),
                Mode::Startup | Mode::Drain => {}
            }
        }
        self.departures.sent(send.now, send.bytes, self.pacing);
    }

    fn allowance(&self) -> Allowance {
        Allowance {
            cwnd: Some(Bytes::new(self.cwnd)),
            pacing: Some(self.pacing),
            quantum: Some(Bytes::new(self.quantum())),
            ..Allowance::default()
        }
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
            ("extra_acked_bytes", self.aggregation.extra()),
        ]);
    }
}
