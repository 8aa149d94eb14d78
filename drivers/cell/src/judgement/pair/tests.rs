use super::*;
use narrows_record::{Verdict, Versions};

fn host(name: &'static str) -> HostMeasurements {
    HostMeasurements {
        name,
        stolen_ratio: 0.0,
        clock_step_ns: 0,
        engine_ratio: 0.3,
        sent: 99_000,
        arrived: 99_000,
        repeated: 50,
        ring: 0,
        unsent: 0,
        socket: 0,
        undelivered: 0,
        sessions: 1,
        reason: "stopped".to_owned(),
        path_bytes: Some(1500),
        needed_bytes: 1500,
        waited_ns: 80 * US,
        remarks: Vec::new(),
        doubt: None,
    }
}

fn good() -> PairMeasurements {
    let way = |direction| DirectionMeasurements {
        direction,
        spread_ns: Some(20 * MS),
        resolved: true,
        unknown: 0,
        contradicting: 0,
        negative: 0,
        dead_ns: 900 * MS,
    };
    PairMeasurements {
        duration_ns: 30_000 * MS,
        tunnel: true,
        error_ns: 5 * MS,
        lines: 1,
        jumps: 0,
        starts_apart_ns: MS,
        base_rtt_ns: 10 * MS,
        missed_calls: Vec::new(),
        hosts: [host("sender"), host("receiver")],
        ways: [way(Direction::Forward), way(Direction::Backward)],
    }
}

fn verdict(change: impl FnOnce(&mut PairMeasurements)) -> (Verdict, Vec<String>) {
    let mut measured = good();
    change(&mut measured);
    let mut run = RunDocument::new(serde_json::json!({}), "hosts", Versions::default());
    judge_pair(&mut run, &measured, &[]);
    assert!(run.reasons.iter().all(|reason| reason.text.ends_with('.')));
    let codes = run.reasons.into_iter().map(|reason| reason.code);
    (run.verdict, codes.collect())
}

#[test]
fn a_good_run_has_no_reasons() {
    assert_eq!(verdict(|_| {}), (Verdict::Ok, vec![]));
}

#[test]
fn each_defect_has_its_verdict() {
    type Change = fn(&mut PairMeasurements);
    let cases: [(Change, Verdict, &str); 25] = [
        (
            |f| f.hosts[0].waited_ns = 300 * US,
            Verdict::Ok,
            "tunnel_waits",
        ),
        (
            |f| f.hosts[1].waited_ns = 3 * MS,
            Verdict::Degraded,
            "tunnel_late",
        ),
        (|f| f.tunnel = false, Verdict::Ok, "ends_only"),
        (|f| f.jumps = 1, Verdict::Invalid, "clock"),
        (|f| f.lines = 2, Verdict::Degraded, "clock"),
        (
            |f| f.starts_apart_ns = 200 * MS,
            Verdict::Degraded,
            "starts",
        ),
        (
            |f| f.missed_calls.push(("bpf:exp".to_owned(), 2)),
            Verdict::Degraded,
            "missed_calls",
        ),
        (|f| f.ways[0].resolved = false, Verdict::Ok, "clock_bound"),
        (|f| f.ways[1].unknown = 1, Verdict::Invalid, "strangers"),
        (
            |f| f.ways[1].contradicting = 1,
            Verdict::Invalid,
            "strangers",
        ),
        (
            |f| f.ways[0].negative = 1,
            Verdict::Degraded,
            "negative_delays",
        ),
        (
            |f| f.hosts[1].stolen_ratio = 0.2,
            Verdict::Degraded,
            "stolen",
        ),
        (
            |f| f.hosts[1].clock_step_ns = -(5 * MS as i64),
            Verdict::Degraded,
            "clock_step",
        ),
        (
            |f| f.hosts[0].engine_ratio = 0.99,
            Verdict::Degraded,
            "tunnel_saturated",
        ),
        (|f| f.hosts[0].ring = 1, Verdict::Degraded, "lost_here"),
        (|f| f.hosts[0].unsent = 100, Verdict::Invalid, "lost_here"),
        (|f| f.hosts[1].socket = 100, Verdict::Invalid, "lost_here"),
        (
            |f| f.hosts[1].undelivered = 2,
            Verdict::Degraded,
            "lost_here",
        ),
        (
            |f| f.hosts[0].remarks.push("it is cut".into()),
            Verdict::Invalid,
            "log",
        ),
        (
            |f| f.hosts[0].reason = "silence".into(),
            Verdict::Invalid,
            "tunnel_broke",
        ),
        (
            |f| f.hosts[1].sessions = 2,
            Verdict::Degraded,
            "tunnel_broke",
        ),
        (
            |f| f.ways[0].dead_ns = 1500 * MS,
            Verdict::Degraded,
            "path_dead",
        ),
        (|f| f.hosts[0].repeated = 2_000, Verdict::Ok, "path_copies"),
        (
            |f| f.hosts[1].doubt = Some("a third party sends copies".into()),
            Verdict::Ok,
            "copies",
        ),
        (
            |f| f.hosts[1].path_bytes = Some(1480),
            Verdict::Ok,
            "path_mtu",
        ),
    ];
    for (change, expected, code) in cases {
        assert_eq!(verdict(change), (expected, vec![code.to_owned()]));
    }
}

#[test]
fn long_runs_need_several_lines() {
    let long = |f: &mut PairMeasurements| {
        f.duration_ns = 2_500_000 * MS;
        f.lines = 3;
    };
    assert_eq!(verdict(long), (Verdict::Ok, vec![]));
}
