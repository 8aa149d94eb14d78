//! PCC Allegro: tests a slightly higher and a slightly lower rate, and moves towards the better measured utility.
//!
//! Provenance: Dong, Li, Zarchy, Godfrey, Schapira, "PCC: Re-architecting Congestion Control for Consistent High
//! Performance", NSDI 2015; constants of the authors' program (github.com/modong/pcc, commit 1afc958, on UDT).
//! Deviations: rates count payload. Losses are determined by the transport, which allows for reordering; the program
//! counted every gap as a loss (parameter `closing`). The starting phase waits for late results (`start_ahead`),
//! whereas the program continued doubling. After a timeout of the transport the rate is halved, and the starting phase
//! restarts from there with the next acknowledgement; the program had no such rule. Application-limited intervals are
//! not evaluated. Rates stay between `min_rate` and 100 Gbit/s.
//!
//! Time is divided into monitor intervals of at least ten packets and about one and a half round trips. The starting
//! phase doubles the rate with each interval until the utility falls. Then four intervals are sent, in two pairs of k %
//! more and k % less in random order; if both pairs agree, the rate moves in that direction in steps of 1 %, 2 %, 3 %
//! ... as long as the utility rises, and if not, k grows from 1 to 5. Results arrive a round trip after an interval, so
//! each step takes at least one round trip and one interval. No window limits the data in flight.
//!
//! The utility of the paper is (delivered S - lost) packets per second, where S is a sigmoid of the loss ratio that
//! falls from 0.993 to 0.007 between none and 10 %. With it, a loss ratio of less than 5 % costs almost nothing and 10
//! % almost everything. **It only works with finite buffers:** only losses stop it, so it keeps any buffer full, with
//! up to 5 % of loss, and in an infinite one the queue grows without bound. `utility: latency` is the utility that the
//! program actually used in the Pantheon reports (the paper's form is in its source, but commented out): the delivered
//! part is multiplied by another sigmoid of the ratio of mean round-trip times of the previous and the current
//! interval, and the result is divided by the round-trip time.
//!
//! Pitfalls: the effect of random loss depends on the length of intervals. At 100 Mbit/s and 40 ms they have 500
//! packets, and a flow at that rate tolerates 4 %. During the start it has intervals of 20 and 40 packets, of which two
//! lost ones are 5 % or more: with 1 % of loss all starts succeed, with 2 % every fourth one ends below 16 Mbit/s, and
//! with 4 % most do. From there probes of one percent are lost in noise, and the climb takes minutes. This follows from
//! the published rules. Without selective acknowledgements only one loss is reported per round trip, and it floods the
//! path. Deep buffers delay results, and at 2 Mbit/s with deep buffers the program lost half of all packets.

use crate::parts::exp_log::exp;
use crate::parts::monitor_interval::{Closing, Monitors, IntervalReport};
use crate::parts::probe_intervals::Probes;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Recovery, Scheme,
    SendEvent, Setup,
};
use narrows_units::{ParamError, Params, Rate, Stream, Time, choice, params};

#[cfg(test)]
mod tests;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "pcc-allegro",
    summary: "Moves its rate where delivery less loss is measured to be better; ignores up to 5 % of loss (PCC)",
    source: "Dong et al., NSDI 2015; modong/pcc 1afc958",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    // One report per packet, as sent by its receiver.
    transport: &[("ack_every", "1")],
    profiles: &[crate::Profile {
        name: "pantheon",
        doc: "The program of the Pantheon reports: latency utility, UDT packets of 1464 bytes (modong/pcc 1afc958 as patched there).",
        params: &[
            ("utility", "latency"),
            ("closing", "overtaken"),
            ("rtt_of", "newest"),
            ("start_ahead", "0"),
        ],
        transport: &[("packet_size", "1464")],
    }],
    params: PccAllegroParams::PARAMS,
    build,
};

choice! {
    /// Utilities of the paper and of the program.
    enum UtilityChoice { Loss = "loss", Latency = "latency" }
    /// Interval whose mean RTT the latency utility uses.
    enum RttOf { Own = "own", Newest = "newest" }
}

params! {
    /// Parameters.
    struct PccAllegroParams {
        /// Utility to maximise.
        utility: UtilityChoice = "loss", "NSDI 2015, section 2.4; `latency` is the active function of the program";
        /// An interval is evaluated when the fate of all its packets is known, or when a later one is acknowledged.
        closing: Closing["settled",
            "overtaken"] = "settled", "`overtaken` is the program's: a report for a later interval closes it";
        /// Interval whose mean RTT the latency utility uses: the evaluated one, or the newest acknowledged one.
        rtt_of: RttOf = "own",
            "`newest` is the program's: it passes the mean RTT of the interval that closes this one";
        /// Half the rate of the first interval.
        initial_rate: Rate(1000.0..=1e11) = "1 Mbit/s", "program: doubled for the first interval";
        /// Pending intervals, at least 2, at which the starting phase pauses doubling; 0 for never.
        start_ahead: Count(0.0..=1000.0) = 2,
            "intervals without result at which the start waits; 0, the program's, for never";
        /// Minimum rate.
        min_rate: Rate(1000.0..=1e11) = "16 kbit/s", "ours: a packet in a second";
    }
}

/// Step of the rate, as a fraction.
const STEP: f64 = 0.01;
/// Maximum probe in steps.
const MAX_PROBE: u32 = 5;
/// Initial RTT, in seconds (UDT: ten times its 10 ms).
const FIRST_RTT: f64 = 0.1;
/// The largest rate in bit/s.
const MAX_RATE: f64 = 1e11;
/// In MOVE, a rate above the first value that exceeds the actual sending rate by more than the second is abandoned, in
/// bit/s.
const RESYNC_RATE: f64 = 200e6;
const RESYNC_DISTANCE: f64 = 30e6;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    if PccAllegroParams::read(params).start_ahead == 1 {
        return Err(ParamError::Conflict(
            "start_ahead 1 would never let the starting phase double: when an interval begins, the last one has no \
             result yet; give 0 or at least 2"
                .to_owned(),
        ));
    }
    Ok(Box::new(Allegro::new(params, setup)))
}

/// 1 less the logistic function.
fn falling_sigmoid(x: f64) -> f64 {
    1.0 - 1.0 / (1.0 + exp(-x))
}

/// Inputs of the utility.
#[derive(Clone, Copy, Debug)]
struct AllegroResult {
    /// Packets sent and lost.
    sent: f64,
    lost: f64,
    /// Duration of sending in seconds.
    seconds: f64,
    /// Mean round-trip times of this interval and the previous one, in seconds.
    rtt: f64,
    rtt_before: f64,
}

impl AllegroResult {
    /// The fraction of delivered packets that counts: a cliff at 5 % of loss.
    fn safe_share(&self) -> f64 {
        falling_sigmoid(100.0 * (self.lost.max(0.0) / self.sent - 0.05))
    }

    /// NSDI 2015, section 2.4.
    fn loss_utility(&self) -> f64 {
        (self.sent - self.lost) / self.seconds * self.safe_share() - self.lost / self.seconds
    }

    /// The computation of modong/pcc.
    fn latency_utility(&self) -> f64 {
        let calm = falling_sigmoid(10.0 * (1.0 - self.rtt_before / self.rtt));
        let delivered = (self.sent - self.lost) / self.seconds;
        let microseconds = self.rtt * 1e6;
        (delivered * self.safe_share() * calm - self.lost / self.seconds) / microseconds * 1000.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AllegroPhase {
    /// Each interval doubles the rate.
    Start {
        /// The best utility, and its rate.
        best: Option<(f64, f64)>,
    },
    /// Four probes and their utilities.
    Guess(Probes<f64>),
    /// Steps in one direction.
    Move {
        direction: f64,
        steps: f64,
        /// The interval whose result decides.
        target: u64,
        last: Option<f64>,
    },
    /// After a timeout, until the next acknowledgement.
    Silent,
}

/// Rates in bit/s, times in seconds.
struct Allegro {
    params: PccAllegroParams,
    /// Bits of a packet.
    packet: f64,
    min_rate: f64,
    random: Stream,
    monitors: Monitors,
    phase: AllegroPhase,
    /// The base rate, and the current rate, which may be a probe's.
    rate: f64,
    sending: f64,
    /// Packets of the current interval.
    planned: u64,
    /// Size of the probes in steps.
    probe: u32,
    smoothed_rtt: f64,
    rtt_before: Option<f64>,
    utility: f64,
}

impl Allegro {
    fn new(params: &Params, setup: Setup) -> Self {
        let params = PccAllegroParams::read(params);
        let min_rate = params.min_rate.bps() as f64;
        let initial = (params.initial_rate.bps() as f64).max(min_rate);
        Allegro {
            packet: setup.mss.get() as f64 * 8.0,
            min_rate,
            random: setup.random,
            monitors: Monitors::new(params.closing),
            params,
            phase: AllegroPhase::Start { best: None },
            rate: initial,
            sending: 2.0 * initial,
            planned: 0,
            probe: 0,
            smoothed_rtt: FIRST_RTT,
            rtt_before: None,
            utility: 0.0,
        }
    }

    /// Sets both the base rate and the current rate.
    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(self.min_rate, MAX_RATE);
        self.sending = self.rate;
    }

    /// Begins an interval.
    fn begin(&mut self, now: Time) {
        match &mut self.phase {
            AllegroPhase::Start { .. } => {
                let (_, app_limited) = self.monitors.newest();
                let start_ahead = self.params.start_ahead as usize;
                let late = start_ahead > 0 && self.monitors.open() >= start_ahead;
                if !late && !app_limited {
                    self.set_rate(2.0 * self.rate);
                }
            }
            AllegroPhase::Guess(probes) => {
                if let Some(sign) = probes.begin(self.monitors.next_id()) {
                    let share = 1.0 + sign * STEP * f64::from(self.probe);
                    self.sending = (self.rate * share).clamp(self.min_rate, MAX_RATE);
                }
            }
            AllegroPhase::Move { .. } | AllegroPhase::Silent => {}
        }
        self.monitors.begin(now, self.sending);
        let spacing = self.packet / self.sending;
        let packets = self.smoothed_rtt / spacing;
        self.planned = if 1.1 * packets > 10.0 {
            let longer = 1.5 + 0.1 * self.random.below(3) as f64;
            (longer * packets) as u64
        } else {
            ((0.005 / spacing) as u64).max(10)
        };
    }

    fn guess(&mut self) {
        self.probe = self.probe % MAX_PROBE + 1;
        self.sending = self.rate;
        self.phase = AllegroPhase::Guess(Probes::pairs(2, &mut self.random));
    }

    fn utility_of(&self, report: &IntervalReport, rtt: f64) -> f64 {
        let sent = report.packets as f64;
        // With a coarse clock an interval may have zero duration.
        let seconds = if report.elapsed.is_zero() {
            sent * self.packet / report.rate
        } else {
            report.elapsed.secs()
        };
        let rtt = rtt.max(1e-6);
        let rtt_before = self.rtt_before.unwrap_or(rtt).max(1e-6);
        let outcome = AllegroResult { sent, lost: report.lost as f64, seconds, rtt, rtt_before };
        match self.params.utility {
            UtilityChoice::Latency => outcome.latency_utility(),
            UtilityChoice::Loss => outcome.loss_utility(),
        }
    }

    fn judge(&mut self, report: &IntervalReport) {
        let rtt = match self.params.rtt_of {
            RttOf::Newest => report.rtt_of_newest,
            RttOf::Own => report.rtt,
        };
        let known = rtt.or(self.rtt_before).unwrap_or(self.smoothed_rtt);
        let utility = self.utility_of(report, known);
        self.rtt_before = Some(known);
        self.utility = utility;
        match self.phase {
            AllegroPhase::Silent => {}
            AllegroPhase::Start { best, .. } => self.judge_start(report, best, utility),
            AllegroPhase::Guess(probes) => self.judge_probe(report, probes, utility),
            AllegroPhase::Move { target, .. } if report.id < target => {}
            AllegroPhase::Move { direction, steps, last, .. } => {
                let measured = report.packets as f64 * self.packet / report.elapsed.secs().max(1e-9);
                let target = self.monitors.next_id();
                if report.app_limited {
                    self.phase = AllegroPhase::Move { direction, steps, target, last };
                } else if self.rate > RESYNC_RATE && self.rate > measured + RESYNC_DISTANCE {
                    self.set_rate(measured);
                    self.guess();
                } else if last.is_none_or(|last| utility > last) {
                    let steps = steps + 1.0;
                    self.set_rate(self.rate * (1.0 + direction * steps * STEP));
                    self.phase = AllegroPhase::Move { direction, steps, target, last: Some(utility) };
                } else {
                    self.set_rate(self.rate * (1.0 - direction * steps * STEP));
                    self.guess();
                }
            }
        }
    }

    fn judge_start(&mut self, report: &IntervalReport, known: Option<(f64, f64)>, utility: f64) {
        // The very first interval counts half, and one that did not double must not end the start.
        let utility = if report.id == 0 { utility / 2.0 } else { utility };
        let better = known.is_none_or(|(best, _)| utility > best) && report.rtt.is_some();
        let repeated = known.is_some_and(|(_, rate)| rate == report.rate);
        if report.app_limited || (repeated && !better) {
            return;
        }
        if better {
            self.phase = AllegroPhase::Start { best: Some((utility, report.rate)) };
        } else {
            self.set_rate(known.map_or(report.rate, |(_, rate)| rate));
            self.guess();
        }
    }

    fn judge_probe(&mut self, report: &IntervalReport, mut probes: Probes<f64>, utility: f64) {
        if !probes.add(report.id, utility) {
            return;
        }
        if report.app_limited {
            self.probe -= 1;
            self.guess();
            return;
        }
        self.phase = AllegroPhase::Guess(probes);
        if probes.results().is_none() {
            return;
        }
        let votes: i32 = probes.more_and_less().map(|(more, less)| if more > less { 1 } else { -1 }).sum();
        if votes == 0 {
            self.guess();
            return;
        }
        let direction = f64::from(votes.signum());
        let steps = f64::from(self.probe / 2 + 1);
        self.probe = 0;
        self.set_rate(self.rate * (1.0 + direction * steps * STEP));
        let target = self.monitors.next_id();
        self.phase = AllegroPhase::Move { direction, steps: 1.0, target, last: None };
    }

    fn judge_all(&mut self) {
        while let Some(report) = self.monitors.report() {
            self.judge(&report);
        }
    }
}

impl CongestionControl for Allegro {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        if !ack.smoothed_rtt.is_zero() {
            self.smoothed_rtt = ack.smoothed_rtt.secs();
        }
        self.monitors.acked(ack.now, ack.packets);
        if self.phase == AllegroPhase::Silent {
            self.monitors.clear();
            self.phase = AllegroPhase::Start { best: None };
        }
        self.judge_all();
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        if self.monitors.on_loss(loss) {
            self.phase = AllegroPhase::Silent;
            self.probe = 0;
            self.set_rate(self.rate / 2.0);
        }
        self.judge_all();
    }

    fn on_send(&mut self, send: &SendEvent) {
        if !self.monitors.is_sending() {
            self.begin(send.now);
        }
        self.monitors.sent(send);
        // The next interval begins with the last packet of this one, and its rate applies at once.
        if self.monitors.newest().0 >= self.planned {
            self.begin(send.now);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { pacing: Some(Rate::from_bps(self.sending as u64)), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match self.phase {
            AllegroPhase::Start { .. } => "start",
            AllegroPhase::Guess(_) => "guess",
            AllegroPhase::Move { .. } => "move",
            AllegroPhase::Silent => "silent",
        };
        fields.values.push(("rate_bps", self.rate));
        fields.values.push(("utility", self.utility));
    }
}
