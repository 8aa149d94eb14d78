//! The judgement of a live run: reasons against using it as a result.
//!
//! Thresholds are stated here and nowhere else. "Invalid" means that the numbers depend on the machine and not on the
//! scheme; "degraded" that a careful reader needs to know.

mod pair;
mod program;

use crate::Silence;
use crate::outcome::{EndpointOutcome, Role, TcpLimits};
use narrows_record::{Lateness, RunDocument, Severity};
pub use pair::{DirectionMeasurements, HostMeasurements, PairMeasurements, judge_pair};
pub use program::{Conversation, ProgramMeasurements, ProgramTraffic, SentTraffic, judge_program};
use std::collections::BTreeMap;

/// Processor time and waits of the emulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmulatorEffort {
    /// Batches that an interface did not accept completely at once.
    pub retries: u64,
    /// Processor time used during the run, waiting included.
    pub cpu_ns: u64,
    /// Time spent ready to run but without a processor.
    pub starved_ns: u64,
    /// Processor time spent waiting.
    pub spin_ns: u64,
}

impl EmulatorEffort {
    /// The combination of two threads: the sum of retries, the maximum of the others.
    #[must_use]
    pub fn worst(self, other: EmulatorEffort) -> Self {
        let more = other.work_ratio(1) > self.work_ratio(1);
        let busier = if more { other } else { self };
        EmulatorEffort {
            retries: self.retries + other.retries,
            starved_ns: self.starved_ns.max(other.starved_ns),
            ..busier
        }
    }

    /// Share of a processor that was used for work in a run of this length.
    pub fn work_ratio(&self, duration_ns: u64) -> f64 {
        self.cpu_ns.saturating_sub(self.spin_ns) as f64 / duration_ns.max(1) as f64
    }
}

/// Frames that could not be treated as packets of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedFrames {
    /// No memory was available for them.
    pub no_memory: u64,
    /// They were not IPv4 packets.
    pub foreign: u64,
    /// They were sent after their flow had stopped.
    pub after_stop: u64,
    /// The network has no route from their host to their destination.
    pub no_route: u64,
}

impl RefusedFrames {
    /// Adds the counters of another thread.
    pub fn add(&mut self, other: RefusedFrames) {
        self.no_memory += other.no_memory;
        self.foreign += other.foreign;
        self.after_stop += other.after_stop;
        self.no_route += other.no_route;
    }
}

/// Measurements of the run itself.
#[derive(Clone, Debug, Default)]
pub struct RunMeasurements {
    /// Length of the run.
    pub duration_ns: u64,
    /// Smallest round-trip time of the path without queues.
    pub base_rtt_ns: u64,
    /// Lateness of packets in ns: from the time at which each was due until it was sent.
    pub lateness: Lateness,
    /// Median lateness in each tenth of the run.
    pub late_by_tenth_ns: [u64; 10],
    /// Processor time and waits of the emulator.
    pub effort: EmulatorEffort,
    /// Frames that the rings dropped.
    pub ring_drops: u64,
    /// Frames lost between a host and the emulator, by the counters on both sides.
    pub wire_losses: u64,
    /// Frames that the emulator did not admit.
    pub refused: RefusedFrames,
    /// Step of the wall clock during the run.
    pub clock_step_ns: i64,
    /// Share of all processor time that the hypervisor took.
    pub stolen_ratio: f64,
    /// Calls that the kernel omitted, by the name of the scheme whose program detected it.
    pub missed_calls: BTreeMap<String, u64>,
    /// The endpoints.
    pub endpoints: Vec<EndpointMeasurements>,
}

/// Measurements of one endpoint.
#[derive(Clone, Debug)]
pub struct EndpointMeasurements {
    /// Number of its flow.
    pub flow: u16,
    /// The end of the flow.
    pub role: Role,
    /// True if any packet of its flow had to arrive.
    pub wanted: bool,
    /// True if the settings of a host are meant to limit its windows.
    pub capped: bool,
    /// Duration of its flow.
    pub active_ns: u64,
    /// Packets of the flow that arrived at the other host.
    pub delivered: u64,
    /// Its report; `None` if it never reported.
    pub outcome: Option<EndpointOutcome>,
    /// The failure with which it ended, if any.
    pub failure: Option<String>,
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Delay of an endpoint beyond which it is reported: several times the wait of a process that shares its processor with
/// another.
const HELD_UP_NS: u64 = 10 * MS;
/// Minimum share of a run, and thus of throughput, that a standstill must take to count: the same as for waiting for a
/// processor.
const MIN_STANDSTILL: f64 = 0.05;

/// Adds all reasons to `run` and sets its verdict.
pub fn judge(run: &mut RunDocument, measured: &RunMeasurements) {
    judge_lateness(run, measured);
    judge_emulator(run, measured);
    for (scheme, count) in &measured.missed_calls {
        judge_missed(run, scheme, *count);
    }
    judge_endpoints(run, &measured.endpoints);
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn judge_lateness(run: &mut RunDocument, measured: &RunMeasurements) {
    let late = &measured.lateness;
    let limit = (2 * MS).max(measured.base_rtt_ns / 10);
    let wish = (200 * US).max(measured.base_rtt_ns / 100);
    let text = |limit: u64| {
        format!(
            "The emulator released 1 % of the packets more than {:.0} us late (limit: {:.0} us).",
            us(late.p99_ns),
            us(limit)
        )
    };
    if late.p99_ns > limit {
        run.judge(Severity::Invalid, "lateness", text(limit));
    } else if late.p99_ns > wish {
        run.judge(Severity::Degraded, "lateness", text(wish));
    }
    if late.p50_ns > 100 * US && late.p99_ns <= limit {
        let text = format!(
            "Half of the packets left more than {:.0} us late.",
            us(late.p50_ns)
        );
        run.judge(Severity::Degraded, "lateness", text);
    }
    // During a complete standstill flows send nothing, so that few packets are late.
    let stood = late.max_ns as f64 / measured.duration_ns.max(1) as f64;
    if stood > MIN_STANDSTILL {
        let text = format!(
            "The emulator stood still for {:.1} s, {:.0} % of the run.",
            us(late.max_ns) / 1e6,
            stood * 100.0
        );
        run.judge(
            Severity::invalid_if(stood > 2.0 * MIN_STANDSTILL),
            "standstill",
            text,
        );
        return;
    }
    // Too few packets to change a percentile of a flow, but visible as spikes in its figures.
    if late.p99_ns <= wish && late.max_ns > limit {
        let text = format!(
            "The latest packet left {:.1} ms late, which shows as a spike of delay; 99.9 % left at \
             most {:.1} ms late.",
            us(late.max_ns) / 1e3,
            us(late.p999_ns) / 1e3
        );
        run.judge(Severity::Note, "lateness_spike", text);
    }
}

fn judge_emulator(run: &mut RunDocument, measured: &RunMeasurements) {
    let duration = measured.duration_ns.max(1) as f64;
    let work = measured.effort.work_ratio(measured.duration_ns);
    let [first, .., last] = measured.late_by_tenth_ns;
    if work > 0.97 {
        let growing = last > 4 * first.max(100 * US);
        let severity = Severity::invalid_if(growing || measured.lateness.p50_ns > MS);
        let text = format!(
            "The emulator was busy {:.0} % of the time and was itself the limit of the path.",
            work * 100.0
        );
        run.judge(severity, "emulator_saturated", text);
    }
    let starved = measured.effort.starved_ns as f64 / duration;
    if starved > 0.05 {
        let text = format!(
            "The emulator had to wait for a processor {:.1} % of the time.",
            starved * 100.0
        );
        run.judge(Severity::Degraded, "emulator_starved", text);
    }
    judge_stolen(run, measured.stolen_ratio, "");
    let lost = |count: u64, code: &str, what: &str, run: &mut RunDocument| {
        if count > 0 {
            run.judge(Severity::Invalid, code, format!("{count} packets {what}."));
        }
    };
    lost(
        measured.ring_drops,
        "ring_drops",
        "were lost because the emulator did not keep up",
        run,
    );
    lost(
        measured.wire_losses,
        "wire_losses",
        "were lost between the hosts and the emulator",
        run,
    );
    lost(
        measured.refused.no_memory,
        "no_memory",
        "found no free memory in the emulator",
        run,
    );
    lost(
        measured.refused.foreign,
        "foreign",
        "on the wires were not IPv4",
        run,
    );
    lost(
        measured.refused.no_route,
        "no_route",
        "were sent to where the network has no route",
        run,
    );
    if measured.clock_step_ns.unsigned_abs() > 100 * US {
        let text = format!(
            "The wall clock was set by {:.3} ms during the run, and packet stamps with it.",
            measured.clock_step_ns as f64 / 1e6
        );
        run.judge(Severity::Invalid, "clock_step", text);
    }
}

fn judge_missed(run: &mut RunDocument, scheme: &str, count: u64) {
    let text = format!(
        "The kernel did not ask {scheme} for the window after a loss or a mark ({count} times), used a wrong one and sent a burst."
    );
    run.judge(Severity::Degraded, "missed_calls", text);
}

/// `whose` follows the processor time in the sentence.
fn judge_stolen(run: &mut RunDocument, ratio: f64, whose: &str) {
    if ratio > 0.05 {
        let text = format!(
            "The hypervisor took {:.0} % of the processor time{whose} away.",
            ratio * 100.0
        );
        run.judge(Severity::Degraded, "stolen", text);
    }
}

fn judge_endpoints(run: &mut RunDocument, endpoints: &[EndpointMeasurements]) {
    let silent =
        |end: &&EndpointMeasurements| end.role == Role::Sender && end.delivered == 0 && end.wanted;
    let mut texts = BTreeMap::new();
    if endpoints.iter().any(|end| silent(&end)) {
        let silence = Silence::new(run);
        texts = endpoints
            .iter()
            .filter(silent)
            .map(|end| {
                let missing = format!("No packet of flow {}", end.flow);
                (end.flow, silence.sentence(&missing, end.flow))
            })
            .collect();
    }
    for endpoint in endpoints {
        let text = silent(&endpoint)
            .then(|| texts.get(&endpoint.flow).cloned())
            .flatten();
        judge_endpoint(run, endpoint, text);
    }
}

/// `silent` is the sentence that nothing of its flow arrived, if it was the sender of such a flow.
fn judge_endpoint(run: &mut RunDocument, endpoint: &EndpointMeasurements, silent: Option<String>) {
    let (flow, role) = (endpoint.flow, endpoint.role.name());
    if let Some(failure) = &endpoint.failure {
        let text = format!("The {role} of flow {flow} {failure}.");
        run.judge(Severity::Invalid, "process_died", text);
    }
    if let Some(text) = silent {
        run.judge(Severity::Invalid, "silent", text);
    }
    let Some(outcome) = &endpoint.outcome else {
        return;
    };
    if let Some(problem) = &outcome.problem {
        run.judge(
            Severity::Invalid,
            "endpoint",
            format!("Flow {flow}, {role}: {problem}."),
        );
    }
    if outcome.socket_drops > 0 {
        let text = format!(
            "The socket of flow {flow}'s {role} dropped {} datagrams because its buffer was full.",
            outcome.socket_drops
        );
        run.judge(Severity::Invalid, "socket_drops", text);
    }
    let waited = outcome.wait_ns as f64 / endpoint.active_ns.max(1) as f64;
    if waited > 0.10 {
        let severity = Severity::invalid_if(waited > 0.25);
        let text = format!(
            "The {role} of flow {flow} had to wait for a processor {:.0} % of the time, so the \
             machine was the limit and not the path.",
            waited * 100.0
        );
        run.judge(severity, "endpoint_starved", text);
    }
    // Too short to be a significant share of the run, but visible as a gap in the flow's packets or as a late answer.
    if waited <= 0.10 && outcome.latest_ns > HELD_UP_NS {
        let text = format!(
            "The {role} of flow {flow} was held up for {:.1} ms by the machine, which shows as a gap in its packets.",
            us(outcome.latest_ns) / 1e3
        );
        run.judge(Severity::Note, "endpoint_held_up", text);
    }
    judge_limits(run, flow, &outcome.limits, endpoint.capped);
}

fn judge_limits(run: &mut RunDocument, flow: u16, limits: &TcpLimits, capped: bool) {
    if limits.samples >= 20 {
        let share = limits.starved as f64 / limits.samples as f64;
        if share > 0.05 {
            let severity = Severity::invalid_if(share > 0.25);
            let text = format!(
                "Flow {flow} had no data ready in {:.0} % of the samples: the sending program was \
                 the limit.",
                share * 100.0
            );
            run.judge(severity, "sender_starved", text);
        }
    }
    if capped {
        return;
    }
    let busy = limits.busy_us.max(1) as f64;
    let buffers = [
        (limits.rwnd_us, "receive_window", "receiver's window"),
        (limits.sndbuf_us, "send_buffer", "send buffer"),
    ];
    for (time, code, name) in buffers {
        let share = time as f64 / busy;
        if share > 0.01 {
            let text = format!(
                "The {name} limited flow {flow} {:.1} % of the time.",
                share * 100.0
            );
            run.judge(Severity::Degraded, code, text);
        }
    }
}

#[cfg(test)]
mod tests;
