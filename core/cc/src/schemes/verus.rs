//! Verus: learns the delay as a function of the window, and moves along that curve, epoch by epoch, as the delay rises
//! or falls.
//!
//! Provenance: Y. Zaki, T. Pötsch, J. Chen, L. Subramanian, C. Görg, "Adaptive Congestion Control for Unpredictable
//! Cellular Networks", SIGCOMM 2015, with the rules and constants of the authors' program (github.com/yzaki/verus,
//! commit d4b447e, verus_server.cpp), which the paper leaves open in places. The curve is the smoothing spline of the
//! library used by the program (`maths/spline.rs`), to nine digits. Deviations: epochs have their exact length, whereas
//! the program sleeps and then works; a packet reported only by a later acknowledgement counts as acknowledged but
//! yields no delay, nor does (`late_delays`) a reordered one; the packets of an epoch leave as soon as the transport is
//! called; an application-limited window does not grow, the rules are suspended while the flow is idle, the minimum
//! delay is not raised without any acknowledgements (which would flood a dead path), and the line at the end of the
//! curve is followed to at most twice the largest window tried; the transport keeps one packet in flight even if an
//! epoch sends nothing.
//!
//! Every 5 ms the largest delay (RTT) of the epoch is compared with the smoothed one of the past. If it rose, the
//! target delay falls by 1 ms, else it rises by 2 ms, or falls by 2 ms if the delay is above R times the minimum; the
//! window is where the curve of delay over window, refitted each second, crosses that delay. Packets are sent in one
//! burst per epoch. A packet missing for 150 ms reduces the window once, to 0.7 of that at which it was sent, until
//! packets sent with the smaller window are acknowledged. Nothing is retransmitted: the flow carries datagrams, so its
//! transport settings are no retransmission, an acknowledgement per packet and no transport timers (the timeout of 150
//! ms to 1 s is Verus').
//!
//! Pitfalls: it keeps the RTT at up to R (6) times the minimum by design, 240 ms on a path of 40 ms; if the buffer is
//! smaller than that, losses are heavy and vary from run to run (at 12 Mbit/s some 20 % with 100 packets, 90 % with 20;
//! up to 98 % with 10 at 5 Mbit/s), since the reaction takes 150 ms and a full buffer has the same delay for all
//! windows, so that the curve ends flat and slow start restarts repeatedly. Several flows that share a buffer have
//! large delays for all windows as well: three of them on 12 Mbit/s and 40 ms lose three quarters of their packets, and
//! one may send twenty times the rate of the link for a second, as the program does. With constant reordering (jitter)
//! the packets that were not overtaken have the smaller delays, and it sends too much, unless the others count too
//! (`late_delays`). The minimum delay never rises again unless the flow stalls. Below 2.4 Mbit/s a packet takes longer
//! than an epoch, and epochs without acknowledgements raise the target: the RTT rises to R (1 + 0.4 (1 - 5 ms/T)) times
//! the minimum with T ms per packet, 7.4 at 1 Mbit/s. The profile `pantheon` has the payload of the Pantheon reports,
//! 1414 bytes.

mod flights;
mod profile;
#[cfg(test)]
mod tests;

use self::flights::VerusFlights;
use self::profile::{DelayProfile, smooth};
use crate::parts::datagrams::{DATAGRAMS, GAPS_ARE_LOSSES, settings, timeout};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile, Recovery, Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "verus",
    summary: "Walks along a learned curve of delay over window, every 5 ms, up to six times the smallest RTT",
    source: "Zaki et al. 2015; yzaki/verus d4b447e",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    // Verus has its own timeout; the transport's only cleans up its state.
    transport: &settings::<8>(&[&DATAGRAMS, &GAPS_ARE_LOSSES, &timeout("1000000000")]),
    profiles: &[Profile {
        name: "pantheon",
        doc: "As in the Pantheon reports: 1414 bytes in each datagram, and the curve followed wherever it leads, through late packets too.",
        params: &[("reach", "40000"), ("late_delays", "true")],
        transport: &[("packet_size", "1442")],
    }],
    params: VerusParams::PARAMS,
    build: |params, setup| Ok(Box::new(Verus::new(params, setup))),
};

params! {
    /// Parameters.
    struct VerusParams {
        /// Maximum tolerated ratio of the delay to the minimum.
        r: Number(1.1..=100.0) = 6, "yzaki/verus d4b447e: VERUS_R (paper: 2, 4, 6)";
        /// Time between two decisions.
        epoch: Span(1e5..=1e9) = "5 ms", "Zaki et al. 2015, section 5.3";
        /// Time between two fits of the curve.
        curve_interval: Span(1e7..=1e11) = "1 s", "Zaki et al. 2015, section 5.3";
        /// Decrease of the target delay when the delay rises.
        delta1: Span(1e4..=1e9) = "1 ms", "yzaki/verus d4b447e: DELTA1";
        /// Increase of the target delay when the delay does not rise, or decrease beyond R.
        delta2: Span(1e4..=1e9) = "2 ms", "yzaki/verus d4b447e: DELTA2";
        /// Limit up to which the curve is followed, as a multiple of the largest window tried.
        reach: Number(1.0..=40_000.0) = 2, "ours: the program has no such limit";
        /// Delays of reordered packets count too.
        late_delays: Flag = false, "own choice; yzaki/verus d4b447e: yes";
        /// Fraction of a lost packet's window that is kept.
        decrease: Ratio(0.05..=0.95) = 0.7, "yzaki/verus d4b447e: VERUS_M_DECREASE";
    }
}

/// Weight of the past in the largest delay of epochs.
const EPOCH_MEMORY: f64 = 0.2;
/// Differences of delays up to this many ms are ignored.
const SAME: f64 = 0.0001;
/// Slow start ends at this delay, in ms.
const SLOW_START_DELAY: f64 = 500.0;
/// Missing packets end slow start beyond this window.
const SLOW_START_WINDOW: f64 = 20.0;
/// Points of windows larger than this and than the lost packet's are then discarded.
const KEPT_WINDOW: f64 = 100.0;
/// The initial minimum delay, in ms, and the amount by which it is raised as a last resort.
const FIRST_MIN: f64 = 1000.0;
const MIN_STEP: f64 = 10.0;
/// The timeout: five delays, within these bounds; initially the upper one.
const TIMEOUT: (Span, Span) = (Span::from_ms(150), Span::from_ms(1000));

/// Windows in packets, delays in ms.
struct Verus {
    params: VerusParams,
    mss: u64,
    delta1: f64,
    delta2: f64,

    window: f64,
    in_flight: u64,
    /// The target delay.
    target: f64,
    smallest: f64,
    smoothed: f64,
    /// Largest delay of the epoch, and of those before it, smoothed.
    epoch_largest: Option<f64>,
    largest: Option<f64>,
    profile: DelayProfile,
    flights: VerusFlights,
    slow_start: bool,
    loss_phase: bool,
    /// Slow start has ended by delay: the target is constant until its packets are acknowledged.
    hold: bool,

    heard: Option<Time>,
    timeout: Span,
    deadline: Time,
    next_epoch: Option<Time>,
    next_fit: Time,

    /// Packets that may still be sent, and bytes in flight by the transport's count.
    credit: u64,
    flying: u64,
    restarts: u64,
    decreases: u64,
}

fn ms(span: Span) -> f64 {
    span.ns() as f64 / 1e6
}

/// Packets to send in an epoch: the window is to be in flight an RTT of `smoothed` ms from now, and the data now in
/// flight leaves the path by then, evenly over the RTT's epochs less one.
fn packets(window: f64, in_flight: u64, smoothed: f64, epoch: f64) -> f64 {
    let epochs = (smoothed / epoch).ceil();
    let in_flight = in_flight as f64;
    if epochs > 1.0 {
        (window + (in_flight * (2.0 - epochs) / (epochs - 1.0)).trunc()).max(0.0)
    } else {
        (window - in_flight).max(0.0)
    }
}

impl Verus {
    fn new(params: &Params, setup: Setup) -> Self {
        let params = VerusParams::read(params);
        let mut verus = Verus {
            mss: setup.mss.get(),
            delta1: ms(params.delta1),
            delta2: ms(params.delta2),
            params,
            window: 1.0,
            in_flight: 0,
            target: 0.0,
            smallest: FIRST_MIN,
            smoothed: 0.0,
            epoch_largest: None,
            largest: None,
            profile: DelayProfile::default(),
            flights: VerusFlights::default(),
            slow_start: true,
            loss_phase: false,
            hold: false,
            heard: None,
            timeout: TIMEOUT.1,
            deadline: Time::FAR,
            next_epoch: None,
            next_fit: Time::FAR,
            credit: 1,
            flying: 0,
            restarts: 0,
            decreases: 0,
        };
        verus.restart(setup.now);
        verus.restarts = 0;
        verus
    }

    /// Resets everything learned: one packet, whose acknowledgement starts slow start.
    fn restart(&mut self, now: Time) {
        self.window = 1.0;
        self.in_flight = 0;
        self.target = 0.0;
        self.smallest = FIRST_MIN;
        self.smoothed = 0.0;
        self.epoch_largest = None;
        self.largest = None;
        self.profile.reset();
        self.flights.clear();
        self.slow_start = true;
        self.loss_phase = false;
        self.hold = false;
        self.heard = None;
        self.timeout = TIMEOUT.1;
        self.deadline = now + self.timeout;
        self.credit = 1;
        self.restarts += 1;
    }

    fn leave_slow_start(&mut self, now: Time) {
        self.slow_start = false;
        self.next_fit = now;
    }

    /// The delay of the window: that of the curve, or the measured one before a curve exists.
    fn delay_of_window(&self) -> f64 {
        let curve = if self.slow_start { None } else { self.profile.curve(self.window) };
        curve.or_else(|| self.profile.seen(self.window)).unwrap_or(self.smallest)
    }

    /// A packet sent with `window` is acknowledged, after `delay` if that is known.
    fn acknowledged(&mut self, now: Time, window: f64, delay: Option<f64>) {
        if self.slow_start && delay.is_some_and(|delay| delay > SLOW_START_DELAY) {
            self.window = (self.params.decrease * window).max(1.0);
            self.target = self.delay_of_window();
            self.loss_phase = true;
            self.hold = true;
            self.leave_slow_start(now);
        }
        if self.loss_phase && window <= self.window {
            self.loss_phase = false;
            self.hold = false;
            self.epoch_largest = None;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.heard = Some(now);
        if let Some(delay) = delay {
            let five = Span::from_ns((delay * 5e6) as u64);
            self.timeout = five.clamp(TIMEOUT.0, TIMEOUT.1);
            self.epoch_largest = Some(self.epoch_largest.map_or(delay, |largest| largest.max(delay)));
            self.smoothed = smooth(self.smoothed, delay);
            self.smallest = self.smallest.min(delay);
        }
        self.deadline = now + self.timeout;
        if self.loss_phase {
            self.window += 1.0 / self.window;
            if let Some(of_curve) = self.profile.curve(self.window) {
                self.target = self.target.min(of_curve);
            }
        } else if let Some(delay) = delay {
            self.profile.record(window, delay);
        }
        if self.slow_start {
            self.window += 1.0;
            self.credit = (self.window - self.in_flight as f64).max(0.0) as u64;
        }
    }

    /// Packets that have been missing for too long are lost.
    fn check_missing(&mut self, now: Time) {
        while let Some(window) = self.flights.next_lost(now) {
            self.in_flight = self.in_flight.saturating_sub(1);
            if !self.loss_phase {
                self.loss_phase = true;
                self.decreases += 1;
                self.window = self.window.min(self.params.decrease * window).max(1.0);
                self.target = self.delay_of_window();
            }
            if self.slow_start && self.window > SLOW_START_WINDOW {
                self.leave_slow_start(now);
                self.profile.forget_from(window.max(KEPT_WINDOW));
                self.in_flight = 0;
                self.flights.clear();
            }
        }
    }

    /// No acknowledgement arrived for a timeout.
    fn on_silence(&mut self, now: Time) {
        self.deadline = now + self.timeout;
        if !self.slow_start {
            self.loss_phase = true;
            self.in_flight = 0;
            self.target = self.smallest;
            self.flights.clear();
        } else if self.heard.is_some() {
            self.leave_slow_start(now);
        } else {
            self.restart(now);
        }
    }

    /// The end of an epoch.
    fn decide(&mut self, now: Time) {
        let unused = self.credit > 0;
        let idle = unused && self.flights.is_empty();
        self.check_missing(now);
        if self.slow_start {
            return;
        }
        if now >= self.next_fit {
            self.next_fit = now + self.params.curve_interval;
            if !self.profile.fit() {
                return self.restart(now);
            }
        }
        if idle {
            // The application, not the path, is silent.
            self.epoch_largest = None;
            return;
        }
        let silence = self.heard.map_or(0.0, |heard| ms(now.since(heard)));
        let longest = self.epoch_largest.take().unwrap_or(silence.max(self.largest.unwrap_or(0.0)));
        let before = self.largest.unwrap_or(longest);
        let mut pause = false;
        if before / self.smallest > self.params.r {
            if !self.hold {
                self.target = (self.target - self.delta2).max(self.smallest);
                if self.target <= self.smallest {
                    if self.in_flight >= 2 {
                        pause = true;
                    } else if silence < ms(self.timeout) {
                        self.smallest += MIN_STEP;
                    }
                }
            }
        } else if longest - before > SAME {
            self.target = (self.target - self.delta1).max(self.smallest);
        } else if !unused {
            self.target += self.delta2;
        }
        let Some(window) = self.profile.window_for(&mut self.target, self.params.reach) else {
            return self.restart(now);
        };
        let window = window as f64;
        // The curve may become flat for a window that is not used.
        self.window = if unused { window.min(self.window) } else { window };
        let send = packets(self.window, self.in_flight, self.smoothed, ms(self.params.epoch));
        self.credit = if pause { 0 } else { send as u64 };
        self.largest = Some(EPOCH_MEMORY * before + (1.0 - EPOCH_MEMORY) * longest);
    }
}

impl CongestionControl for Verus {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.flying = ack.in_flight.get();
        for (index, packet) in ack.packets.iter().enumerate() {
            let Some((window, overtaken)) = self.flights.acknowledge(packet.number, ack.now) else {
                continue;
            };
            // Others were blocked until this one's acknowledgement.
            let newest = index + 1 == ack.packets.len();
            let tells = newest && (self.params.late_delays || !overtaken);
            let delay = tells.then(|| ms(ack.now.since(packet.sent)));
            self.acknowledged(ack.now, window, delay);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        // Verus detects missing packets itself.
        self.flying = loss.in_flight.saturating_sub(loss.bytes).get();
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.flying = send.in_flight.get();
        if self.flights.is_empty() {
            self.deadline = send.now + self.timeout;
        }
        if self.next_epoch.is_none() {
            self.next_epoch = Some(send.now + self.params.epoch);
        }
        self.flights.push(send.number, self.window);
        self.in_flight += 1;
        self.credit = self.credit.saturating_sub(1);
    }

    fn next_timer(&self) -> Option<Time> {
        let silence = if self.flights.is_empty() { Time::FAR } else { self.deadline };
        self.next_epoch.map(|epoch| epoch.min(silence))
    }

    fn on_timer(&mut self, now: Time) {
        if !self.flights.is_empty() && self.deadline <= now {
            self.on_silence(now);
        }
        if self.next_epoch.is_some_and(|epoch| epoch <= now) {
            self.next_epoch = Some(now + self.params.epoch);
            self.decide(now);
        }
    }

    fn allowance(&self) -> Allowance {
        // The data in flight, and the packets that may be added.
        let bytes = self.flying + self.credit * self.mss;
        Allowance { cwnd: Some(Bytes::new(bytes.max(1))), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match (self.slow_start, self.loss_phase) {
            (true, _) => "slow_start",
            (false, true) => "loss",
            (false, false) => "normal",
        };
        fields.values.extend([
            ("window_packets", self.window),
            ("target_delay_ms", self.target),
            ("smallest_delay_ms", self.smallest),
            ("largest_delay_ms", self.largest.unwrap_or(0.0)),
            ("restarts", self.restarts as f64),
            ("decreases", self.decreases as f64),
        ]);
    }
}
