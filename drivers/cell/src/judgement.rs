//! The judgement of a live run: what speaks against taking it as a result.
//!
//! Thresholds are stated here and nowhere else. "Invalid" means that the numbers say something
//! about the machine and not about the scheme; "degraded" that a careful reader would want to know.

mod pair;

use crate::outcome::{EndpointOutcome, Role, TcpLimits};
use narrows_record::{Lateness, RunDocument, Severity};
pub use pair::{HostFacts, PairFacts, WayFacts, judge_pair};
use std::collections::BTreeMap;

/// What the emulation cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmulatorEffort {
    /// Batches that an interface did not take in full at once.
    pub retries: u64,
    /// Processor time used during the run, waiting included.
    pub cpu_ns: u64,
    /// Time spent ready to run but without a processor.
    pub starved_ns: u64,
    /// Processor time spent waiting.
    pub spin_ns: u64,
}

/// Frames that could not be treated as packets of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedFrames {
    /// No memory was left for them.
    pub no_memory: u64,
    /// They were no IPv4 packets.
    pub foreign: u64,
    /// Their sender should have been silent already: its flow had stopped.
    pub after_stop: u64,
    /// There was no way from their host to their destination.
    pub no_route: u64,
}

/// What was measured of the run itself.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Length of the run.
    pub duration_ns: u64,
    /// Smallest round-trip time of the path without queues.
    pub base_rtt_ns: u64,
    /// How late packets left.
    pub lateness: Lateness,
    /// Median lateness in each tenth of the run.
    pub late_by_tenth_ns: [u64; 10],
    /// What the emulation cost.
    pub effort: EmulatorEffort,
    /// Frames that the rings dropped.
    pub ring_drops: u64,
    /// Frames lost between a host and the emulator, by the counters on both sides.
    pub wire_losses: u64,
    /// What the emulator did not let in.
    pub refused: RefusedFrames,
    /// How far the wall clock was set during the run.
    pub clock_step_ns: i64,
    /// Share of all processor time that the hypervisor took.
    pub stolen_ratio: f64,
    /// Calls that the kernel left out, by the name of the scheme whose program noticed it.
    pub missed_calls: BTreeMap<String, u64>,
    /// The endpoints.
    pub endpoints: Vec<EndpointFacts>,
}

/// What is known of one endpoint at the end.
#[derive(Clone, Debug)]
pub struct EndpointFacts {
    /// Number of its flow.
    pub flow: u16,
    /// Which end.
    pub role: Role,
    /// Whether any packet of its flow had to arrive.
    pub wanted: bool,
    /// Whether the settings of a host are meant to limit its windows.
    pub capped: bool,
    /// How long its flow lasted.
    pub active_ns: u64,
    /// Packets of the flow that arrived at the other host.
    pub delivered: u64,
    /// What it reported; `None` if it never did.
    pub outcome: Option<EndpointOutcome>,
    /// How it ended, if not as it should.
    pub failure: Option<String>,
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// An endpoint that notices something later than this is told of: several times what a scheduler lets a process wait
/// that shares its processor with another.
const HELD_UP_NS: u64 = 10 * MS;

/// Adds all reasons to `run` and sets its verdict.
pub fn judge(run: &mut RunDocument, facts: &RunFacts) {
    judge_lateness(run, facts);
    judge_emulator(run, facts);
    for (scheme, count) in &facts.missed_calls {
        judge_missed(run, scheme, *count);
    }
    for endpoint in &facts.endpoints {
        judge_endpoint(run, endpoint);
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn judge_lateness(run: &mut RunDocument, facts: &RunFacts) {
    let late = &facts.lateness;
    let limit = (2 * MS).max(facts.base_rtt_ns / 10);
    let wish = (200 * US).max(facts.base_rtt_ns / 100);
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

fn judge_emulator(run: &mut RunDocument, facts: &RunFacts) {
    let duration = facts.duration_ns.max(1) as f64;
    let work = facts.effort.cpu_ns.saturating_sub(facts.effort.spin_ns) as f64 / duration;
    let [first, .., last] = facts.late_by_tenth_ns;
    if work > 0.97 {
        let growing = last > 4 * first.max(100 * US);
        let severity = if growing || facts.lateness.p50_ns > MS {
            Severity::Invalid
        } else {
            Severity::Degraded
        };
        let text = format!(
            "The emulator was busy {:.0} % of the time and was itself the limit of the path.",
            work * 100.0
        );
        run.judge(severity, "emulator_saturated", text);
    }
    let starved = facts.effort.starved_ns as f64 / duration;
    if starved > 0.05 {
        let text = format!(
            "The emulator had to wait for a processor {:.1} % of the time.",
            starved * 100.0
        );
        run.judge(Severity::Degraded, "emulator_starved", text);
    }
    judge_stolen(run, facts.stolen_ratio, "");
    let lost = |count: u64, code: &str, what: &str, run: &mut RunDocument| {
        if count > 0 {
            run.judge(Severity::Invalid, code, format!("{count} packets {what}."));
        }
    };
    lost(
        facts.ring_drops,
        "ring_drops",
        "were lost because the emulator did not keep up",
        run,
    );
    lost(
        facts.wire_losses,
        "wire_losses",
        "were lost between the hosts and the emulator",
        run,
    );
    lost(
        facts.refused.no_memory,
        "no_memory",
        "found no memory left in the emulator",
        run,
    );
    lost(
        facts.refused.foreign,
        "foreign",
        "on the wires were none of IPv4",
        run,
    );
    lost(
        facts.refused.no_route,
        "no_route",
        "were sent to where the network has no route",
        run,
    );
    if facts.clock_step_ns.unsigned_abs() > 100 * US {
        let text = format!(
            "The wall clock was set by {:.3} ms during the run, and packet stamps with it.",
            facts.clock_step_ns as f64 / 1e6
        );
        run.judge(Severity::Invalid, "clock_step", text);
    }
}

fn judge_missed(run: &mut RunDocument, scheme: &str, count: u64) {
    let text = format!(
        "The kernel did not ask {scheme} for the window after a loss or a mark ({count} times), took a wrong one \
         and sent a burst."
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

fn judge_endpoint(run: &mut RunDocument, endpoint: &EndpointFacts) {
    let (flow, role) = (endpoint.flow, endpoint.role.name());
    if let Some(failure) = &endpoint.failure {
        let text = format!("The {role} of flow {flow} {failure}.");
        run.judge(Severity::Invalid, "process_died", text);
    }
    if endpoint.role == Role::Sender && endpoint.delivered == 0 && endpoint.wanted {
        let text = format!("No packet of flow {flow} arrived.");
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
        let severity = if waited > 0.25 {
            Severity::Invalid
        } else {
            Severity::Degraded
        };
        let text = format!(
            "The {role} of flow {flow} had to wait for a processor {:.0} % of the time, so the \
             machine was the limit and not the path.",
            waited * 100.0
        );
        run.judge(severity, "endpoint_starved", text);
    }
    // Too short to be a share of the run, but visible as a gap in what the flow sends or as a late answer.
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
            let severity = if share > 0.25 {
                Severity::Invalid
            } else {
                Severity::Degraded
            };
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
mod tests {
    use super::*;
    use narrows_record::{Verdict, Versions};

    fn good() -> RunFacts {
        RunFacts {
            duration_ns: 1000 * MS,
            base_rtt_ns: 10 * MS,
            lateness: Lateness {
                packets: 1000,
                p50_ns: 4 * US,
                p99_ns: 80 * US,
                ..Lateness::default()
            },
            effort: EmulatorEffort {
                cpu_ns: 700 * MS,
                spin_ns: 100 * MS,
                ..EmulatorEffort::default()
            },
            endpoints: vec![EndpointFacts {
                flow: 1,
                role: Role::Sender,
                wanted: true,
                capped: false,
                active_ns: 1000 * MS,
                delivered: 1000,
                outcome: Some(EndpointOutcome {
                    limits: TcpLimits {
                        busy_us: 1_000_000,
                        samples: 100,
                        ..TcpLimits::default()
                    },
                    ..EndpointOutcome::default()
                }),
                failure: None,
            }],
            ..RunFacts::default()
        }
    }

    fn verdict(change: impl FnOnce(&mut RunFacts)) -> (Verdict, Vec<String>) {
        let mut facts = good();
        change(&mut facts);
        let mut run = RunDocument::new(serde_json::json!({}), "emulate", Versions::default());
        judge(&mut run, &facts);
        assert!(run.reasons.iter().all(|reason| reason.text.ends_with('.')));
        (
            run.verdict,
            run.reasons.into_iter().map(|reason| reason.code).collect(),
        )
    }

    fn outcome(facts: &mut RunFacts) -> &mut EndpointOutcome {
        facts.endpoints[0].outcome.as_mut().unwrap()
    }

    #[test]
    fn a_good_run_has_no_reasons() {
        assert_eq!(verdict(|_| {}), (Verdict::Ok, vec![]));
    }

    #[test]
    fn each_defect_has_its_verdict() {
        type Change = fn(&mut RunFacts);
        let cases: [(Change, Verdict, &str); 21] = [
            (
                |f| f.lateness.max_ns = 20 * MS,
                Verdict::Ok,
                "lateness_spike",
            ),
            (
                |f| f.lateness.p99_ns = 300 * US,
                Verdict::Degraded,
                "lateness",
            ),
            (
                |f| f.lateness.p50_ns = 150 * US,
                Verdict::Degraded,
                "lateness",
            ),
            (|f| f.lateness.p99_ns = 3 * MS, Verdict::Invalid, "lateness"),
            (
                |f| f.effort.cpu_ns = 1090 * MS,
                Verdict::Degraded,
                "emulator_saturated",
            ),
            (
                |f| f.effort.starved_ns = 90 * MS,
                Verdict::Degraded,
                "emulator_starved",
            ),
            (|f| f.stolen_ratio = 0.2, Verdict::Degraded, "stolen"),
            (
                |f| f.missed_calls = [("bpf:exp".to_owned(), 2)].into(),
                Verdict::Degraded,
                "missed_calls",
            ),
            (|f| f.ring_drops = 1, Verdict::Invalid, "ring_drops"),
            (|f| f.wire_losses = 1, Verdict::Invalid, "wire_losses"),
            (|f| f.refused.no_memory = 1, Verdict::Invalid, "no_memory"),
            (|f| f.refused.no_route = 1, Verdict::Invalid, "no_route"),
            (
                |f| f.clock_step_ns = -(5 * MS as i64),
                Verdict::Invalid,
                "clock_step",
            ),
            (
                |f| f.endpoints[0].failure = Some("was killed".into()),
                Verdict::Invalid,
                "process_died",
            ),
            (|f| f.endpoints[0].delivered = 0, Verdict::Invalid, "silent"),
            (
                |f| outcome(f).problem = Some("x".into()),
                Verdict::Invalid,
                "endpoint",
            ),
            (
                |f| outcome(f).socket_drops = 3,
                Verdict::Invalid,
                "socket_drops",
            ),
            (
                |f| outcome(f).wait_ns = 150 * MS,
                Verdict::Degraded,
                "endpoint_starved",
            ),
            (
                |f| outcome(f).latest_ns = 11 * MS,
                Verdict::Ok,
                "endpoint_held_up",
            ),
            (
                |f| outcome(f).limits.starved = 40,
                Verdict::Invalid,
                "sender_starved",
            ),
            (
                |f| outcome(f).limits.rwnd_us = 50_000,
                Verdict::Degraded,
                "receive_window",
            ),
        ];
        for (change, expected, code) in cases {
            assert_eq!(verdict(change), (expected, vec![code.to_owned()]));
        }
    }

    #[test]
    fn silence_and_limits_that_were_asked_for_are_no_defects() {
        let quiet = |f: &mut RunFacts| {
            f.endpoints[0].delivered = 0;
            f.endpoints[0].wanted = false;
        };
        assert_eq!(verdict(quiet), (Verdict::Ok, vec![]));
        let capped = |f: &mut RunFacts| {
            outcome(f).limits.rwnd_us = 500_000;
            f.endpoints[0].capped = true;
        };
        assert_eq!(verdict(capped), (Verdict::Ok, vec![]));
    }

    #[test]
    fn long_paths_allow_more_lateness() {
        let far = |f: &mut RunFacts| {
            f.base_rtt_ns = 100 * MS;
            f.lateness.p99_ns = 900 * US;
        };
        assert_eq!(verdict(far).0, Verdict::Ok);
    }

    #[test]
    fn a_saturated_emulator_that_falls_behind_is_no_result() {
        let behind = |f: &mut RunFacts| {
            f.effort.cpu_ns = 1100 * MS;
            f.late_by_tenth_ns = [50 * US, 0, 0, 0, 0, 0, 0, 0, 0, 9 * MS];
        };
        assert_eq!(verdict(behind).0, Verdict::Invalid);
    }
}
