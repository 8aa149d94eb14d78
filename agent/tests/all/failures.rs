//! All kinds of failures: one clear sentence, the right exit code, and no leftovers.

use crate::common::{
    Folder, can_emulate, cell, descendants, emulate, eventually, failure, finish, is_alive,
    my_turn, namespaces, run_to_end, signal, wait_for_endpoints,
};
use narrows_cell::open_record;
use narrows_record::Verdict;
use serde_json::json;
use std::process::{Command, Stdio};

#[test]
fn bad_cells_are_refused_with_exit_code_3() {
    let folder = Folder::new("bad");
    let refuse = |change: fn(&mut serde_json::Value)| {
        let mut cell = cell(&["linux:reno"], 1000);
        change(&mut cell);
        failure(&run_to_end(&mut emulate(&folder, &cell)), 3, "input")
    };
    assert!(refuse(|c| c["format"] = "narrows/cell/9".into()).contains("narrows/cell/9"));
    assert!(refuse(|c| c["flows"][0]["scheme"] = "nonsense".into()).contains("'nonsense'"));
    assert!(
        refuse(|c| c["network"]["forward"][0]["queue"]["kind"] = "x".into()).contains("forward.0")
    );
    assert!(refuse(|c| c["flows"][0]["start_ns"] = 2_000_000_000u64.into()).contains("flow 1"));
    std::fs::remove_file(folder.path().join("cell.json")).unwrap();
    let mut command = emulate(&folder, &cell(&["linux:reno"], 1000));
    std::fs::remove_file(folder.path().join("cell.json")).unwrap();
    assert!(failure(&run_to_end(&mut command), 3, "input").contains("cell.json"));
    assert_eq!(folder.names(), Vec::<String>::new(), "nothing is left");
}

#[test]
fn a_kernel_scheme_that_is_not_there_is_refused_with_exit_code_4() {
    let folder = Folder::new("scheme");
    let output = run_to_end(&mut emulate(
        &folder,
        &cell(&["linux:no-such-scheme"], 1000),
    ));
    let message = failure(&output, 4, "unavailable");
    assert!(
        message.contains("'no-such-scheme'") && message.contains("it offers"),
        "{message}"
    );
    assert!(message.contains("reno"), "{message}");
    assert_eq!(folder.names(), ["cell.json"]);
}

#[test]
fn an_existing_record_is_never_touched() {
    let folder = Folder::new("exists");
    std::fs::create_dir(folder.path().join("out")).unwrap();
    std::fs::write(folder.path().join("out/precious"), "x").unwrap();
    let output = run_to_end(&mut emulate(&folder, &cell(&["linux:reno"], 1000)));
    assert!(failure(&output, 3, "input").contains("exists already"));
    assert!(folder.path().join("out/precious").exists());
}

#[test]
fn without_namespaces_the_missing_permission_is_named() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("forbidden");
    let agent = emulate(&folder, &cell(&["linux:reno"], 1000));
    // A user namespace in which no further namespaces are allowed.
    let output = inside_user_namespace(
        &agent,
        "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"",
    );
    let message = failure(&output, 4, "unavailable");
    assert!(message.contains("user.max_net_namespaces"), "{message}");
    assert_eq!(folder.names(), ["cell.json"]);
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_kept() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("full");
    let agent = emulate(&folder, &cell(&["linux:reno"], 1500));
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24k none {0} && \
         \"$1\" emulate --cell {1}/cell.json --out {0}/out; \
         code=$?; ls -A {0} >&2; exit $code",
        small.display(),
        folder.path().display()
    );
    let output = inside_user_namespace(&agent, &script);
    let message = failure(&output, 1, "io");
    assert!(message.contains("the disk is full"), "{message}");
    let left = String::from_utf8_lossy(&output.stderr);
    assert!(
        !left.contains(".out.partial\n"),
        "nothing half-written stays: {left}"
    );
}

/// Runs `script` (with the agent's command line as its arguments) as root of a user namespace with
/// a new mount namespace.
fn inside_user_namespace(agent: &Command, script: &str) -> std::process::Output {
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.arg(agent.get_program()).args(agent.get_args());
    run_to_end(command.stdin(Stdio::null()))
}

/// Starts a long run, waits until it is running, disturbs it, and returns the agent's output, with
/// the processes of the run.
fn disturb(folder: &Folder, how: impl FnOnce(u32, &[u32])) -> std::process::Output {
    let mut agent = emulate(folder, &cell(&["linux:cubic", "reno"], 4000))
        .spawn()
        .unwrap();
    let endpoints = wait_for_endpoints(&mut agent, 2);
    assert!(
        namespaces(agent.id()).len() >= 2,
        "agent and hosts are apart"
    );
    std::thread::sleep(std::time::Duration::from_millis(400));
    how(agent.id(), &endpoints);
    let output = finish(agent);
    eventually("the endpoints are gone", || {
        endpoints.iter().all(|&pid| !is_alive(pid))
    });
    output
}

#[test]
fn signals_end_a_run_without_a_trace() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    std::thread::scope(|scope| {
        for (name, code) in [("-INT", 130), ("-TERM", 143)] {
            scope.spawn(move || {
                let folder = Folder::new(&format!("signal{name}"));
                let output = disturb(&folder, |agent, _| signal(agent, name));
                failure(&output, code, "interrupted");
                assert_eq!(folder.names(), ["cell.json"], "after {name}");
            });
        }
    });
}

#[test]
fn the_end_of_standard_input_ends_a_run() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("stdin");
    let mut command = emulate(&folder, &cell(&["linux:cubic"], 4000));
    let mut agent = command
        .arg("--watch-stdin")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let endpoints = wait_for_endpoints(&mut agent, 1);
    drop(agent.stdin.take());
    let output = finish(agent);
    failure(&output, 143, "interrupted");
    eventually("the endpoints are gone", || {
        endpoints.iter().all(|&pid| !is_alive(pid))
    });
    assert_eq!(folder.names(), ["cell.json"]);
}

#[test]
fn killing_the_agent_ends_everything_and_the_next_start_sweeps() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("kill");
    let output = disturb(&folder, |agent, _| signal(agent, "-KILL"));
    assert_eq!(output.status.code(), None);
    assert_eq!(folder.names(), [".out.partial", "cell.json"]);
    let output = run_to_end(&mut emulate(&folder, &cell(&["linux:cubic"], 300)));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(folder.names(), ["cell.json", "out"]);
}

#[test]
fn killing_an_endpoint_makes_the_run_invalid_and_keeps_its_record() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    // Their times do not matter, so all runs are started at once.
    std::thread::scope(|scope| {
        for victim in 0..4 {
            scope.spawn(move || killed_endpoint(victim));
        }
    });
}

fn killed_endpoint(victim: usize) {
    let folder = Folder::new(&format!("victim-{victim}"));
    let output = disturb(&folder, |_, endpoints| signal(endpoints[victim], "-KILL"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = open_record(&folder.path().join("out")).unwrap();
    assert_eq!(record.run.verdict, Verdict::Invalid);
    let died = record
        .run
        .reasons
        .iter()
        .find(|reason| reason.code == "process_died");
    assert!(
        died.unwrap().text.contains("ended by signal 9"),
        "{:?}",
        record.run.reasons
    );
    let ended = record
        .run
        .processes
        .iter()
        .filter(|process| process.signal == Some(9))
        .count();
    assert_eq!(ended, 1, "{:?}", record.run.processes);
    let failed: Vec<_> = record.run.checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.is_empty(), "the record is whole: {failed:?}");
}

#[test]
fn an_endpoint_that_says_nothing_is_stopped() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("silent");
    let output = disturb(&folder, |_, endpoints| signal(endpoints[1], "-STOP"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = open_record(&folder.path().join("out")).unwrap();
    assert_eq!(record.run.verdict, Verdict::Invalid);
    let texts: Vec<_> = record
        .run
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("did not report in time")),
        "{texts:?}"
    );
    assert!(descendants(std::process::id()).is_empty());
}

/// The reason why no data arrived in a run of a cell, on one plane.
fn silence(plane: &str, cell: &serde_json::Value) -> String {
    let folder = Folder::new(&format!("silence-{plane}"));
    let file = folder.path().join("cell.json");
    std::fs::write(&file, cell.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows-agent"));
    command.arg(plane).arg("--cell").arg(file);
    command.arg("--out").arg(folder.path().join("out"));
    command.stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = open_record(&folder.path().join("out")).unwrap();
    assert_eq!(record.run.verdict, Verdict::Invalid);
    let mut reasons = record.run.reasons.into_iter();
    reasons.find(|reason| reason.code == "silent").unwrap().text
}

#[test]
fn a_silent_flow_has_its_cause_on_both_planes() {
    let _turn = my_turn();
    let planes = if can_emulate() {
        &["simulate", "emulate"][..]
    } else {
        &["simulate"]
    };
    type Change = fn(&mut serde_json::Value);
    let cases: [(Change, &str); 4] = [
        (
            |forward| forward[1] = json!({"name": "forward.1", "kind": "loss", "ratio": 1.0}),
            "forward.1 (loss) dropped all packets that entered it",
        ),
        (
            |forward| forward[1]["delay"] = 2_000_000_000_u64.into(),
            "the delays on its way are 2 s, and the run ended 1 s after its start",
        ),
        (
            |forward| {
                forward[1] = json!({"name": "forward.1", "kind": "outage", "start": 0,
                                    "length": 5_000_000_000_u64});
            },
            "the outage forward.1 lasts from 0 s to the end of the run",
        ),
        (
            |forward| forward[0]["rate"]["rate"] = 100.into(),
            "forward.0 could carry 12 B from the start of the flow to the end",
        ),
    ];
    for plane in planes {
        for (change, cause) in cases {
            let mut cell = cell(&["reno"], 1000);
            cell["where"] = (*plane).into();
            change(&mut cell["network"]["forward"]);
            let text = silence(plane, &cell);
            assert!(
                text.contains(" arrived: ") && text.contains(cause),
                "{plane}: {text}"
            );
        }
    }
}

#[test]
fn usage_errors_have_exit_code_2() {
    let output = run_to_end(Command::new(env!("CARGO_BIN_EXE_narrows-agent")).arg("emulate"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn documents_are_printed() {
    for (command, member) in [
        ("version", "protocol"),
        ("registry", "queues"),
        ("doctor", "checks"),
    ] {
        let agent = run_to_end(Command::new(env!("CARGO_BIN_EXE_narrows-agent")).arg(command));
        assert!(agent.status.success());
        let document: serde_json::Value = serde_json::from_slice(&agent.stdout).unwrap();
        assert!(!document[member].is_null(), "{command} has {member}");
    }
}
