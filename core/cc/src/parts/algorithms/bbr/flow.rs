//! The state of a flow common to all versions of BBR: its round trips, whether the pipe is full, its window and its
//! rate.

use super::{Aggregation, Departures, FullPipe, Memory, MinRtt, Rounds, bdp, rate, whole};
use crate::{AckEvent, Allowance, CaState, LossEvent, SendEvent, Setup};
use narrows_units::{Bytes, Rate, Span, Time};

/// Minimum window in packets: two data packets and two acknowledgements in transit.
pub const MIN_PACKETS: f64 = 4.0;
/// Pacing margin: the rate stays one percent below the bandwidth, so that queues can drain.
const MARGIN: f64 = 0.99;
/// RTT assumed for the first pacing rate.
const FIRST_RTT: Span = Span::from_ms(1);

/// A flow. Amounts are in bytes.
#[derive(Clone, Debug)]
pub struct BbrFlow {
    /// Payload of a full packet.
    pub mss: f64,
    /// The initial window.
    pub initial: f64,
    startup_gain: f64,
    /// Round trips so far.
    pub rounds: Rounds,
    /// True if a round began with the last acknowledgement.
    pub round_start: bool,
    /// Growth of the bandwidth in STARTUP.
    pub full: FullPipe,
    /// Aggregation of acknowledgements.
    pub aggregation: Aggregation,
    /// Departure times of paced packets.
    pub departures: Departures,
    /// When PROBE_RTT may end, once the data in flight is low enough; and whether a round has passed.
    pub probe_rtt_end: Option<Time>,
    probe_rtt_round: bool,
    /// True after sending has resumed from an application pause.
    pub restarted: bool,
    /// The window.
    pub cwnd: f64,
    /// The window before a recovery or PROBE_RTT.
    pub prior_cwnd: f64,
    /// State of the transport at the last acknowledgement.
    pub prior: CaState,
    /// The rate.
    pub pacing: Rate,
    seen_rtt: bool,
}

impl BbrFlow {
    /// A flow in STARTUP, whose rate has the gain `startup_gain`.
    pub fn new(setup: &Setup, startup_gain: f64, memory: Memory) -> Self {
        let initial = setup.initial_cwnd().get() as f64;
        let mut flow = BbrFlow {
            mss: setup.mss.get() as f64,
            initial,
            startup_gain,
            rounds: Rounds::default(),
            round_start: false,
            full: FullPipe::default(),
            aggregation: Aggregation::new(setup.now, memory),
            departures: Departures::default(),
            probe_rtt_end: None,
            probe_rtt_round: false,
            restarted: false,
            cwnd: initial,
            prior_cwnd: 0.0,
            prior: CaState::Open,
            pacing: Rate::from_bps(1),
            seen_rtt: false,
        };
        flow.pacing = flow.first_pacing(FIRST_RTT);
        flow
    }

    /// The rate that sends a window in a round, with the gain of STARTUP.
    pub fn first_pacing(&self, rtt: Span) -> Rate {
        let rtt = rtt.max(Span::from_us(1)).secs();
        rate(self.cwnd / rtt * self.startup_gain * MARGIN)
    }

    /// Sets the initial pacing rate from the first RTT.
    pub fn on_first_rtt(&mut self, ack: &AckEvent<'_>) {
        if !self.seen_rtt && !ack.smoothed_rtt.is_zero() {
            self.seen_rtt = true;
            self.pacing = self.first_pacing(ack.smoothed_rtt);
        }
    }

    /// Paces at a bandwidth (bytes per second) with a gain.
    pub fn set_pacing(&mut self, bandwidth: f64, gain: f64) {
        let new = rate(bandwidth * gain * MARGIN);
        // Until the pipe is full, low samples must not reduce the rate.
        if self.full.reached() || new > self.pacing {
            self.pacing = new;
        }
    }

    /// `gain` bandwidth-delay products; the initial window before any RTT.
    pub fn bdp(&self, bandwidth: f64, rtt: Option<Span>, gain: f64) -> f64 {
        rtt.map_or(self.initial, |rtt| gain * bdp(bandwidth, rtt))
    }

    /// The allowance for aggregation, which is not more than `bandwidth` delivers in `limit`.
    pub fn aggregated(&self, bandwidth: f64, limit: Span) -> f64 {
        self.aggregation.extra().min(bdp(bandwidth, limit))
    }

    /// Measures the aggregation of acknowledgements over so many rounds.
    pub fn update_aggregation(&mut self, ack: &AckEvent<'_>, bandwidth: f64, rounds: u64) {
        self.aggregation.update(
            ack.now,
            ack.bytes.get() as f64,
            self.mss,
            bandwidth,
            self.cwnd,
            (self.rounds.count(), self.round_start),
            rounds,
        );
    }

    /// Takes the RTT of an acknowledgement into `filter`.
    pub fn offer_rtt(&self, ack: &AckEvent<'_>, filter: &mut MinRtt, take_delayed: bool) {
        if let Some(rtt) = ack.latest_rtt {
            // A short packet acknowledged alone after a separate round was delayed by the receiver's timer.
            let alone = ack.packets.len() <= 1 && (ack.bytes.get() as f64) < self.mss;
            let delayed = alone
                && !take_delayed
                && (ack.rate).is_some_and(|r| r.prior_delivered + ack.bytes == ack.delivered);
            filter.offer(ack.now, rtt, delayed);
        }
    }

    /// In PROBE_RTT, which lasts for `time` from when no more than `cwnd` is in flight: true if a round has passed, too.
    pub fn handle_probe_rtt(&mut self, ack: &AckEvent<'_>, cwnd: f64, time: Span) -> bool {
        match self.probe_rtt_end {
            None if ack.in_flight.get() as f64 <= cwnd => {
                self.probe_rtt_end = Some(ack.now + time);
                self.probe_rtt_round = false;
                self.rounds.restart(ack.delivered);
                false
            }
            None => false,
            Some(_) => {
                self.probe_rtt_round |= self.round_start;
                self.probe_rtt_round
            }
        }
    }

    /// Ends PROBE_RTT if its time is over: `filter` is then renewed, and the window is restored.
    pub fn ends_probe_rtt(&mut self, now: Time, filter: &mut MinRtt) -> bool {
        let over = self.probe_rtt_end.is_some_and(|end| now > end);
        if over {
            filter.confirm(now);
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        over
    }

    /// Saves the last good window, for the end of a recovery or of PROBE_RTT.
    pub fn save_cwnd(&mut self, in_probe_rtt: bool) {
        let good = matches!(self.prior, CaState::Open | CaState::Cwr) && !in_probe_rtt;
        self.prior_cwnd = if good {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    /// Grows the window by the bytes acknowledged: up to `target` once the pipe is full, and unconditionally while the
    /// flow is starting.
    pub fn grow(&mut self, acked: f64, target: f64, starting: bool) {
        if self.full.reached() {
            self.cwnd = (self.cwnd + acked).min(target);
        } else if self.cwnd < target || starting {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(MIN_PACKETS * self.mss);
    }

    /// At the end of an acknowledgement: data that was delivered ends a restart.
    pub fn on_delivered(&mut self, ack: &AckEvent<'_>) {
        let delivers = |sample: crate::RateSample| sample.delivered > Bytes::ZERO;
        self.restarted &= !ack.rate.is_some_and(delivers);
    }

    /// A timeout: the data still in flight, plus one packet.
    pub fn on_timeout(&mut self, loss: &LossEvent<'_>) {
        self.full.reset();
        self.prior = CaState::Loss;
        self.cwnd = loss.in_flight.saturating_sub(loss.bytes).get() as f64 + self.mss;
    }

    /// A packet is sent: true if it is the first after an application pause.
    pub fn restarts(&mut self, send: &SendEvent) -> bool {
        let restarts = send.idle.is_some() && send.app_limited;
        if restarts {
            self.restarted = true;
            self.aggregation.restart(send.now);
        }
        restarts
    }

    /// Window, rate and `quantum`, the maximum burst in bytes.
    #[inline]
    pub fn allowance(&self, quantum: Bytes) -> Allowance {
        Allowance {
            cwnd: Some(whole(self.cwnd)),
            pacing: Some(self.pacing),
            quantum: Some(quantum),
            ..Allowance::default()
        }
    }
}
