//! Emulated runs from cell to record, as root and as an ordinary user.

use crate::common::{
    Folder, MACHINE, MS, can_emulate, cell, claim, emulate, last_event, my_turn, run_to_end,
};
use narrows_cell::open_record;
use narrows_record::read::{read_queues, read_states};
use narrows_record::{Record, Severity};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

fn run(folder: &Folder, command: &mut Command) -> Record {
    let output = run_to_end(command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(last_event(&output)["event"], "done");
    let record = open_record(&folder.path().join("out")).unwrap();
    for reason in &record.run.reasons {
        let excused = MACHINE.contains(&reason.code.as_str());
        assert!(
            excused || reason.severity == Severity::Note,
            "{}: {}",
            reason.code,
            reason.text
        );
    }
    let checks = &record.run.checks;
    assert!(
        checks.len() > 10 && checks.iter().all(|check| check.ok),
        "{checks:?}"
    );
    record
}

/// The record of `cell`, emulated in a separate folder.
fn emulated(name: &str, cell: &Value) -> Record {
    let folder = Folder::new(name);
    run(&folder, &mut emulate(&folder, cell))
}

/// Checks invariants of every good record of the test cell with `flows` flows.
fn check(record: &Record, flows: usize) {
    let run = &record.run;
    assert_eq!(run.plane, "emulate");
    assert!(
        run.processes.iter().all(|process| process.expected),
        "{:?}",
        run.processes
    );
    assert_eq!(run.processes.len(), 2 * flows);
    let bottleneck = &run.elements[0];
    let seconds = run.cell["duration_ns"].as_u64().unwrap() as f64 / 1e9;
    let mbps = bottleneck.out_bytes as f64 * 8e-6 / seconds;
    assert!(
        (13.0..=20.01).contains(&mbps),
        "{mbps} Mbit/s through 20 Mbit/s"
    );
    assert!(
        run.rings
            .iter()
            .all(|ring| ring.received > 100 && ring.dropped == 0)
    );
    let host = run.host.as_ref().unwrap();
    assert!(host.sysctls.contains_key("net.ipv4.tcp_rmem"));
    let states = read_states(record.states.clone().unwrap()).unwrap();
    let queues = read_queues(record.queues.clone().unwrap()).unwrap();
    assert_eq!(
        queues.len() as f64,
        seconds * 100.0 + 1.0,
        "one sample every 10 ms"
    );
    for flow in &run.flows {
        let name = flow.scheme.strip_prefix("linux:").unwrap_or(&flow.scheme);
        assert_eq!(flow.fingerprint.read_back.as_deref(), Some(name));
        assert!(flow.sender.sent_packets.unwrap() >= flow.receiver.received_packets.unwrap());
        assert!(flow.receiver.goodput_bytes.unwrap() > 100_000);
        let mine: Vec<_> = states
            .iter()
            .filter(|state| state.flow == flow.flow)
            .collect();
        assert!(
            mine.len() > 50,
            "{} samples of flow {}",
            mine.len(),
            flow.flow
        );
        let last = mine.last().unwrap();
        assert!(last.cwnd_bytes.unwrap() >= 1448);
        let srtt = last.srtt_ns.unwrap();
        assert!(
            (10 * MS..60 * MS).contains(&srtt),
            "{srtt} ns on a path of 10 to 25 ms"
        );
        assert!(last.delivered_bytes.unwrap() > 100_000);
    }
}

#[test]
fn kernel_flows_are_emulated() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let cell = cell(&["linux:reno", "linux:cubic"], 2000);
    let run = || {
        let folder = Folder::new("kernel");
        let record = run(&folder, &mut emulate(&folder, &cell));
        assert_eq!(folder.names(), ["cell.json", "out"]);
        record
    };
    claim(run, |record| {
        check(record, 2);
        let fingerprint = &record.run.flows[1].fingerprint;
        assert_eq!(
            (fingerprint.kind.as_str(), fingerprint.name.as_str()),
            ("linux", "cubic")
        );
        assert!(fingerprint.kernel.as_ref().unwrap().contains('.'));
    });
}

#[test]
fn each_direction_may_have_a_thread_of_its_own() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    for record in ["packets", "bins"] {
        let mut cell = cell(&["linux:reno", "cubic"], 2000);
        cell["record"] = record.into();
        let run = || {
            let folder = Folder::new("threads");
            let mut command = emulate(&folder, &cell);
            run(&folder, command.args(["--emulator-threads", "2"]))
        };
        claim(run, |record| {
            check(record, 2);
            let cpu = record.run.cpu.as_ref().unwrap();
            assert_eq!(cpu.emulator_threads, Some(2));
            let hosts = record.run.rings.iter().map(|ring| ring.port.as_str());
            assert!(hosts.eq(["sender", "receiver"]));
        });
    }
}

#[test]
fn our_own_flows_are_emulated() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let cell = cell(&["reno", "cubic"], 2000);
    claim(
        || emulated("native", &cell),
        |record| {
            check(record, 2);
            let flow = &record.run.flows[0];
            assert_eq!(flow.fingerprint.kind, "native");
            assert!(flow.sender.sent_bytes.unwrap() >= flow.receiver.received_bytes.unwrap());
            // Each end reports how late it acted, from minimum to maximum.
            for flow in &record.run.flows {
                for end in ["sender", "receiver"] {
                    let late = &flow.other["woken"][end]["arrivals"];
                    assert!(late["count"].as_u64().unwrap() > 100, "{late}");
                    let points = late["quantiles_ns"].as_array().unwrap();
                    let ns: Vec<u64> = points
                        .iter()
                        .map(|point| point[1].as_u64().unwrap())
                        .collect();
                    assert!(ns.is_sorted() && points[0][0] == 0.0, "{late}");
                }
            }
        },
    );
}

#[test]
fn a_flow_that_repeats_nothing_may_lose_its_first_packets() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let mut cell = cell(&["koho"], 1500);
    let forward = cell["network"]["forward"].as_array_mut().unwrap();
    forward.push(json!({"name": "forward.2", "kind": "outage", "start": 0, "length": 200 * MS}));
    // With them the receiver's information about the transfer is lost permanently; `run` checks that no error is
    // reported.
    claim(
        || emulated("unrepeated", &cell),
        |record| {
            let flow = &record.run.flows[0];
            assert!(
                flow.sender.sent_packets.unwrap() > flow.receiver.received_packets.unwrap() + 10
            );
            assert!(flow.receiver.goodput_bytes.unwrap() > 100_000);
        },
    );
}

#[test]
fn data_may_travel_backward_and_flows_may_have_more_delay_and_stop_early() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let mut cell = cell(&["linux:reno", "reno"], 2000);
    for flow in 0..2 {
        cell["flows"][flow]["stop_ns"] = (1500 * MS).into();
        cell["flows"][flow]["extra_rtt_ns"] = (20 * MS).into();
    }
    cell["flows"][1]["direction"] = "backward".into();
    let mut bottleneck = cell["network"]["forward"][0].clone();
    bottleneck["name"] = "backward.1".into();
    cell["network"]["backward"]
        .as_array_mut()
        .unwrap()
        .push(bottleneck);
    claim(|| emulated("backward", &cell), travels_backward_and_stops);
}

fn travels_backward_and_stops(record: &Record) {
    let packets = record.packets.clone().unwrap();
    let mut reader = narrows_record::read::PacketReader::open(packets).unwrap();
    let (mut forward, mut backward) = (0, 0);
    let mut chunk = narrows_record::Chunk::default();
    while reader.next(&mut chunk).unwrap() {
        for row in (0..chunk.len()).map(|row| chunk.row(row)) {
            let data = row.size_bytes > 1000;
            let right_way = match row.flow {
                1 => row.direction == narrows_record::Direction::Forward,
                2 => row.direction == narrows_record::Direction::Backward,
                _ => panic!("a packet of no flow: {row:?}"),
            };
            assert!(!data || right_way, "data the wrong way: {row:?}");
            assert!(
                !right_way || row.sent_ns < 1500 * MS,
                "a stopped sender is silent: {row:?}"
            );
            forward += u64::from(data && row.flow == 1);
            backward += u64::from(data && row.flow == 2);
        }
    }
    assert!(
        forward > 500 && backward > 500,
        "{forward} and {backward} data packets"
    );
}

#[test]
fn bins_take_the_place_of_packets() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let mut cell = cell(&["linux:reno"], 1000);
    cell["record"] = "bins".into();
    let record = emulated("bins", &cell);
    assert!(record.packets.is_none() && record.bins.is_some() && record.delays.is_some());
}

#[test]
fn an_ordinary_user_can_emulate() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("user");
    let cell = cell(&["linux:cubic", "cubic"], 1500);
    let mut command = emulate(&folder, &cell);
    if std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
    {
        // Root becomes another user, with a copy of the program that all users can read.
        let program = folder.path().join("narrows-agent");
        std::fs::copy(env!("CARGO_BIN_EXE_narrows-agent"), &program).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        give_away(folder.path());
        let mut other = Command::new(program);
        other.args(command.get_args()).uid(1001).gid(1001);
        other.stdin(std::process::Stdio::null());
        if let Some(why) = forbidden(&other) {
            return crate::common::skip(why);
        }
        command = other;
    }
    let out = folder.path().join("out");
    let again = || {
        let _ = std::fs::remove_dir_all(&out);
        run(&folder, &mut command)
    };
    claim(again, |record| check(record, 2));
    let record = open_record(&out).unwrap();
    assert_eq!(record.run.other["privilege"], "user namespace");
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(out).unwrap());
    assert_ne!(owner, 0, "the record belongs to the user");
}

fn give_away(path: &Path) {
    chown(path, Some(1001), Some(1001)).unwrap();
}

/// Why an ordinary user may not use namespaces here, if so.
fn forbidden(like: &Command) -> Option<String> {
    let mut doctor = Command::new(like.get_program());
    let output = run_to_end(doctor.arg("doctor").uid(1001).gid(1001));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    (facts["namespaces"]["ok"] == false).then(|| facts["namespaces"]["why"].to_string())
}
