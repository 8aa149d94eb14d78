use super::*;
use crate::{EndPlan, ProgramLimits, Readiness, SidePlan, StandardInput};
use narrows_record::{RunDocument, Verdict, Versions};

const S: i64 = 1_000_000_000;

fn program(when: EndsWith) -> Program {
    let side = |ready| SidePlan {
        command: vec!["x".into()],
        env: std::collections::BTreeMap::new(),
        folder: None,
        stdin: StandardInput::Null,
        ready,
    };
    Program {
        name: "x".into(),
        variant: "y".into(),
        manifest: String::new(),
        data: Side::Connector,
        version: Vec::new(),
        files: Vec::new(),
        listener: side(Some(Readiness::Tcp(None))),
        connector: side(None),
        end: EndPlan {
            when,
            signal: 15,
            grace_ns: 1_000_000_000,
        },
        limits: ProgramLimits {
            ready_ns: 1,
            memory_bytes: None,
            cpu_ns: None,
            time_ns: Some(1_500_000_000),
            file_bytes: 1,
            output_bytes: 1,
        },
        shared: false,
        frames: None,
        segments: None,
        root: None,
        reports: serde_json::Value::Null,
    }
}

/// The codes and sentences about a connector with this report, for a flow that stops after ten seconds.
fn judged(when: EndsWith, report: &ProgramReport, traffic: &ProgramTraffic) -> (Verdict, String) {
    let mut run = RunDocument::new(serde_json::json!({}), "emulate", Versions::default());
    let program = program(when);
    judge_program(
        &mut run,
        &ProgramMeasurements {
            flow: 3,
            name: "x:y",
            program: &program,
            stop_ns: 10 * S as u64,
            reports: [(Role::Sender, Some(report)), (Role::Receiver, None)],
            traffic,
        },
    );
    let reasons = run.reasons.iter();
    let words: Vec<String> = reasons
        .map(|one| format!("{}: {}", one.code, one.text))
        .collect();
    (run.verdict, words.join(" | "))
}

fn sent() -> ProgramTraffic {
    let mut traffic = ProgramTraffic::default();
    traffic.add(Role::Sender, 5, 1500, 1448, true);
    traffic.add(Role::Receiver, 6, 52, 0, true);
    traffic
}

fn ended(at_ns: i64) -> ProgramReport {
    ProgramReport {
        started_ns: Some(S),
        ended_ns: Some(at_ns),
        exit: Some(0),
        ..ProgramReport::default()
    }
}

#[test]
fn a_program_that_was_stopped_is_fine() {
    let report = ProgramReport {
        stopped: true,
        signal: Some(15),
        ..ended(10 * S)
    };
    for when in [EndsWith::Signal, EndsWith::Duration, EndsWith::Done] {
        assert_eq!(judged(when, &report, &sent()), (Verdict::Ok, String::new()));
    }
    assert_eq!(
        judged(EndsWith::Duration, &ended(10 * S - 1), &sent()).0,
        Verdict::Ok
    );
    assert_eq!(
        judged(EndsWith::Done, &ended(3 * S), &sent()).0,
        Verdict::Ok
    );
}

#[test]
fn each_misbehaviour_has_its_verdict_and_sentence() {
    let base = ended(3 * S);
    let of = |report: ProgramReport| judged(EndsWith::Signal, &report, &sent());
    let cases = [
        (
            of(ProgramReport {
                signal: Some(11),
                exit: None,
                ..base.clone()
            }),
            (
                Verdict::Invalid,
                "program_crashed: The connector of flow 3 (x:y) was ended by signal 11 (SIGSEGV) 2.000 s after its start.",
            ),
        ),
        (
            of(ProgramReport {
                ended_ns: Some(S + S / 100),
                exit: Some(2),
                last_line: Some("no".into()),
                ..base.clone()
            }),
            (
                Verdict::Invalid,
                "program_exited: The connector of flow 3 (x:y) ended immediately, with exit code 2, 0.010 s after its start; its last line was \"no\".",
            ),
        ),
        (
            of(base.clone()),
            (
                Verdict::Invalid,
                "program_ended: The connector of flow 3 (x:y) ended with exit code 0, 7.000 s before its flow stopped.",
            ),
        ),
        (
            of(ProgramReport {
                stopped: true,
                killed: true,
                signal: Some(9),
                ..base.clone()
            }),
            (
                Verdict::Ok,
                "program_killed: The connector of flow 3 (x:y) did not end within 1.000 s of signal 15 (SIGTERM) and was killed.",
            ),
        ),
        (
            of(ProgramReport {
                stopped: true,
                left: vec!["sleep".into(), "nc".into()],
                ..base.clone()
            }),
            (
                Verdict::Degraded,
                "processes_left: The connector of flow 3 (x:y) left 2 processes behind (sleep, nc), which had to be killed.",
            ),
        ),
        (
            of(ProgramReport {
                stopped: true,
                printed: [2_000_000, 0],
                kept: [1_000, 0],
                ..base.clone()
            }),
            (
                Verdict::Degraded,
                "output_cut: The connector of flow 3 (x:y) printed 2 MB, of which 1 kB were kept.",
            ),
        ),
        (
            judged(
                EndsWith::Done,
                &ProgramReport {
                    exit: Some(1),
                    ..base
                },
                &sent(),
            ),
            (
                Verdict::Invalid,
                "program_failed: The connector of flow 3 (x:y) ended with exit code 1 after 2.000 s.",
            ),
        ),
    ];
    for (found, (verdict, text)) in cases {
        assert_eq!(found, (verdict, text.to_owned()));
    }
}

#[test]
fn traffic_that_is_missing_or_goes_the_wrong_way_is_told() {
    let running = ProgramReport {
        stopped: true,
        ..ended(10 * S)
    };
    let of = |traffic: &ProgramTraffic| judged(EndsWith::Signal, &running, traffic);
    let mut none = ProgramTraffic::default();
    assert!(
        of(&none)
            .1
            .contains("The hosts of flow 3 (x:y) sent no packet.")
    );
    none.add(Role::Sender, 1, 60, 0, true);
    let (verdict, text) = of(&none);
    assert!(
        text.contains("no data, only packets without payload"),
        "{text}"
    );
    assert_eq!(verdict, Verdict::Invalid);
    let mut wrong = sent();
    wrong.add(Role::Receiver, 7, 9_000, 8_000, true);
    let (verdict, text) = of(&wrong);
    assert!(
        text.contains(
            "the listener sent 8 kB, and the connector, which is to send the data, 1.448 kB"
        ),
        "{text}"
    );
    assert_eq!(verdict, Verdict::Invalid);
    let stray = ProgramTraffic { stray: 2, ..sent() };
    assert_eq!(of(&stray).0, Verdict::Degraded);
}

#[test]
fn few_conversations_are_listed() {
    let mut traffic = sent();
    for port in (0..100).chain(0..100) {
        traffic.note(Conversation {
            protocol: 6,
            sender_port: port,
            receiver_port: 1,
        });
    }
    assert_eq!(traffic.conversations.len(), MOST_LISTED);
}

#[test]
fn limits_of_time_and_memory_are_told_from_crashes() {
    let killed = ProgramReport {
        exit: None,
        signal: Some(9),
        ..ended(3 * S)
    };
    let overran = ProgramReport {
        overran: true,
        ..killed.clone()
    };
    let (verdict, text) = judged(EndsWith::Signal, &overran, &sent());
    assert_eq!(verdict, Verdict::Invalid);
    assert!(text.starts_with("program_overran: "), "{text}");
    assert!(
        text.ends_with("was killed after 1.500 s, its limit of time."),
        "{text}"
    );
    let hungry = ProgramReport {
        out_of_memory: true,
        ..killed
    };
    let (verdict, text) = judged(EndsWith::Signal, &hungry, &sent());
    assert_eq!(verdict, Verdict::Invalid);
    assert!(text.starts_with("program_memory: "), "{text}");
}
