//! PCC Vivace: follows the gradient of a utility of rate, loss and the growth of the round-trip time.
//!
//! Provenance: Dong, Meng, Zarchy, Arslan, Gilad, Godfrey, Schapira, "PCC Vivace: Online-Learning Congestion Control",
//! NSDI 2018; state machine and constants of the authors' program (github.com/PCCproject/PCC-Uspace, branch NSDI-2018,
//! on UDT), latency coefficient of the binary that the Pantheon reports ran (github.com/StanfordSNR/vivace), in which
//! it is 900 and in the published source 11330. Deviations: rates count payload (`header`). Losses are determined by
//! the transport, which allows for reordering; the program counted every gap as a loss (`closing`). Steps and probes of
//! fixed size in Mbit/s are bounded by a fraction of the rate (`step_limit`) and the minimum rate is lower
//! (`min_rate`), so that slow links are not flooded. After a timeout of the transport the rate is halved, and the
//! starting phase restarts from there with the next acknowledgement; the program hibernated with packets of 100 bytes
//! at 40 kbit/s and left that state only if the round-trip time was below 59 ms. Application-limited intervals are not
//! evaluated. The binary is closed: details other than the constants may differ.
//!
//! A monitor interval is one round-trip time or ten packets. Its utility, with the rate x in Mibit/s (2^20), the loss
//! ratio L and the slope g of the round-trip time over time, is x^0.9 - c x L - 900 x g, where c is 11.35 above 3 % of
//! loss and 1 below, and g is truncated to an even number of hundredths, so that slopes below 0.02 count as zero. The
//! starting phase doubles the rate while utility rises; then two pairs of intervals (one, while steps agree) try 5 %
//! more and less, and the rate follows the gradient in steps that grow from 5 % of the rate on. `utility: paper` is the
//! paper's form: c is always 11.35, g is not truncated and negative slopes are not rewarded.
//!
//! Alone it fills the link to 95 % with almost no queue. Loss is tolerated up to where the marginal utility of rate is
//! zero: in the paper's form L = 0.9 x^-0.1 / 11.35, 7.9 % at 1 Mbit/s, 6.3 % at 10 and 5 % at 100. Pitfalls:
//! `latency_coefficient: 0` fills any buffer and needs a finite one; the start is slow on long fast paths; on cellular
//! links noise of the slope swings the rate; in deep buffers Cubic takes the link. The original program does not work
//! below about 1.5 Mbit/s, since its minimum rate is 1.3 and its minimum step 0.5 Mbit/s (`profile: pantheon`).

use crate::parts::gradient::{Counted, GradientRule, GradientSample, GradientSteps};
use utility::VivaceResult;
use crate::parts::monitor_interval::{Closing, Monitors, IntervalReport};
use crate::parts::probe_intervals::Probes;
use crate::{
    AckEvent, Allowance, CongestionControl, Fields, LossEvent, Profile, Scheme, SendEvent,
    Setup,
};
use narrows_units::{Params, Rate, Stream, Time, choice, params};

#[cfg(test)]
mod tests;
mod utility;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "vivace",
    summary: "Follows the gradient of a utility of rate, loss and growth of the round-trip time (PCC Vivace)",
    source: "Dong et al., NSDI 2018; PCC-Uspace NSDI-2018; StanfordSNR/vivace",
    profiles: &[
        Profile {
            name: "pantheon",
            doc: "The binary of the Pantheon reports (StanfordSNR/vivace): UDT packets of 1400 bytes, all of which count; nothing below 1.3 Mbit/s, a start at 1.6 that overlooks neither losses nor slopes.",
            params: &[
                ("initial_rate", "1600000"),
                ("min_rate", "1300000"),
                ("step_limit", "1"),
                ("closing", "reported"),
                ("start", "strict"),
                ("header", "56"),
            ],
            transport: &[("packet_size", "1400")],
        },
        Profile {
            name: "published",
            doc: "The published source (PCC-Uspace, branch NSDI-2018): latency coefficient 11330, nothing below 1.3 Mbit/s.",
            params: &[
                ("latency_coefficient", "11330"),
                ("min_rate", "1300000"),
                ("step_limit", "1"),
                ("closing", "reported"),
            ],
            transport: &[],
        },
    ],
    params: VivaceParams::PARAMS,
    build: |params, setup| Ok(Box::new(Vivace::new(params, setup))),
    ..super::pcc_allegro::SCHEME
};

choice! {
    /// Form of the utility.
    enum UtilityForm { Shipped = "shipped", Paper = "paper" }
    /// Tolerance of the starting phase.
    enum StartChoice { Tolerant = "tolerant", Strict = "strict" }
}

params! {
    /// Parameters.
    struct VivaceParams {
        /// Form of the utility.
        utility: UtilityForm = "shipped", "PCC-Uspace NSDI-2018 and the binary; `paper` is NSDI 2018, section 4";
        /// Weight of the slope of the round-trip time.
        latency_coefficient: Number(0.0..=1e6) = 900,
            "StanfordSNR/vivace, and the paper; 11330 in PCC-Uspace NSDI-2018; 0 for loss alone";
        /// An interval is evaluated when the fate of all its packets is known, or when its last packet or a later one
        /// is acknowledged.
        closing: Closing["settled",
            "reported"] = "settled", "`reported` is the program's: a report for its last packet or a later one closes it";
        /// Starting phase that tolerates 50 lost packets and slopes below 0.2 per interval, or one that does not.
        start: StartChoice = "tolerant",
            "PCC-Uspace NSDI-2018; the binary that Pantheon ran is `strict`, as observed";
        /// Rate of the first interval.
        initial_rate: Rate(1000.0..=1e9) = "0.8 Mbit/s",
            "PCC-Uspace NSDI-2018; the binary began at 1.6, 7 packets of 1400 bytes per 50 ms";
        /// Minimum base rate of probes.
        min_rate: Rate(1000.0..=1e9) = "50 kbit/s", "ours; 1.3 Mbit/s in PCC-Uspace NSDI-2018";
        /// Maximum of the minimum step and probe, as a fraction of the rate.
        step_limit: Ratio(0.01..=1.0) = 0.25, "ours; without limit, 1, in PCC-Uspace NSDI-2018";
        /// Bytes counted in rates per packet besides its payload.
        header: Bytes(0.0..=200.0) = 0, "ours; all 56 bytes that are no payload count in UDT's programs";
    }
}

/// Size of probes as a fraction, and the minimum size of probes and steps in Mbit/s.
const PROBE: f64 = 0.05;
const MIN_STEP: f64 = 0.5;
/// Losses of an interval and slopes that the starting phase tolerates.
const FORGIVEN_LOST: u64 = 50;
const FORGIVEN_SLOPE: f64 = 0.2;
/// The largest rate in Mbit/s.
const MAX_RATE: f64 = 1024.0;
/// Minimum and maximum packets of an interval.
const MIN_INTERVAL_PACKETS: f64 = 10.0;
const MAX_INTERVAL_PACKETS: f64 = 3000.0;
/// The initial RTT in seconds, also used instead of an RTT longer than a second.
const FIRST_RTT: f64 = 0.1;
const LONG_RTT: f64 = 1.0;
const RTT_IN_PLACE: f64 = 0.3;
/// Loss ratios: up to the first all probes of a decision count with their common one; from the second on losses are
/// checked for contradicting the rates; above the third the rate is halved.
const SMALL_LOSS: f64 = 0.01;
const LARGE_LOSS: f64 = 0.05;
const EMERGENCY_LOSS: f64 = 0.5;
/// Losses of a slower interval by which it contradicts a faster one with fewer.
const CONTRADICTION: u64 = 2;
/// Steps up to this fraction of the rate end in a new search.
const SMALL_STEP: f64 = 0.1;

#[derive(Clone, Debug, PartialEq)]
enum VivacePhase {
    /// The rate is doubled while utility rises.
    Start { last: Option<f64>, target: Option<u64> },
    /// Pairs of probes around the rate.
    Probe(Probes<VivaceResult>),
    /// A step away from a reference.
    Move {
        reference_id: u64,
        reference: Option<VivaceResult>,
        target_id: Option<u64>,
        target: Option<VivaceResult>,
    },
    /// After a timeout, until the next acknowledgement.
    Silent,
}

/// Rates in Mbit/s, times in seconds.
struct Vivace {
    /// Bytes counted in rates.
    counted: Counted,
    /// Megabits per packet.
    packet: f64,
    min_rate: f64,
    params: VivaceParams,
    random: Stream,
    monitors: Monitors,
    steps: GradientSteps,
    phase: VivacePhase,
    /// The base rate of probes, and the current rate.
    base: f64,
    sending: f64,
    planned: u64,
    rtt: f64,
    /// Intervals before this one cannot declare an emergency.
    calm_from: u64,
    /// True if a vote for more was deferred once because of contradicting losses.
    put_off: bool,
    last_utility: f64,
}

impl Vivace {
    fn new(params: &Params, setup: Setup) -> Self {
        let params = VivaceParams::read(params);
        let initial = params.initial_rate.bps() as f64 / 1e6;
        let counted = Counted::new(params.header.get(), setup.mss.get());
        Vivace {
            counted,
            packet: counted.packet() * 8e-6,
            min_rate: params.min_rate.bps() as f64 / 1e6,
            random: setup.random,
            monitors: Monitors::new(params.closing),
            params,
            steps: GradientSteps::new(GradientRule::Vivace),
            phase: VivacePhase::Start { last: None, target: None },
            base: initial,
            sending: initial,
            planned: 0,
            rtt: FIRST_RTT,
            calm_from: 0,
            put_off: false,
            last_utility: 0.0,
        }
    }

    /// The minimum size of a step at the current rate.
    fn least_step(&self) -> f64 {
        MIN_STEP.min(self.params.step_limit * self.base)
    }

    fn begin(&mut self, now: Time) {
        let id = self.monitors.next_id();
        let probe = (PROBE * self.base).max(self.least_step());
        self.sending = self.base;
        match &mut self.phase {
            VivacePhase::Start { target, .. } => {
                target.get_or_insert(id);
            }
            VivacePhase::Probe(probes) => {
                if let Some(sign) = probes.begin(id) {
                    self.sending = self.base + sign * probe;
                }
            }
            VivacePhase::Move { target_id, .. } => {
                target_id.get_or_insert(id);
            }
            VivacePhase::Silent => {}
        }
        self.monitors.begin(now, self.sending);
        let rtt = if self.rtt > LONG_RTT { RTT_IN_PLACE } else { self.rtt };
        self.planned = (rtt * self.sending / self.packet).clamp(MIN_INTERVAL_PACKETS, MAX_INTERVAL_PACKETS) as u64;
    }

    fn move_by(&mut self, step: f64) {
        self.base = (self.base + step).clamp(self.min_rate, MAX_RATE);
    }

    fn search(&mut self) {
        self.base = self.base.clamp(self.min_rate, MAX_RATE);
        let pairs = if self.steps.agreeing >= 1 { 1 } else { 2 };
        self.phase = VivacePhase::Probe(Probes::pairs(pairs, &mut self.random));
    }

    /// Searches again with a single pair.
    fn search_again(&mut self) {
        self.steps.agreeing = 2;
        self.search();
    }

    fn utility_of(&self, seen: &VivaceResult) -> f64 {
        self.params.utility_of(seen.sent, seen.loss(), seen.slope)
    }

    fn judge(&mut self, report: &IntervalReport) {
        if let Some(rtt) = report.rtt {
            self.rtt = rtt;
        }
        let seen = VivaceResult::new(report, self.counted);
        self.last_utility = self.utility_of(&seen);
        let usable = !report.app_limited;
        if usable && seen.loss() > EMERGENCY_LOSS && report.id >= self.calm_from {
            self.calm_from = self.monitors.next_id();
            self.base = (self.base / 2.0).max(self.min_rate);
            self.search();
            return;
        }
        match &mut self.phase {
            VivacePhase::Silent => {}
            VivacePhase::Start { last, target } => {
                if *target != Some(report.id) {
                    return;
                }
                *target = None;
                let last = *last;
                if usable {
                    self.judge_start(&seen, last);
                }
            }
            VivacePhase::Probe(probes) => {
                if !probes.add(report.id, seen) {
                    return;
                }
                let probes = *probes;
                if !usable {
                    self.search();
                } else if probes.results().is_some() {
                    self.judge_probes(&probes);
                }
            }
            VivacePhase::Move { reference_id, reference, target_id, target } => {
                if report.id == *reference_id {
                    *reference = Some(seen);
                } else if Some(report.id) == *target_id {
                    *target = Some(seen);
                } else {
                    return;
                }
                let pair = (*reference).zip(*target);
                if !usable {
                    self.search();
                } else if let Some((reference, target)) = pair {
                    self.judge_move(&reference, target, report.id);
                }
            }
        }
    }

    fn judge_start(&mut self, seen: &VivaceResult, last: Option<f64>) {
        let mut judged = *seen;
        if self.params.start == StartChoice::Tolerant {
            judged.lost = seen.lost.saturating_sub(FORGIVEN_LOST);
            judged.slope = if seen.slope.abs() < FORGIVEN_SLOPE { 0.0 } else { seen.slope };
        }
        let utility = self.utility_of(&judged);
        if last.is_none_or(|last| utility >= last) {
            self.base = (2.0 * self.base).min(MAX_RATE);
            self.phase = VivacePhase::Start { last: Some(utility), target: None };
        } else {
            self.base /= 2.0;
            self.search();
        }
    }

    fn judge_probes(&mut self, probes: &Probes<VivaceResult>) {
        let (packets, lost) = probes.more_and_less().fold((0, 0), |(packets, lost), (one, other)| {
            (packets + one.packets + other.packets, lost + one.lost + other.lost)
        });
        let common = lost as f64 / packets as f64;
        let utility = |probe: &VivaceResult| {
            let loss = if common <= SMALL_LOSS { common } else { probe.loss() };
            self.params.utility_of(probe.sent, loss, probe.slope)
        };
        // Sums over pairs: votes, and utility, rate and losses of slower and faster probes.
        let (mut votes, mut slow, mut fast) = (0, (0.0, 0.0, 0), (0.0, 0.0, 0));
        for (faster, slower) in probes.more_and_less() {
            let (low, high) = (utility(&slower), utility(&faster));
            votes += i32::from(high > low) - i32::from(high < low);
            slow = (slow.0 + low, slow.1 + slower.rate, slow.2 + slower.lost);
            fast = (fast.0 + high, fast.1 + faster.rate, fast.2 + faster.lost);
        }
        if votes == 0 {
            self.steps.previous = 0.0;
            self.search_again();
            return;
        }
        let contradiction = common >= LARGE_LOSS && fast.2 > 0 && slow.2 > fast.2 + CONTRADICTION;
        if votes > 0 && contradiction && !self.put_off {
            self.put_off = true;
            self.search_again();
            return;
        }
        self.put_off = false;
        let pairs = (probes.count() / 2) as f64;
        let mean = |sums: (f64, f64, u64)| GradientSample { utility: sums.0 / pairs, rate: sums.1 / pairs };
        let step = self.steps.step(mean(slow), mean(fast), self.base, self.least_step());
        let small = step <= SMALL_STEP * self.base;
        self.move_by(step);
        if small {
            self.search();
        } else {
            // The current interval, at the old rate, is the reference of the new one.
            let reference_id = self.monitors.next_id() - 1;
            self.phase = VivacePhase::Move { reference_id, reference: None, target_id: None, target: None };
        }
    }

    fn judge_move(&mut self, reference: &VivaceResult, target: VivaceResult, target_id: u64) {
        let (slower, faster) =
            if reference.rate < target.rate { (reference, &target) } else { (&target, reference) };
        let fewer = slower.lost.saturating_sub(faster.lost);
        if fewer > CONTRADICTION || (fewer > 0 && slower.loss() >= LARGE_LOSS) {
            self.search_again();
            return;
        }
        let sample = |seen: &VivaceResult| GradientSample { rate: seen.rate, utility: self.utility_of(seen) };
        let (from, to, previous) = (sample(reference), sample(&target), self.steps.previous);
        let step = self.steps.step(from, to, self.base, self.least_step());
        let small = step.abs() <= SMALL_STEP * self.base;
        self.move_by(step);
        if previous * step < 0.0 || small {
            self.search();
        } else {
            self.phase = VivacePhase::Move {
                reference_id: target_id,
                reference: Some(target),
                target_id: None,
                target: None,
            };
        }
    }

    fn judge_all(&mut self) {
        while let Some(report) = self.monitors.report() {
            self.judge(&report);
        }
    }
}

impl CongestionControl for Vivace {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.monitors.acked(ack.now, ack.packets);
        if self.phase == VivacePhase::Silent {
            self.monitors.clear();
            self.phase = VivacePhase::Start { last: None, target: None };
        }
        self.judge_all();
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        if self.monitors.on_loss(loss) {
            self.phase = VivacePhase::Silent;
            self.steps = GradientSteps::new(GradientRule::Vivace);
            self.base = (self.base / 2.0).max(self.min_rate);
            self.sending = self.base;
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
        let bps = (self.sending * 1e6 * self.counted.payload_share()) as u64;
        Allowance { pacing: Some(Rate::from_bps(bps.max(1000))), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match self.phase {
            VivacePhase::Start { .. } => "start",
            VivacePhase::Probe(_) => "probe",
            VivacePhase::Move { .. } => "move",
            VivacePhase::Silent => "silent",
        };
        fields.values.push(("rate_bps", self.base * 1e6));
        fields.values.push(("utility", self.last_utility));
    }
}
