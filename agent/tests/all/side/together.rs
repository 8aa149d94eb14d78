//! A run of both sides from its beginning to the record and the stream of its folder.

use crate::common::tunnel::{AGENT, Shift};
use crate::common::{self, Folder, MS, can_emulate, failure, my_turn};
use crate::side::{Side, cell, make_record};
use narrows_cell::open_record;
use narrows_record::read::PacketReader;
use narrows_record::{Chunk, metrics};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn three_flows_start_together_and_tell_what_they_did() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("side-three");
    let cell = cell(&["cubic", "<linux:cubic", "sprout"], 1_000);
    let shift = json!({"offset_ns": -2_500_000_000i64, "drift_ppb": 50_000});
    // The host that receives most of the data listens; its clock is wrong.
    let mut one = Side::here(
        &folder,
        1,
        &cell,
        &json!({"bind": "127.0.0.1:0", "clock": shift}),
    );
    let port = one.address().rsplit(':').next().unwrap().to_owned();
    // Host 0 is behind 20 Mbit/s and 5 ms each way.
    let delay = |name: &str| json!({"name": name, "kind": "delay", "delay": 5 * MS});
    let rate = |name: &str| {
        json!({"name": name, "kind": "bottleneck", "rate": {"kind": "constant", "rate": 20_000_000},
               "queue": {"kind": "droptail", "bytes": 50_000, "packets": null}})
    };
    let path = json!({"format": "narrows/shell/1", "seed": 1, "quiet": true, "network": {"kind": "dumbbell",
        "forward": [rate("forward.0"), delay("forward.1")],
        "backward": [rate("backward.0"), delay("backward.1")]}});
    let file = folder.path().join("shell.json");
    std::fs::write(&file, path.to_string()).unwrap();
    let shell = [
        AGENT,
        "shell",
        "--plan",
        file.to_str().unwrap(),
        "--",
        AGENT,
    ]
    .map(str::to_owned);
    let to = json!({"dial": format!("198.18.0.1:{port}")});
    let mut zero = Side::start(&shell, &folder, 0, &cell, &to);
    for side in [&mut zero, &mut one] {
        side.until("open");
        side.until("prepared");
    }
    zero.order(&json!({"order": "start", "in_ns": 300 * MS}));
    let start = zero.until("starting");
    one.order(&json!({"order": "start", "at_ns": start["at_ns"]}));
    let answer = one.until("starting");
    for side in [&mut zero, &mut one] {
        let progress = side.until("progress");
        assert_eq!(progress["of_ns"], 1_000 * MS);
        side.end_well();
    }

    let (here, there) = (zero.json("side.json"), one.json("side.json"));
    let (tunnel_here, tunnel_there) = (zero.json("tunnel.json"), one.json("tunnel.json"));
    assert_eq!(
        (&tunnel_here["host"], &tunnel_there["host"]),
        (&json!(0), &json!(1))
    );
    // The machine's readings.
    let started = |side: &Value, tunnel: &Value| {
        let reading = side["start_ns"].as_i64().unwrap();
        i128::from(Shift::from_document(tunnel).raw_ns(reading))
    };
    let apart = started(&here, &tunnel_here) - started(&there, &tunnel_there);
    // Clocks of the same machine are read a microsecond or so apart, a few times.
    let bound = i128::from(answer["error_ns"].as_u64().unwrap()) + 20_000;
    assert!(apart.abs() <= bound, "{apart} ns apart, at most {bound}");
    let real = |side: &Value| i128::from(side["start_real_ns"].as_u64().unwrap());
    assert!((real(&here) - real(&there) - apart).abs() < 20_000 + bound / 1_000);

    for (side, sends) in [(&here, [true, false, true]), (&there, [false, true, false])] {
        let ends = side["ends"].as_array().unwrap();
        assert_eq!(
            (side["format"].as_str(), ends.len()),
            (Some("narrows/side-end/1"), 3)
        );
        for (end, sends) in ends.iter().zip(sends) {
            assert_eq!(end["failure"], Value::Null, "{end}");
            assert_eq!(end["outcome"]["problem"], Value::Null, "{end}");
            assert_eq!(end["role"], if sends { "sender" } else { "receiver" });
            let start = end["flow"].as_u64().unwrap() - 1;
            assert_eq!(end["active_ns"], (1_000 - 100 * start) * MS);
            let states = end["outcome"]["states"].as_array().unwrap();
            assert_eq!(sends, states.len() > 20, "{end}");
        }
        let processes = side["processes"].as_array().unwrap();
        assert!(processes.len() == 3 && processes.iter().all(|it| it["expected"] == true));
        assert_eq!(side["settings"]["mtu"], 1444);
        assert!(!side["cpu"]["ticks"].as_array().unwrap().is_empty());
    }
    // Both ends count the same.
    for (sender, receiver) in [(&here, &there), (&there, &here)] {
        for (sent, received) in sender["ends"]
            .as_array()
            .unwrap()
            .iter()
            .zip(receiver["ends"].as_array().unwrap())
        {
            if sent["role"] == "sender" {
                let sent = sent["outcome"]["sender"]["sent_packets"].as_u64().unwrap();
                let received = received["outcome"]["receiver"].as_object().unwrap();
                let received = received.values().filter_map(Value::as_u64).max().unwrap();
                assert!(sent > 20 && received > 20, "{sent} {received:?}");
            }
        }
    }
    for side in [&zero, &one] {
        assert!(
            side.folder.join("logs/flow-2-sender.log").exists()
                != side.folder.join("logs/flow-2-receiver.log").exists()
        );
        assert!(!side.folder.join("files").exists());
    }
    let joined = common::run_to_end(
        Command::new(AGENT)
            .arg("tunnel-join")
            .args([&zero.folder, &one.folder]),
    );
    let joined: Value = serde_json::from_slice(&joined.stdout).unwrap();
    for way in ["there", "back"] {
        // At most the traffic of a quarter of the rate in the time that all flows run.
        assert!(
            joined[way]["arrived_bytes"].as_u64().unwrap() > 500_000,
            "{joined:#}"
        );
        assert_eq!(joined[way]["unknown"], 0);
    }

    let truth = Shift::from_document(&tunnel_there).offset_ns(here["start_ns"].as_i64().unwrap());
    recorded(&folder, &cell, &zero.folder, &one.folder, truth);
    unpacked(&zero.folder, &folder.path().join("unpacked"));
}

/// Makes the record of two sides between which packets take at least 5 ms, and reads it.
fn recorded(folder: &Folder, cell: &Value, zero: &Path, one: &Path, truth: i64) {
    let out = folder.path().join("record");
    let message = failure(&make_record(folder, cell, one, zero), 3, "input");
    assert!(message.contains("the folders are confused"), "{message}");
    assert!(!out.exists());
    let output = make_record(folder, cell, zero, one);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(common::last_event(&output)["event"], "done");

    let record = open_record(&out).unwrap();
    let run = &record.run;
    let failed: Vec<_> = run.checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for check in [
        "conservation",
        "endpoints",
        "tunnel",
        "propagation",
        "states",
        "frames",
    ] {
        let check = run.checks.iter().find(|it| it.name == check).unwrap();
        assert!(!check.skipped, "{check:?}");
    }
    // Effects of a busy machine on the endpoints are ignored here.
    for reason in &run.reasons {
        let fine = ![
            "log",
            "strangers",
            "negative_delays",
            "clock",
            "silent",
            "process_died",
        ]
        .contains(&reason.code.as_str());
        assert!(fine, "{:#?}", run.reasons);
    }
    // The record begins up to 20 ms before or after the reading that the truth is for, in which the clocks drift apart
    // by a microsecond.
    let off = (run.clock.offset_ns - truth).unsigned_abs();
    assert!(off <= run.clock.error_ns + 1_000, "{:?}", run.clock);
    assert_eq!(
        (run.plane.as_str(), run.hosts.len(), run.flows.len()),
        ("hosts", 2, 3)
    );
    assert!(run.flows[1].fingerprint.kernel.is_some());
    assert!(
        out.join("logs/flow-2-sender.log").exists()
            && out.join("logs/flow-2-receiver.log").exists()
    );

    let mut reader = PacketReader::open(record.packets.clone().unwrap()).unwrap();
    let mut chunk = Chunk::default();
    let mut minimum = [u64::MAX; 2];
    let mut data = [0u64; 4];
    while reader.next(&mut chunk).unwrap() {
        for row in (0..chunk.len()).map(|index| chunk.row(index)) {
            let way = row.direction as usize;
            if let Some(arrived) = row.arrived_ns {
                minimum[way] = minimum[way].min(arrived - row.sent_ns);
                let sends = usize::from(row.flow == 2) == way;
                data[usize::from(row.flow)] += u64::from(sends);
            }
        }
    }
    // A drift that is wrong by the 200 ppm that a second can hide makes the sum wrong by 0.2 ms; the path is never
    // early.
    assert!(minimum[0] + minimum[1] > 9_800_000, "{minimum:?}");
    assert!(data[1..].iter().all(|&packets| packets > 20), "{data:?}");
    let measured = metrics::measure(&record).unwrap();
    let of = |flow: usize, name: &str| measured["flows"][flow]["metrics"][name].as_f64();
    for flow in 0..3 {
        assert!(
            of(flow, "throughput_bps").unwrap() > 100_000.0,
            "{measured:#}"
        );
        assert!(of(flow, "queueing_delay_p95_ns").unwrap() >= 0.0);
    }
    assert_eq!(of(3, "utilization_ratio"), None);
}

/// Packs and removes a folder, and compares the content of the stream with the original.
fn unpacked(from: &Path, to: &Path) {
    let names = |at: &Path| -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<_> = ["", "logs"]
            .iter()
            .flat_map(|part| std::fs::read_dir(at.join(part)).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| {
                let name = path.strip_prefix(at).unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect();
        found.sort();
        found
    };
    let before = names(from);
    assert!(before.len() >= 4 + 3);
    std::fs::create_dir(to).unwrap();
    let stream = common::run_to_end(Command::new(AGENT).arg("pack").arg(from).arg("--remove"));
    assert!(stream.status.success(), "{:?}", stream.stderr);
    let mut tar = Command::new("tar")
        .args(["-xf", "-", "-C"])
        .arg(to)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    tar.stdin.take().unwrap().write_all(&stream.stdout).unwrap();
    assert!(tar.wait().unwrap().success());
    assert_eq!(names(to), before);
    assert!(!from.exists());
}
