//! External programs as both ends of flows: well-behaved ones, and all kinds of failures. Each has its sentence, the
//! run of the others continues, and no process is left behind.

mod bounds;
mod ends;
mod frames;

use crate::common::{Folder, can_emulate, cell, emulate, failure, my_turn, run_to_end};
use narrows_cell::open_record;
use narrows_record::{Record, Severity};
use serde_json::{Value, json};
use std::process::Output;

/// Takes one connection and reads all of it.
const SINK: &str = "
import socket, sys
server = socket.create_server(('', int(sys.argv[1])))
peer = server.accept()[0]
while peer.recv(1 << 16): pass
";
/// Sends as much as it can.
const SOURCE: &str = "
import socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True: peer.sendall(bytes(1 << 16))
";
/// Length of the runs in ms.
const LENGTH: u64 = 1500;

/// A program whose sides are pieces of Python; `mark` is in all of its command lines.
fn program(listener: &str, connector: &str, mark: &str) -> Value {
    json!({
        "name": "test", "variant": "plain", "manifest": "00", "data": "connector",
        "version": ["python3", "--version"],
        "listener": {"command": ["python3", "-c", listener, "{port}", mark], "ready": {"tcp": null}},
        "connector": {"command": ["python3", "-c", connector, "{address}", "{port}", mark]},
        "end": {"when": "signal", "signal": 15, "grace_ns": 500_000_000},
        "limits": {"ready_ns": 3_000_000_000_u64, "file_bytes": 1_000_000, "output_bytes": 10_000},
    })
}

struct Trial {
    folder: Folder,
    mark: String,
    output: Output,
}

impl Trial {
    fn run(name: &str, listener: &str, connector: &str, change: impl FnOnce(&mut Value)) -> Self {
        let folder = Folder::new(name);
        let mark = format!("mark-{}-{name}", std::process::id());
        let mut cell = cell(&["test:plain"], LENGTH);
        cell["flows"][0]["program"] = program(listener, connector, &mark);
        change(&mut cell);
        let output = run_to_end(&mut emulate(&folder, &cell));
        assert!(!is_there(&mark), "{name}: processes are left behind");
        Trial {
            folder,
            mark,
            output,
        }
    }

    /// The record, which must exist.
    fn record(&self) -> Record {
        assert!(self.output.status.success(), "{:?}", self.output);
        open_record(&self.folder.path().join("out")).unwrap()
    }

    /// The sentence of a run that was refused.
    fn refusal(&self) -> String {
        assert_eq!(self.folder.names(), ["cell.json"], "nothing is left");
        failure(&self.output, 1, "program")
    }
}

/// Whether any process has `mark` in its command line.
fn is_there(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// The sentence of the reason with this code, and its severity.
fn reason(record: &Record, code: &str) -> (Severity, String) {
    let mut reasons = record.run.reasons.iter();
    let found = reasons.find(|reason| reason.code == code);
    let found = found.unwrap_or_else(|| panic!("no {code} among {:?}", record.run.reasons));
    (found.severity, found.text.clone())
}

/// Checks that no reason is about the program; a busy machine may have caused others.
fn blameless(record: &Record) {
    let about = [
        "program_",
        "no_data",
        "wrong_",
        "stray_",
        "processes_",
        "output_",
    ];
    for reason in &record.run.reasons {
        let blamed = about.iter().any(|start| reason.code.starts_with(start));
        assert!(!blamed, "{reason:?}");
    }
}

fn described(record: &Record) -> &Value {
    &record.run.flows[0].other["program"]
}

#[test]
fn a_program_runs_beside_other_flows_and_is_known() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let trial = Trial::run("plain", SINK, SOURCE, |cell| {
        let mut other = cell["flows"][0].clone();
        other.as_object_mut().unwrap().remove("program");
        other["flow"] = 2.into();
        other["scheme"] = "linux:reno".into();
        cell["flows"].as_array_mut().unwrap().push(other);
        cell["flows"][0]["start_ns"] = 300_000_000.into();
    });
    let record = trial.record();
    let run = &record.run;
    blameless(&record);
    let hosts: Vec<&str> = run.hosts.iter().map(|host| &*host.name).collect();
    assert_eq!(hosts[2..], ["flow-1-sender", "flow-1-receiver"]);
    let flow = &run.flows[0];
    assert_eq!(
        (&*flow.scheme, &*flow.fingerprint.kind),
        ("test:plain", "program")
    );
    assert!(
        flow.fingerprint
            .version
            .as_ref()
            .unwrap()
            .starts_with("Python")
    );
    let program = described(&record);
    let (listener, connector) = (&program["listener"], &program["connector"]);
    assert!(listener["ready_ns"].as_u64().unwrap() > 0);
    assert!(
        listener["started_ns"].as_i64().unwrap() < 0,
        "it started ahead"
    );
    let started = connector["started_ns"].as_i64().unwrap();
    assert!((300_000_000..900_000_000).contains(&started), "{started}");
    assert!(program["first_data_ns"].as_i64().unwrap() > started);
    assert_eq!(
        (connector["signal"].as_i64(), &connector["stopped"]),
        (Some(15), &true.into())
    );
    let files = connector["files"].as_array().unwrap();
    assert_eq!(files[0]["part"], "program");
    assert!(
        files.iter().any(|file| file["part"] == "library"),
        "{files:?}"
    );
    assert!(
        files.iter().all(|file| file["sha256"].is_string()),
        "{files:?}"
    );
    assert_eq!(program["traffic"]["conversations"][0]["protocol"], 6);
    assert_eq!(
        program["traffic"]["conversations"][0]["receiver_port"],
        20_001
    );
    assert_eq!(program["traffic"]["stray"], 0);
    // Packets of both flows are distinguished, in both directions.
    let sent = program["traffic"]["sender"]["packets"].as_u64().unwrap();
    assert!(sent > 500, "{sent}");
    assert!(
        !trial
            .folder
            .path()
            .join("out/logs/flow-1-connector")
            .exists()
    );
    assert!(!trial.mark.is_empty());
}

#[test]
fn listeners_that_do_not_become_ready_keep_the_run_from_starting() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let refused = |name: &str, listener: &str| {
        Trial::run(name, listener, SOURCE, |cell| {
            cell["flows"][0]["program"]["limits"]["ready_ns"] = 600_000_000.into();
        })
        .refusal()
    };
    let text = refused(
        "never",
        "import time; print('still starting', flush=True); time.sleep(99)",
    );
    assert!(
        text.contains("flow 1 (test:plain): the listener was not ready within 0.6 s"),
        "{text}"
    );
    assert!(text.contains("nothing listens on TCP port 20001"), "{text}");
    assert!(
        text.ends_with("its last line was \"still starting\""),
        "{text}"
    );
    let elsewhere = SINK.replace("int(sys.argv[1])", "4567");
    let text = refused("elsewhere", &elsewhere);
    assert!(
        text.ends_with("nothing listens on TCP port 20001; it listens on TCP port 4567"),
        "{text}"
    );
    let text = refused("exits", "import sys; sys.exit('no licence')");
    assert!(
        text.contains("the listener ended with exit code 1 before it was ready"),
        "{text}"
    );
    assert!(text.ends_with("its last line was \"no licence\""), "{text}");
    let text = refused("crashes", "import os; os.kill(os.getpid(), 11)");
    assert!(
        text.contains("was ended by signal 11 before it was ready"),
        "{text}"
    );
    let away = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(99)";
    let text = refused("away", away);
    assert!(
        text.contains(
            "ended with exit code 0 before it was ready and left processes in the background"
        ),
        "{text}"
    );
}

#[test]
fn programs_that_cannot_be_started_are_named() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let refused = |name: &str, change: &dyn Fn(&mut Value)| {
        Trial::run(name, SINK, SOURCE, |cell| {
            change(&mut cell["flows"][0]["program"]);
        })
        .refusal()
    };
    let text = refused("missing", &|p| {
        p["connector"]["command"] = json!(["no-such-program"]);
    });
    assert!(
        text.ends_with("the connector cannot be started: there is no program no-such-program"),
        "{text}"
    );
    let text = refused("folder", &|p| {
        p["listener"]["folder"] = "/no/such/folder".into();
    });
    assert!(
        text.contains("its working folder /no/such/folder does not exist"),
        "{text}"
    );
}

#[test]
fn connectors_that_end_make_the_run_invalid() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let trial = Trial::run("once", SINK, "import sys; sys.exit(3)", |_| {});
    let record = trial.record();
    let (severity, text) = reason(&record, "program_exited");
    assert_eq!(severity, Severity::Invalid);
    assert!(
        text.starts_with(
            "The connector of flow 1 (test:plain) ended immediately, with exit code 3,"
        ),
        "{text}"
    );
    assert!(reason(&record, "no_data").1.contains("sent no packet"));
    // The flow lasts seconds longer than the program, even on a machine that takes long to start it.
    let longer = |cell: &mut Value| {
        cell["duration_ns"] = (3 * LENGTH * 1_000_000).into();
        cell["flows"][0]["stop_ns"] = cell["duration_ns"].clone();
    };
    let early =
        format!("import threading, os\nthreading.Timer(1.1, os._exit, [0]).start()\n{SOURCE}");
    let record = Trial::run("early", SINK, &early, longer).record();
    assert!(
        reason(&record, "program_ended")
            .1
            .contains("before its flow stopped")
    );
    let crash = format!(
        "import threading, os\nthreading.Timer(0.3, os.kill, [os.getpid(), 11]).start()\n{SOURCE}"
    );
    let record = Trial::run("crash", SINK, &crash, longer).record();
    assert!(
        reason(&record, "program_crashed")
            .1
            .contains("was ended by signal 11 (SIGSEGV)")
    );
    // A program that ends when it is done may do so.
    let little = "import socket, sys\nsocket.create_connection((sys.argv[1], int(sys.argv[2]))).sendall(bytes(99999))";
    let record = Trial::run("done", SINK, little, |cell| {
        longer(cell);
        cell["flows"][0]["program"]["end"]["when"] = "done".into();
    })
    .record();
    blameless(&record);
}

#[test]
fn traffic_that_is_not_what_the_manifest_says_is_told() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let silent = "import socket, sys, time\npeer = socket.create_connection((sys.argv[1], int(sys.argv[2])))\ntime.sleep(99)";
    let record = Trial::run("silent", SINK, silent, |_| {}).record();
    let (severity, text) = reason(&record, "no_data");
    assert_eq!(severity, Severity::Invalid);
    assert!(
        text.ends_with("sent no data, only packets without payload."),
        "{text}"
    );
    let record = Trial::run("wrong", SINK, SOURCE, |cell| {
        cell["flows"][0]["program"]["data"] = "listener".into();
    })
    .record();
    let (severity, text) = reason(&record, "wrong_direction");
    assert_eq!(severity, Severity::Invalid);
    assert!(
        text.contains("the connector sent") && text.contains("listener, which is to send the data"),
        "{text}"
    );
    let stray = format!(
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.77.0.1', 7))\n{SOURCE}"
    );
    let record = Trial::run("stray", SINK, &stray, |_| {}).record();
    assert!(
        reason(&record, "stray_packets")
            .1
            .contains("sent 1 packets")
    );
}

#[test]
fn whatever_a_program_leaves_or_prints_is_bounded() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let stubborn = format!("import signal\nsignal.signal(15, signal.SIG_IGN)\n{SOURCE}");
    let record = Trial::run("stubborn", SINK, &stubborn, |_| {}).record();
    let (severity, text) = reason(&record, "program_killed");
    assert_eq!(severity, Severity::Note);
    assert!(
        text.ends_with("did not end within 0.500 s of signal 15 (SIGTERM) and was killed."),
        "{text}"
    );
    let flood = "import socket, sys\npeer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                 while True: peer.sendto(bytes(1400), (sys.argv[1], 7777))";
    let record = Trial::run("flood", SINK, flood, |_| {}).record();
    blameless(&record);
    let conversation = &described(&record)["traffic"]["conversations"][0];
    assert_eq!(
        (&conversation["protocol"], &conversation["receiver_port"]),
        (&17.into(), &7777.into())
    );
    let parent = format!(
        "import os, signal, time\nif os.fork() == 0:\n os.setsid(); signal.signal(15, signal.SIG_IGN); time.sleep(99)\n{SOURCE}"
    );
    let record = Trial::run("leaves", SINK, &parent, |_| {}).record();
    let (severity, text) = reason(&record, "processes_left");
    assert_eq!(severity, Severity::Degraded);
    assert!(text.contains("left a process behind (python3"), "{text}");
    let talkative = format!(
        "import threading, sys\ndef talk():\n while True: sys.stdout.write('x' * 99999 + '\\n')\n\
         threading.Thread(target=talk, daemon=True).start()\n{SOURCE}"
    );
    let trial = Trial::run("talkative", SINK, &talkative, |_| {});
    let record = trial.record();
    assert!(
        reason(&record, "output_cut")
            .1
            .contains("of which 10 kB were kept")
    );
    let kept = trial.folder.path().join("out/logs/flow-1-connector.out");
    assert!(std::fs::metadata(kept).unwrap().len() < 11_000);
}
