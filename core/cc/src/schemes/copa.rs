//! Copa: steers towards a rate of one packet per delta times the queueing delay, so that 1/delta packets of the flow
//! are queued.
//!
//! Provenance: V. Arun and H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI
//! 2018; its reference implementation as Pantheon ran it (github.com/venkatarun95/genericCC, class MarkovianCC, commit
//! d0153f8; of early 2018: 80b516c). The default velocity is the reference's, `velocity: paper` is the paper's, which
//! waits for three round trips in the same direction.
//!
//! Deviations: as in the reference, from the paper (the queue must have been nearly empty within four smoothed RTTs,
//! not five; 30 % of losses cut the window; velocity never more than doubles the window in a round trip). From the
//! reference: the window does not grow while neither it nor pacing by it limits the sender; lost acknowledgements are
//! compensated by the next. And by default, but not in the profiles: a path without any queue counts as empty (its
//! strict comparison, `strict`, interprets a path on which all RTTs are equal as a queue that is never empty, and
//! competes); the losses of a round trip halve 1/delta once, as in the paper (`halving`: in the reference each
//! acknowledgement that reports losses does, and the result persists for a round trip after the mode has ended);
//! between the first window, which leaves unspaced, and the first adjustment packets are spaced by a tenth of the first
//! RTT, and a packet held back by a full window leaves with the acknowledgement that makes room (`spacing`: in the
//! reference nothing is spaced before the first adjustment, and afterwards such a packet waits a whole interval from
//! the acknowledgement on, because its sender advances the time of the last packet as long as the window is full; its
//! timers count whole ms, so above 1 ms the wait is up to an interval, here always one); a packet is lost when three
//! later ones have arrived, or by time (in the reference as soon as a later one has). For the version of early 2018 it
//! is unknown how its velocity changes when a round trip had the same direction without a two-thirds majority: here it
//! is reset.
//!
//! The queueing delay is the smallest RTT of the last half round trip less the smallest of ten seconds. Below the
//! target of RTT / (delta x queueing delay) packets the window grows by velocity / delta packets per round trip, above
//! it shrinks likewise, so that the queue swings between empty and 2.5 / delta packets with a period of about five
//! round trips. If it has not been nearly empty for four round trips, competing flows fill it: in the competitive mode
//! 1/delta increases by one per round trip and is halved by a loss. Otherwise losses have no effect; nothing is
//! retransmitted unless the scenario requests it (`reliable`). After two seconds of silence all state is reset, and the
//! data in flight is written off.
//!
//! Pitfalls: with delta 0.5 it takes tens of seconds to fill a large bandwidth-delay product when slow start ended
//! early; RTTs that vary by more than its target queue make it slow; a flow that joins a standing queue mistakes it for
//! the path; flows that oscillate together occasionally mistake each other for competitors. With delta 0.1 the window
//! swings in one of two ways: around a short queue, or from a third of the product to beyond the buffer, with
//! velocities of hundreds; tenths of a ms decide which (on 50 Mbit/s, 80 ms and half a product of buffer 49 or 36
//! Mbit/s). Alone on a path whose product is below about four times 1/delta packets (2.5 with five round trips, the
//! paper's) it may mistake itself for a competitor permanently, since its own queue then outlasts the four round trips:
//! delta 0.5 on 1 Mbit/s and 50 ms causes 1.8 s of queueing delay on average if the buffer permits, as does the
//! reference; `mode: constant` 0.03 s. When a competitor leaves, 1/delta has grown: if four times that many packets
//! exceed the product, the mode may outlast the competitor. Beyond ten seconds the smallest RTT is that of the standing
//! queue.

mod mode;
mod rtts;
#[cfg(test)]
mod tests;
mod velocity;

use self::mode::CopaMode;
use self::rtts::Rtts;
use self::velocity::{VelocityRule, Velocity};
use crate::parts::datagrams::{DATAGRAMS, GAPS_ARE_LOSSES, Setting, settings, timeout};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile, Recovery, Scheme,
    SendEvent, Setup,
};
use narrows_units::{Bytes, Params, Rate, Span, Time, choice, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "copa",
    summary: "Keeps 1/delta packets queued, and more beside flows that fill the queue",
    source: "Arun and Balakrishnan, NSDI 2018; genericCC (MarkovianCC) d0153f8",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    // Two seconds of silence are the scheme's own timeout.
    transport: &settings::<4>(&[&DATAGRAMS, &timeout("2000000000")]),
    profiles: &[
        Profile {
            name: "pantheon",
            doc: "Pantheon after March 2020: genericCC d0153f8 with do_ss:auto:0.1, 1440 bytes of UDP payload.",
            params: &[("mode", "auto"), ("delta", "0.1"), BEYOND, STRICT, HALVING, SPACING],
            transport: SMALL,
        },
        Profile {
            name: "pantheon-2018",
            doc: "Pantheon from mid 2018 to March 2020: genericCC d0153f8 with do_ss:auto:0.5.",
            params: &[("mode", "auto"), ("delta", "0.5"), BEYOND, STRICT, HALVING, SPACING],
            transport: SMALL,
        },
        Profile {
            name: "pantheon-2018-01",
            doc: "Pantheon in January 2018, inferred from its tables: delta 0.5 and switching between modes; 1500 bytes with headers, for its 1500 of payload would not fit into one packet. As configured (pantheon-2018-01-constant) it would have had less throughput and shorter queues than published.",
            params: &[("mode", "auto"), ("delta", "0.5"), BEYOND, STRICT, HALVING, SPACING],
            transport: LARGE,
        },
        Profile {
            name: "pantheon-2018-01-constant",
            doc: "Pantheon's configuration of January 2018: genericCC 80b516c, whose parser took do_ss:auto for a constant delta of 1; smoothed RTT, one window per RTT; 1500 bytes with headers.",
            params: &[
                ("mode", "constant"),
                ("delta", "1"),
                ("velocity", "agreement"),
                ("rtt", "smoothed"),
                ("pacing_gain", "1"),
                BEYOND,
            ],
            transport: LARGE,
        },
    ],
    params: CopaParams::PARAMS,
    build: |params, setup| Ok(Box::new(Copa::new(params, &setup))),
};

choice! {
    /// Rule for delta.
    enum DeltaMode { Auto = "auto", Constant = "constant" }
    /// RTT from which the queue is measured.
    enum RttChoice { Standing = "standing", Smoothed = "smoothed" }
    /// Losses that halve 1/delta.
    enum Halving { Paper = "paper", Reference = "reference" }
    /// Rule for the space between packets.
    enum Spacing { Even = "even", Reference = "reference" }
}

params! {
    /// Parameters.
    struct CopaParams {
        /// Rule for delta: smaller in competition with queue-filling flows, or constant.
        mode: DeltaMode = "auto", "paper, section 2.2";
        /// Weight of the queueing delay: 1/delta packets are kept queued.
        delta: Number(0.001..=100.0) = 0.5, "paper, section 2.1; Pantheon from March 2020: 0.1";
        /// When the velocity doubles: after each round trip in the same direction, after the third, or after each in
        /// which two thirds of the steps agreed.
        velocity: VelocityRule = "reference", "genericCC d0153f8: markoviancc.cc";
        /// RTT whose difference from the minimum is the queueing delay.
        rtt: RttChoice = "standing", "paper, section 2.1; genericCC 80b516c smoothed it";
        /// Windows per RTT at which packets are spaced.
        pacing_gain: Number(1.0..=10.0) = 2, "paper, section 2.1; genericCC 80b516c: 1";
        /// Packets in flight beyond the window.
        beyond: Packets(0.0..=10.0) = 0, "genericCC: 1, by its count of packets in flight";
        /// The queue counts as empty only below a tenth of its height, not at it: equal RTTs, as on a path without
        /// jitter, count as a queue that is never empty.
        strict: Flag = false, "own choice; genericCC: yes";
        /// Losses that halve 1/delta: once per round trip, or each acknowledgement that reports losses.
        halving: Halving = "paper", "paper, section 2.2; genericCC d0153f8";
        /// Spacing of packets: from the first RTT on, or, as in the reference's sender, from the first adjustment on
        /// and restarted whenever a full window has room again.
        spacing: Spacing = "even", "paper, section 2.1; genericCC d0153f8: ctcp.hh";
    }
}

/// As genericCC sends: 1440 bytes of UDP payload, and a packet is lost as soon as a later one has arrived.
const SMALL: &[Setting] = &settings::<5>(&[&[("packet_size", "1468")], &GAPS_ARE_LOSSES]);

/// The same with 1500 bytes.
const LARGE: &[Setting] = &settings::<5>(&[&[("packet_size", "1500")], &GAPS_ARE_LOSSES]);

/// Behaviour of genericCC's sender.
const BEYOND: (&str, &str) = ("beyond", "1");
const STRICT: (&str, &str) = ("strict", "true");
const HALVING: (&str, &str) = ("halving", "reference");
const SPACING: (&str, &str) = ("spacing", "reference");

/// Smallest window in packets.
const MIN_WINDOW: f64 = 2.0;
/// Silence after which all state is reset.
const SILENCE: Span = Span::from_ms(2000);
/// Fraction of the first RTT by which packets are spaced before the first adjustment.
const FIRST_SPACING: f64 = 0.1;
/// Losses are evaluated after more than this many packets and two RTTs; beyond this ratio they cut the window to this
/// value.
const BRAKE_PACKETS: u64 = 20;
const BRAKE_SHARE: f64 = 0.3;
const BRAKE_KEEPS: f64 = 0.7;
/// Fraction of the window in flight, less a packet, above which pacing by the window (at least once per round trip)
/// limits the sender.
const FULL: f64 = 0.9;

/// Packets acknowledged and lost since losses were last evaluated.
#[derive(Clone, Copy, Debug, Default)]
struct Brake {
    since: Time,
    packets: u64,
    lost: u64,
}

impl Brake {
    fn new(since: Time) -> Self {
        Brake { since, packets: 0, lost: 0 }
    }
}

/// The window is in packets.
struct Copa {
    params: CopaParams,
    mss: f64,
    initial: f64,
    rtts: Rtts,
    last_rtt: Span,
    mode: CopaMode,
    velocity: Velocity,
    window: f64,
    slow_start: bool,
    acked: f64,
    brake: Brake,
    pacing: Option<Rate>,
    /// When a packet was last acknowledged, or sent after nothing had been in flight.
    heard: Time,
    /// Payload bytes in flight, and those written off.
    in_flight: u64,
    written_off: u64,
}

impl Copa {
    fn new(params: &Params, setup: &Setup) -> Self {
        let params = CopaParams::read(params);
        let initial = (setup.initial_window as f64).max(MIN_WINDOW);
        Copa {
            mss: setup.mss.get() as f64,
            initial,
            rtts: Rtts::default(),
            last_rtt: Span::ZERO,
            mode: CopaMode::new(
                params.mode == DeltaMode::Auto,
                params.delta,
                params.halving == Halving::Reference,
            ),
            velocity: Velocity::new(params.velocity),
            params,
            window: initial,
            slow_start: true,
            acked: 0.0,
            brake: Brake::new(setup.now),
            pacing: None,
            heard: setup.now,
            in_flight: 0,
            written_off: 0,
        }
    }

    /// The RTT from which the queue is measured, in ns.
    fn standing(&self) -> f64 {
        if self.params.rtt == RttChoice::Smoothed {
            self.rtts.smoothed
        } else {
            self.rtts.standing()
        }
    }

    /// The window at which the rate equals the target of delta and the queueing delay; infinite without a queue.
    fn target(&self) -> f64 {
        let standing = self.standing();
        let queueing = standing - self.rtts.base();
        if queueing > 0.0 {
            standing / (queueing * self.mode.delta())
        } else {
            f64::INFINITY
        }
    }

    /// One packet was acknowledged after `rtt`; `limited` is true if the window, or pacing by it, limits the sender.
    fn on_packet(&mut self, now: Time, rtt: Span, limited: bool) {
        self.last_rtt = rtt;
        self.rtts.push(now, rtt);
        self.mode
            .on_ack(now, rtt, self.rtts.were_low(self.params.strict));
        if self.acked >= 2.0 * self.initial - 1.0 {
            self.adjust(now, rtt, limited);
            self.pace();
        } else if self.acked == 0.0 && self.params.spacing == Spacing::Even {
            self.pacing = self.spaced_by(rtt.ns() as f64 * FIRST_SPACING);
        }
        self.acked += 1.0;
        self.brake.packets += 1;
        self.brake(now);
    }

    fn adjust(&mut self, now: Time, rtt: Span, limited: bool) {
        let target = self.target();
        if self.slow_start {
            if limited {
                self.window += 1.0;
            }
            self.slow_start = self.window < target;
        } else {
            let delta = self.mode.delta();
            let velocity = self.velocity.turn(now, rtt, self.window, delta);
            let step = velocity / (delta * self.window);
            let up = self.window < target;
            if !up {
                self.window -= step;
            } else if limited {
                self.window += step;
            }
            if limited || !up {
                self.velocity.step(up);
            }
        }
        self.window = self.window.max(MIN_WINDOW);
    }

    /// True if pacing by the window limits the sender: at this many windows per round trip the limit beyond the window
    /// may never be reached.
    fn is_full(&self, in_flight: Bytes) -> bool {
        let is_paced = self.params.pacing_gain * self.window < self.window + self.params.beyond + 1.0;
        let flight = in_flight.get().saturating_sub(self.written_off) as f64 / self.mss;
        is_paced && flight + 1.0 >= FULL * self.window
    }

    /// Many losses: a buffer so short that delay does not show it.
    fn brake(&mut self, now: Time) {
        let brake = self.brake;
        if brake.packets <= BRAKE_PACKETS || now.since(brake.since) <= self.last_rtt * 2 {
            return;
        }
        if brake.lost as f64 > BRAKE_SHARE * brake.packets as f64 {
            self.window = (BRAKE_KEEPS * self.window).max(MIN_WINDOW);
            self.pace();
        }
        self.brake = Brake::new(now);
    }

    fn pace(&mut self) {
        self.pacing = self.spaced_by(self.standing() / (self.params.pacing_gain * self.window));
    }

    /// The rate of one packet every `ns` nanoseconds; none without spacing.
    fn spaced_by(&self, ns: f64) -> Option<Rate> {
        (ns > 0.0).then(|| Rate::from_bps(((self.mss * 8e9 / ns) as u64).max(1)))
    }

    /// No acknowledgement arrived for too long: resets all state, and writes off the data in flight.
    fn restart(&mut self, now: Time) {
        self.rtts.clear();
        self.mode.reset();
        self.velocity = Velocity::new(self.params.velocity);
        self.window = self.initial;
        self.slow_start = true;
        self.acked = 0.0;
        self.brake = Brake::new(now);
        self.pacing = None;
        self.written_off = self.in_flight;
        self.heard = now;
    }
}

impl CongestionControl for Copa {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.heard = ack.now;
        let limited = ack.cwnd_limited || self.is_full(ack.in_flight_before);
        self.in_flight = ack.in_flight.get();
        self.written_off = self
            .written_off
            .saturating_sub(ack.bytes.get())
            .min(self.in_flight);
        for packet in ack.packets {
            self.on_packet(ack.now, ack.now.since(packet.sent), limited);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.in_flight = loss.in_flight.get().saturating_sub(loss.bytes.get());
        self.written_off = self
            .written_off
            .saturating_sub(loss.bytes.get())
            .min(self.in_flight);
        self.mode.on_loss(loss.now, self.last_rtt);
        self.brake.packets += loss.packets;
        self.brake.lost += loss.packets;
    }

    fn on_send(&mut self, send: &SendEvent) {
        if send.in_flight == send.bytes {
            self.heard = send.now;
        }
        self.in_flight = send.in_flight.get();
    }

    fn allowance(&self) -> Allowance {
        let anew = self.params.spacing == Spacing::Reference && self.pacing.is_some();
        // The interval restarts as long as the window is in flight: the packet beyond it is never sent.
        let beyond = if anew { 0.0 } else { self.params.beyond };
        let window = (self.window + beyond).ceil() * self.mss;
        Allowance {
            cwnd: Some(Bytes::new(self.written_off.saturating_add(window as u64))),
            pacing: self.pacing,
            quantum: anew.then(|| Bytes::new(self.mss as u64)),
            reschedule_pacing: anew,
            restart_pacing_when_open: anew,
        }
    }

    fn next_timer(&self) -> Option<Time> {
        (self.in_flight > 0).then(|| self.heard + SILENCE)
    }

    fn on_timer(&mut self, now: Time) {
        // An acknowledgement may have arrived meanwhile.
        if self.next_timer().is_some_and(|timer| timer <= now) {
            self.restart(now);
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match (self.slow_start, self.mode.is_competitive()) {
            (true, _) => "slow_start",
            (false, true) => "competitive",
            (false, false) => "default",
        };
        let target = self.target();
        if target.is_finite() {
            fields.values.push(("target_packets", target));
        }
        fields.values.extend([
            ("delta", self.mode.delta()),
            ("velocity", self.velocity.value),
            ("standing_rtt_ms", self.standing() / 1e6),
            ("base_rtt_ms", self.rtts.base() / 1e6),
        ]);
    }
}
