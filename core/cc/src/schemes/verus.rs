//! Verus: learns which delay comes with which window, and walks along that curve, epoch by epoch, as the delay
//! rises or falls.
//!
//! Provenance: Y. Zaki, T. Pötsch, J. Chen, L. Subramanian, C. Görg, "Adaptive Congestion Control for Unpredictable
//! Cellular Networks", SIGCOMM 2015, with the rules and constants of the authors' program (github.com/yzaki/verus, commit
//! d4b447e, verus_server.cpp), which the paper leaves open in places. The curve is the smoothing spline of the
//! library that the program uses (`parts/spline.rs`), to nine digits. Deviations: epochs are exactly as
//! long as they should be, where the program sleeps and then works; a packet of which only a later acknowledgement
//! tells counts as acknowledged but gives no delay, nor does (`late_delays`) one that later ones have overtaken; what is sent in an epoch leaves as soon as the transport is asked;
//! a window that the application leaves unused does not grow, an idle flow's rules stand still, the smallest delay is not
//! raised while nothing is heard at all (it would end in floods into a dead path), and
//! the line at the end of the curve is followed to twice the largest window that has been tried at most; the transport lets
//! one packet fly even when an epoch is to send nothing.
//!
//! Every 5 ms the largest delay (RTT) of the epoch is compared with that of the time before. If it rose, the delay aimed
//! at falls by 1 ms, else it rises by 2 ms, and by -2 ms when the delay is above R times the smallest; the window is where
//! the curve of delay over window, fitted anew each second, crosses that delay. Packets go out in a burst per epoch.
//! A packet that is missing for 150 ms reduces the window once, to 0.7 of that at which it was sent, until packets
//! are acknowledged that were sent with the smaller window. Nothing is sent again: the flow carries
//! datagrams, so its own settings of the transport are no retransmission, an acknowledgement per packet and
//! no timers of its own (the timeout of 150 ms to 1 s is Verus').
//!
//! Pitfalls: it keeps the RTT at up to R (6) times the smallest by design, 240 ms on a path of 40 ms; where the
//! buffer is smaller than that, losses are heavy and differ from run to run (at 12 Mbit/s some 20 % with 100 packets, 90 % with
//! 20; up to 98 % with 10 at 5 Mbit/s), since the reaction takes 150 ms
//! and a full buffer has the same delay for all windows, so that the curve ends flat and slow start begins again and again. Several flows that share a buffer have
//! large delays for all windows as well: three of them on 12 Mbit/s and 40 ms lose three quarters of their packets, and one may
//! send twenty times the rate of the link for a second, as the program does. Where packets overtake
//! each other all the time (jitter that reorders), those that were not overtaken have the smaller delays, and it sends too
//! much, unless the others count too (`late_delays`). The smallest delay never rises again
//! unless the flow stands still. Below 2.4 Mbit/s a packet takes longer than an epoch, and epochs without news raise the
//! target: the RTT goes up to R (1 + 0.4 (1 - 5 ms/T)) times the smallest with T ms per packet, 7.4 at 1 Mbit/s. The profile `pantheon` has the payload of the Pantheon reports, 1414 bytes.

mod flights;
mod profile;
#[cfg(test)]
mod tests;

use self::flights::VerusFlights;
use self::profile::DelayProfile as DelayProfile;
use crate::parts::datagrams::{DATAGRAMS, GAPS_ARE_LOSSES, settings, timeout};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile, Recovery, Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, Params, Span, Time, params};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "verus",
    summary: "Walks along a learned curve of delay over window, every 5 ms, up to six times the smallest RTT",
    source: "Zaki et al. 2015; yzaki/verus d4b447e",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    // Verus has a timeout of its own; the transport's only clears its books.
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
        /// Largest delay over the smallest one that is put up with.
        r: Number(1.1..=100.0) = 6, "yzaki/verus d4b447e: VERUS_R (paper: 2, 4, 6)";
        /// Time between two decisions.
        epoch: Span(1e5..=1e9) = "5 ms", "Zaki et al. 2015, section 5.3";
        /// Time between two fits of the curve.
        curve_interval: Span(1e7..=1e11) = "1 s", "Zaki et al. 2015, section 5.3";
        /// Time taken off the target delay when the delay rises.
        delta1: Span(1e4..=1e9) = "1 ms", "yzaki/verus d4b447e: DELTA1";
        /// Time added to it when the delay does not rise, or taken off beyond R.
        delta2: Span(1e4..=1e9) = "2 ms", "yzaki/verus d4b447e: DELTA2";
        /// Largest window that the curve is followed to, in largest windows that have been tried.
        reach: Number(1.0..=40_000.0) = 2, "ours: the program has no such limit";
        /// Delays of packets that later ones have overtaken count too.
        late_delays: Flag = false, "own choice; yzaki/verus d4b447e: yes";
        /// Share of a lost packet's window that is kept.
        decrease: Ratio(0.05..=0.95) = 0.7, "yzaki/verus d4b447e: VERUS_M_DECREASE";
    }
}

/// Weight of the past in smoothed delays.
const MEMORY: f64 = 0.875;
/// Weight of the past in the largest delay of epochs.
const EPOCH_MEMORY: f64 = 0.2;
/// Differences of delays up to this many ms are none.
const SAME: f64 = 0.0001;
/// Slow start ends at this delay, in ms.
const SLOW_START_DELAY: f64 = 500.0;
/// Missing packets end slow start beyond this window.
const SLOW_START_WINDOW: f64 = 20.0;
/// Points of larger windows than this, and than the lost packet's, are forgotten then.
const KEPT_WINDOW: f64 = 100.0;
/// The smallest delay before any, in ms, and what is added to it when nothing else helps.
const FIRST_MIN: f64 = 1000.0;
const MIN_STEP: f64 = 10.0;
/// The timeout: five delays, within these bounds; the upper one at first.
const TIMEOUT: (Span, Span) = (Span::from_ms(150), Span::from_ms(1000));

/// Windows in packets, delays in ms.
struct Verus {
    params: VerusParams,
    mss: u64,
    delta1: f64,
    delta2: f64,

    window: f64,
    in_flight: u64,
    /// The delay aimed at.
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
    /// Slow start has ended by delay: the target stays until its packets are through.
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

/// Packets to send in an epoch: the window is to be in flight an RTT from now, which is `smoothed` ms, and what is in flight
/// leaves the path by then, evenly over the RTT's epochs but one.
fn packets(window: f64, in_flight: u64, smoothed: f64, epoch: f64) -> f64 {
    let epochs = (smoothed / epoch).ceil();
    let in_flight = in_flight as f64;
    if epochs > 1.0 {
        (window + (in_flight * (2.0 - epochs) / (epochs - 1.0)).trunc()).max(0.0)
    } else {
        (window - in_flight).max(0.0)
    }
}

/// `past` and `x`, smoothed.
fn smooth(past: f64, x: f64) -> f64 {
    MEMORY * past + (1.0 - MEMORY) * x
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

    /// Begins again as if nothing had been learned: one packet, whose acknowledgement starts slow start.
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

    /// The delay that goes with the window: that of the curve, or the one seen with it before there is a curve.
    fn delay_of_window(&self) -> f64 {
        let curve = if self.slow_start { None } else { self.profile.curve(self.window) };
        curve.or_else(|| self.profile.seen(self.window)).unwrap_or(self.smallest)
    }

    /// A packet that was sent with `window` is acknowledged, after `delay` if that is known.
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

    /// Nothing has been heard for a timeout.
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
            // The application is silent, not the path.
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
        // The curve may turn flat under a window that nobody needs.
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
            // Others have waited for this one's acknowledgement.
            let newest = index + 1 == ack.packets.len();
            let tells = newest && (self.params.late_delays || !overtaken);
            let delay = tells.then(|| ms(ack.now.since(packet.sent)));
            self.acknowledged(ack.now, window, delay);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        // Verus finds out for itself what is missing.
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
        // What is in flight, and what may join it.
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
