//! PCC-Expr: Vivace's utility with the growth of the round-trip time measured between the halves of an interval.
//!
//! Provenance: "PCC experimental" of the Pantheon reports, github.com/PCCproject/PCC-Uspace, commit cd43e34 (Vivace
//! rewritten in the style of QUIC implementations, on UDT). Deviations: the program multiplies the latency term by
//! bytes where Vivace uses packets, and compares the time of ten packets in seconds with microseconds, so that
//! intervals have no minimum length: both are corrected here unless `unit_defects` is set. Rates count payload
//! (`header`). Steps of fixed size are bounded by a fraction of the rate (`step_limit`), the minimum rate is lower
//! (`min_rate`) and the initial one is ten packets in 100 ms, so that slow links are not flooded. After a decision the
//! new rate is compared with the worse of the last two probes; published versions of the source use the better, which
//! often had exactly that rate. A decision is measured from the end of the current interval on, not from the next
//! packet. After a timeout of the transport the rate is halved, and the starting phase restarts from there with the
//! next acknowledgement. Application-limited intervals are not evaluated.
//!
//! An interval is one and a half smoothed round-trip times. With the rate x in Mibit/s (2^20), the loss ratio L and p,
//! the difference of the round-trip times in its second and first half over their mean, truncated to an even number of
//! hundredths, its utility is x^0.9 - c x L - 11330 x p, where c is 11.35 above 3 % of loss and 1 below. The starting
//! phase doubles the rate while utility rises and the round-trip time has not grown by 30 %. Then two pairs of
//! intervals try 5 % more and less until both agree, and steps along the gradient follow as long as they continue in
//! the same direction.
//!
//! Pitfalls: alone on a steady path the decisions fall into a cycle, the same with any seed, that depends on how steps
//! of 5 % align with the rate of the link: with `profile: pantheon`, 40 ms and a deep buffer the mean queueing delay is
//! 35 ms at 11 Mbit/s and 124 ms at 10. In that profile any growth of 2 % within an interval outweighs all else by a
//! factor of 1400, which works nevertheless because steps are bounded, and the minimum rate of 2.1 Mbit/s floods every
//! slower link. No window limits the data in flight. Like Vivace it yields to schemes that fill deep buffers.

use crate::parts::gradient::{
    Counted, GradientSteps, GradientRule, GradientSample, even_hundredths, loss_weight, worth,
};
use crate::parts::monitor_interval::{Closing, Monitors, IntervalReport};
use crate::parts::probe_intervals::Probes;
use crate::{
    AckEvent, Allowance, CongestionControl, Fields, LossEvent, Profile, Scheme, SendEvent,
    Setup,
};
use narrows_units::{Params, Rate, Span, Stream, Time, params};

#[cfg(test)]
mod tests;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "pcc-expr",
    summary: "Vivace's utility with latency growth measured between halves of an interval (PCC experimental)",
    source: "PCC-Uspace cd43e34",
    profiles: &[Profile {
        name: "pantheon",
        doc: "The program of the Pantheon reports (PCC-Uspace cd43e34): bytes for packets in the latency term, UDT packets of 1500 bytes, all of which count; at least 2 Mibit/s.",
        params: &[
            ("unit_defects", "true"),
            ("closing", "reported"),
            ("initial_rate", "11200000"),
            ("min_rate", "2097152"),
            ("step_limit", "1"),
            ("header", "56"),
        ],
        transport: &[("packet_size", "1500")],
    }],
    params: PccExprParams::PARAMS,
    build: |params, setup| Ok(Box::new(Expr::new(params, setup))),
    ..super::pcc_allegro::SCHEME
};

params! {
    /// Parameters.
    struct PccExprParams {
        /// Weight of the growth of the round-trip time.
        latency_coefficient: Number(0.0..=1e6) = 11330, "PCC-Uspace cd43e34";
        /// The latency term uses bytes instead of packets, and intervals have no minimum length.
        unit_defects: Flag = false, "true in PCC-Uspace cd43e34";
        /// An interval is evaluated when the fate of all its packets is known, or when its last packet or a later one
        /// is acknowledged.
        closing: Closing["settled",
            "reported"] = "settled", "`reported` is the program's: a report of its last packet or a later one closes it";
        /// Initial rate.
        initial_rate: Rate(1000.0..=1e11) = "1.12 Mbit/s",
            "ours: ten packets of 1400 bytes in 100 ms; PCC-Uspace has 10 ms";
        /// Minimum rate.
        min_rate: Rate(1000.0..=1e11) = "50 kbit/s", "ours; 2 Mibit/s in PCC-Uspace cd43e34";
        /// Maximum of the minimum step, as a fraction of the rate.
        step_limit: Ratio(0.01..=1.0) = 0.25, "ours; without limit, 1, in PCC-Uspace cd43e34";
        /// Bytes counted in rates per packet besides its payload.
        header: Bytes(0.0..=200.0) = 0, "ours; all 56 bytes that are no payload count in UDT's programs";
    }
}

/// The unit of rates in utilities and steps, in bit/s.
const UNIT: f64 = 1_048_576.0;
/// Size of probes as a fraction; minimum step in units; step back when a direction has ended.
const PROBE: f64 = 0.05;
const MIN_STEP: f64 = 0.5;
const BACK: f64 = 0.02;
/// Length of an interval in smoothed round-trip times, and its minimum in packets.
const ROUND_TRIPS: f64 = 1.5;
const MIN_INTERVAL_PACKETS: f64 = 10.0;
/// Growth of the round-trip time that ends the starting phase.
const START_GROWTH: f64 = 1.3;
/// The largest rate in bit/s.
const MAX_RATE: f64 = 1e11;

/// Inputs of the utility.
#[derive(Clone, Copy, Debug)]
struct ExprResult {
    packets: f64,
    bytes: f64,
    lost_bytes: f64,
    seconds: f64,
    /// Relative growth of the round-trip time.
    rise: f64,
}

impl ExprResult {
    fn utility(&self, latency_coefficient: f64, unit_defects: bool) -> f64 {
        let rate = self.bytes * 8.0 / self.seconds / UNIT;
        let loss = self.lost_bytes / self.bytes;
        let rise = even_hundredths(self.rise);
        let amount = if unit_defects { self.bytes } else { self.packets };
        let latency = latency_coefficient * (amount / self.packets) * rise;
        worth(rate, loss_weight(loss), loss) - rate * latency
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ExprPhase {
    /// The rate doubles while utility rises.
    Start { last: Option<f64> },
    /// Two pairs of probes.
    Probe,
    /// Steps in one direction, with the result of the last one.
    Decided { last: GradientSample },
    /// After a timeout, until the next acknowledgement.
    Silent,
}

/// Rates in bit/s, those of samples in units of 2^20; times in seconds.
struct Expr {
    params: PccExprParams,
    /// Bytes counted in rates.
    counted: Counted,
    /// Bits of a packet.
    packet: f64,
    min_rate: f64,
    random: Stream,
    monitors: Monitors,
    steps: GradientSteps,
    phase: ExprPhase,
    /// The base rate, and the current rate.
    rate: f64,
    sending: f64,
    /// When the current interval ends.
    end: Time,
    /// Smoothed round-trip time, now and at the start of the useful interval.
    rtt: Option<f64>,
    rtt_at_start: f64,
    /// Intervals on which the next decision is based.
    probes: Probes<GradientSample>,
    utility: f64,
}

impl Expr {
    fn new(params: &Params, setup: Setup) -> Self {
        let params = PccExprParams::read(params);
        let min_rate = params.min_rate.bps() as f64;
        let initial = (params.initial_rate.bps() as f64).max(min_rate);
        let counted = Counted::new(params.header.get(), setup.mss.get());
        Expr {
            counted,
            packet: counted.packet() * 8.0,
            min_rate,
            random: setup.random,
            monitors: Monitors::new(params.closing),
            params,
            steps: GradientSteps::new(GradientRule::Expr),
            phase: ExprPhase::Start { last: None },
            rate: initial,
            sending: initial,
            end: setup.now,
            rtt: None,
            rtt_at_start: 0.0,
            probes: Probes::single(),
            utility: 0.0,
        }
    }

    /// Begins a phase at `rate`: pending measurements are discarded.
    fn enter(&mut self, phase: ExprPhase, rate: f64) {
        self.phase = phase;
        self.rate = rate.clamp(self.min_rate, MAX_RATE);
        self.sending = self.rate;
        self.probes = match phase {
            ExprPhase::Start { .. } | ExprPhase::Decided { .. } => Probes::single(),
            ExprPhase::Probe => Probes::pairs(2, &mut self.random),
            ExprPhase::Silent => Probes::none(),
        };
    }

    fn begin(&mut self, now: Time, rtt: f64) {
        self.sending = self.rate;
        if let Some(sign) = self.probes.begin(self.monitors.next_id()) {
            self.rtt_at_start = rtt;
            self.sending = (self.rate * (1.0 + sign * PROBE)).clamp(self.min_rate, MAX_RATE);
        }
        self.monitors.begin(now, self.sending);
        let fewest = if self.params.unit_defects { 0.0 } else { MIN_INTERVAL_PACKETS * self.packet / self.sending };
        self.end = now + Span::from_secs((ROUND_TRIPS * rtt).max(fewest));
    }

    fn judge(&mut self, report: &IntervalReport) {
        if !self.probes.contains(report.id) {
            return;
        }
        if report.first_to_last.is_zero() || report.app_limited {
            // A single packet, or an application-limited interval, is inconclusive.
            self.probes.restart();
            self.sending = self.rate;
            return;
        }
        let outcome = ExprResult {
            packets: report.packets as f64,
            bytes: self.counted.bytes(report.bytes, report.packets),
            lost_bytes: self.counted.bytes(report.lost_bytes, report.lost),
            seconds: report.first_to_last.secs(),
            rise: report.rise,
        };
        self.utility = outcome.utility(self.params.latency_coefficient, self.params.unit_defects);
        self.probes.add(report.id, GradientSample { rate: report.rate / UNIT, utility: self.utility });
        let probes = self.probes;
        match probes.results() {
            Some(&[Some(only)]) => self.judge_step(only),
            Some(&[Some(first), Some(second), Some(third), Some(fourth)]) => {
                self.judge_pairs([first, second], [third, fourth]);
            }
            _ => {}
        }
    }

    fn step(&mut self, from: GradientSample, to: GradientSample) -> f64 {
        let base = self.rate / UNIT;
        let least = MIN_STEP.min(self.params.step_limit * base);
        self.steps.step(from, to, base, least) * UNIT
    }

    /// Evaluates an interval of the starting phase, or the step before it.
    fn judge_step(&mut self, sample: GradientSample) {
        match self.phase {
            ExprPhase::Silent | ExprPhase::Probe => {}
            ExprPhase::Start { last } => {
                if last.is_none_or(|last| sample.utility > last) {
                    self.enter(ExprPhase::Start { last: Some(sample.utility) }, 2.0 * self.rate);
                } else {
                    self.enter(ExprPhase::Probe, self.rate / 2.0);
                }
            }
            ExprPhase::Decided { last } => {
                let previous = self.steps.previous;
                let step = self.step(last, sample);
                if previous * step > 0.0 {
                    self.enter(ExprPhase::Decided { last: sample }, self.rate + step);
                } else {
                    self.enter(ExprPhase::Probe, self.rate / (1.0 + BACK.copysign(previous)));
                }
            }
        }
    }

    fn judge_pairs(&mut self, [first, second]: [GradientSample; 2], [third, fourth]: [GradientSample; 2]) {
        let up = |one: GradientSample, other: GradientSample| (one.rate > other.rate) == (one.utility > other.utility);
        if up(first, second) != up(third, fourth) {
            self.enter(ExprPhase::Probe, self.rate);
            return;
        }
        // The next rate is compared with the worse of the probes: the better one may have had the same rate.
        let last = if third.utility < fourth.utility { third } else { fourth };
        let step = self.step(first, second);
        self.enter(ExprPhase::Decided { last }, self.rate + step);
    }

    fn judge_all(&mut self) {
        while let Some(report) = self.monitors.report() {
            self.judge(&report);
        }
    }
}

impl CongestionControl for Expr {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        // After lost acknowledgements only the newest packet reflects the current round-trip time.
        if let Some(newest) = ack.packets.last() {
            let rtt = ack.now.since(newest.sent).secs();
            self.rtt = Some(self.rtt.map_or(rtt, |known| (3.0 * known + rtt) / 4.0));
        }
        self.monitors.acked(ack.now, ack.packets);
        let grown = self.rtt.is_some_and(|rtt| rtt > START_GROWTH * self.rtt_at_start);
        match self.phase {
            ExprPhase::Silent => {
                self.monitors.clear();
                self.enter(ExprPhase::Start { last: None }, self.rate);
            }
            ExprPhase::Start { .. } if self.probes.has_begun() && grown => {
                self.enter(ExprPhase::Probe, self.rate / 2.0);
            }
            _ => {}
        }
        self.judge_all();
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        if self.monitors.on_loss(loss) {
            self.steps = GradientSteps::new(GradientRule::Expr);
            self.enter(ExprPhase::Silent, self.rate / 2.0);
        }
        self.judge_all();
    }

    fn on_send(&mut self, send: &SendEvent) {
        // Before a round-trip time is known the length of an interval is undefined.
        let Some(rtt) = self.rtt else {
            return;
        };
        if !self.monitors.is_sending() || send.now >= self.end {
            self.begin(send.now, rtt);
        }
        self.monitors.sent(send);
    }

    fn allowance(&self) -> Allowance {
        let payload = self.sending * self.counted.payload_share();
        Allowance { pacing: Some(Rate::from_bps(payload as u64)), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match self.phase {
            ExprPhase::Start { .. } => "start",
            ExprPhase::Probe => "probe",
            ExprPhase::Decided { .. } => "move",
            ExprPhase::Silent => "silent",
        };
        fields.values.push(("rate_bps", self.rate));
        fields.values.push(("utility", self.utility));
    }
}
