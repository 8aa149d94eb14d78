use super::*;
use narrows_record::{Verdict, Versions};

fn good() -> RunMeasurements {
    RunMeasurements {
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
        endpoints: vec![EndpointMeasurements {
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
        ..RunMeasurements::default()
    }
}

fn verdict(change: impl FnOnce(&mut RunMeasurements)) -> (Verdict, Vec<String>) {
    let mut measured = good();
    change(&mut measured);
    let mut run = RunDocument::new(serde_json::json!({}), "emulate", Versions::default());
    judge(&mut run, &measured);
    assert!(run.reasons.iter().all(|reason| reason.text.ends_with('.')));
    (
        run.verdict,
        run.reasons.into_iter().map(|reason| reason.code).collect(),
    )
}

fn outcome(measured: &mut RunMeasurements) -> &mut EndpointOutcome {
    measured.endpoints[0].outcome.as_mut().unwrap()
}

#[test]
fn a_good_run_has_no_reasons() {
    assert_eq!(verdict(|_| {}), (Verdict::Ok, vec![]));
}

#[test]
fn each_defect_has_its_verdict() {
    type Change = fn(&mut RunMeasurements);
    let cases: [(Change, Verdict, &str); 23] = [
        (
            |f| f.lateness.max_ns = f.duration_ns / 16,
            Verdict::Degraded,
            "standstill",
        ),
        (
            |f| f.lateness.max_ns = f.duration_ns / 8,
            Verdict::Invalid,
            "standstill",
        ),
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
    let quiet = |f: &mut RunMeasurements| {
        f.endpoints[0].delivered = 0;
        f.endpoints[0].wanted = false;
    };
    assert_eq!(verdict(quiet), (Verdict::Ok, vec![]));
    let capped = |f: &mut RunMeasurements| {
        outcome(f).limits.rwnd_us = 500_000;
        f.endpoints[0].capped = true;
    };
    assert_eq!(verdict(capped), (Verdict::Ok, vec![]));
}

#[test]
fn long_paths_allow_more_lateness() {
    let far = |f: &mut RunMeasurements| {
        f.base_rtt_ns = 100 * MS;
        f.lateness.p99_ns = 900 * US;
    };
    assert_eq!(verdict(far).0, Verdict::Ok);
}

#[test]
fn a_saturated_emulator_that_falls_behind_is_no_result() {
    let behind = |f: &mut RunMeasurements| {
        f.effort.cpu_ns = 1100 * MS;
        f.late_by_tenth_ns = [50 * US, 0, 0, 0, 0, 0, 0, 0, 0, 9 * MS];
    };
    assert_eq!(verdict(behind).0, Verdict::Invalid);
}
