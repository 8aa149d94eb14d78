//! Both sides of runs between two hosts, on this machine: two agents, two tunnels' ends, the endpoints of flows.

mod common;

use common::{
    Folder, MS, can_emulate, can_load, descendants, eventually, failure, is_alive, my_turn, signal,
};
use narrows_cell::open_record;
use narrows_record::read::PacketReader;
use narrows_record::{Chunk, metrics};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};

const AGENT: &str = env!("CARGO_BIN_EXE_narrows-agent");
const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// A cell of flows that start 100 ms after each other; the sender of a flow whose scheme is preceded by '<' is host 1.
fn cell(schemes: &[&str], duration_ms: u64) -> Value {
    let flows: Vec<Value> = (1..)
        .zip(schemes)
        .map(|(flow, scheme)| {
            let direction = if scheme.starts_with('<') {
                "backward"
            } else {
                "forward"
            };
            json!({"flow": flow, "scheme": scheme.trim_start_matches('<'), "params": {},
                   "start_ns": (flow - 1) * 100 * MS, "stop_ns": duration_ms * MS,
                   "direction": direction, "extra_rtt_ns": 0})
        })
        .collect();
    json!({
        "format": "narrows/cell/1", "id": "test-r1", "scheme": "test", "run": 1, "where": "hosts",
        "seed": 77, "duration_ns": duration_ms * MS, "record": "packets", "bin_ns": 100 * MS,
        "sample_ns": 10 * MS, "flows": flows, "transport": {},
        "network": {"kind": "dumbbell", "forward": [{"name": "forward.0", "kind": "real"}],
                    "backward": [{"name": "backward.0", "kind": "real"}]},
    })
}

/// A side that runs.
struct Side {
    child: Child,
    orders: Option<ChildStdin>,
    lines: BufReader<std::process::ChildStdout>,
    told: Vec<Value>,
    folder: PathBuf,
}

impl Side {
    /// Starts `agent` (perhaps behind other programs) for one host of `cell`, with a tunnel.
    fn start(agent: &[String], folder: &Folder, host: u16, cell: &Value, tunnel: &Value) -> Side {
        let mut keys = json!({"secret": SECRET, "patience_ns": 60_000 * MS});
        for (key, value) in tunnel.as_object().unwrap() {
            keys[key] = value.clone();
        }
        Side::start_with(agent, folder, host, cell, &json!({"tunnel": keys}))
    }

    /// The same, with other members of the plan.
    fn start_with(
        agent: &[String],
        folder: &Folder,
        host: u16,
        cell: &Value,
        more: &Value,
    ) -> Side {
        let place = folder.path().join(format!("host-{host}"));
        let mut plan = json!({"format": "narrows/side/1", "cell": cell, "files": {}, "host": host,
                              "folder": place});
        for (key, value) in more.as_object().unwrap() {
            plan[key] = value.clone();
        }
        let mut child = Command::new(&agent[0])
            .args(&agent[1..])
            .args(["side", "--plan", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut side = Side {
            orders: child.stdin.take(),
            child,
            lines,
            told: Vec::new(),
            folder: place,
        };
        side.order(&plan);
        side
    }

    fn here(folder: &Folder, host: u16, cell: &Value, tunnel: &Value) -> Side {
        Side::start(&[AGENT.to_owned()], folder, host, cell, tunnel)
    }

    fn order(&mut self, order: &Value) {
        // A side that has given up does not listen.
        let _ = writeln!(self.orders.as_mut().unwrap(), "{order}");
    }

    /// Reads lines until an event of this name.
    fn until(&mut self, event: &str) -> Value {
        if let Some(told) = self.told.iter().find(|told| told["event"] == event) {
            return told.clone();
        }
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            assert!(length > 0, "no event {event}: {:#?}", self.told);
            let told: Value = serde_json::from_str(&line).unwrap();
            self.told.push(told.clone());
            if told["event"] == event {
                return told;
            }
        }
    }

    fn address(&mut self) -> String {
        self.until("ready")["address"].as_str().unwrap().to_owned()
    }

    fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.folder.join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Everything that it says until it ends.
    fn output(&mut self) -> Output {
        let mut stdout = Vec::new();
        self.lines.read_to_end(&mut stdout).unwrap();
        let status = common::wait(&mut self.child);
        Output {
            status,
            stdout,
            stderr: Vec::new(),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two sides, the first of which listens, that are ready to start.
fn pair(folder: &Folder, cell: &Value, tunnel: &Value) -> (Side, Side) {
    let mut listening = tunnel.clone();
    listening["bind"] = "127.0.0.1:0".into();
    let mut zero = Side::here(folder, 0, cell, &listening);
    let mut calling = tunnel.clone();
    calling["dial"] = zero.address().into();
    let mut one = Side::here(folder, 1, cell, &calling);
    for side in [&mut zero, &mut one] {
        side.until("open");
        side.until("prepared");
    }
    (zero, one)
}

/// The machine's own reading at a reading of a clock that may be shifted.
fn raw(tunnel: &Value, reading: &Value) -> i128 {
    let shift = |key: &str| i128::from(tunnel["clock_shift"][key].as_i64().unwrap());
    let start = shift("start_raw_ns");
    let since = i128::from(reading.as_u64().unwrap()) - start - shift("offset_ns");
    start + since * 1_000_000_000 / (1_000_000_000 + shift("drift_ppb"))
}

#[test]
fn three_flows_start_together_and_tell_what_they_did() {
    let _turn = my_turn();
    if !can_emulate("two sides play a cell") {
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
        side.until("done");
        assert!(common::wait(&mut side.child).success(), "{:#?}", side.told);
    }

    let (here, there) = (zero.json("side.json"), one.json("side.json"));
    let (tunnel_here, tunnel_there) = (zero.json("tunnel.json"), one.json("tunnel.json"));
    assert_eq!(
        (&tunnel_here["host"], &tunnel_there["host"]),
        (&json!(0), &json!(1))
    );
    let apart = raw(&tunnel_here, &here["start_ns"]) - raw(&tunnel_there, &there["start_ns"]);
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
    // What one end counts the other does.
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
        // At most what a quarter of the rate carries in the time that all flows run.
        assert!(
            joined[way]["arrived_bytes"].as_u64().unwrap() > 500_000,
            "{joined:#}"
        );
        assert_eq!(joined[way]["unknown"], 0);
    }

    let truth = {
        let shift = |key: &str| i128::from(tunnel_there["clock_shift"][key].as_i64().unwrap());
        let since = i128::from(here["start_ns"].as_u64().unwrap()) - shift("start_raw_ns");
        (shift("offset_ns") + since * shift("drift_ppb") / 1_000_000_000) as i64
    };
    recorded(&folder, &cell, &zero.folder, &one.folder, truth);
    unpacked(&zero.folder, &folder.path().join("unpacked"));
}

/// Makes the record of two sides between which packets take 5 ms at the least, and reads it.
fn recorded(folder: &Folder, cell: &Value, zero: &Path, one: &Path, truth: i64) {
    let file = folder.path().join("cell.json");
    std::fs::write(&file, cell.to_string()).unwrap();
    let out = folder.path().join("record");
    let make = |first: &Path, second: &Path| {
        let mut command = Command::new(AGENT);
        command.arg("side-record").arg("--cell").arg(&file);
        command.arg("--host0").arg(first).arg("--host1").arg(second);
        common::run_to_end(command.arg("--out").arg(&out))
    };
    let message = failure(&make(one, zero), 3, "input");
    assert!(message.contains("the folders are confused"), "{message}");
    assert!(!out.exists());
    let output = make(zero, one);
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
    // What a busy machine does to the endpoints is another matter.
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
    let mut least = [u64::MAX; 2];
    let mut data = [0u64; 4];
    while reader.next(&mut chunk).unwrap() {
        for row in (0..chunk.len()).map(|index| chunk.row(index)) {
            let way = row.direction as usize;
            if let Some(arrived) = row.arrived_ns {
                least[way] = least[way].min(arrived - row.sent_ns);
                let sends = usize::from(row.flow == 2) == way;
                data[usize::from(row.flow)] += u64::from(sends);
            }
        }
    }
    // A drift that is wrong by the 200 ppm that a second can hide makes the sum wrong by 0.2 ms; the path is never
    // early.
    assert!(least[0] + least[1] > 9_800_000, "{least:?}");
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

/// An agent that has come to this machine alone, without the program that loads congestion controls.
fn travelled(folder: &Folder) -> [String; 1] {
    let place = folder.path().join("travelled");
    std::fs::create_dir(&place).unwrap();
    let agent = place.join("narrows-agent");
    std::fs::copy(AGENT, &agent).unwrap();
    [agent.to_str().unwrap().to_owned()]
}

#[test]
fn a_congestion_control_is_loaded_where_the_data_come_from() {
    let _turn = my_turn();
    if !can_load("a side loads a congestion control") {
        return;
    }
    let folder = Folder::new("side-bpf");
    let mut cell = cell(&["bpf:htcp"], 500);
    cell["flows"][0]["traffic"] = json!({"kind": "transfer", "bytes": 500_000});
    let mut zero = Side::here(&folder, 0, &cell, &json!({"bind": "127.0.0.1:0"}));
    let to = json!({"dial": zero.address()});
    let mut one = Side::start(&travelled(&folder), &folder, 1, &cell, &to);
    for side in [&mut zero, &mut one] {
        side.until("open");
        side.until("prepared");
    }
    one.order(&json!({"order": "start", "in_ns": 200 * MS}));
    let start = one.until("starting");
    zero.order(&json!({"order": "start", "at_ns": start["at_ns"]}));
    for side in [&mut zero, &mut one] {
        side.until("done");
        assert!(common::wait(&mut side.child).success(), "{:#?}", side.told);
    }
    let document = zero.json("side.json");
    let sender = &document["ends"][0];
    let name = &sender["loaded"]["identity"]["kernel_name"];
    assert!(name.as_str().unwrap().starts_with("nw_"), "{sender}");
    assert_eq!(&sender["outcome"]["read_back"], name);
    assert_eq!(document["missed_calls"], json!({}));
    let receiver = one.json("side.json")["ends"][0].clone();
    assert_eq!(receiver["outcome"]["problem"], Value::Null, "{receiver}");
    assert_eq!(receiver["outcome"]["ended"].as_array().unwrap().len(), 1);
    assert!(receiver.get("loaded").is_none());
}

/// Packs a folder, removing it, and compares what comes out of the stream with what was in it.
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

#[test]
fn without_a_tunnel_flows_run_between_the_addresses_of_machines() {
    let _turn = my_turn();
    let folder = Folder::new("side-bare");
    let mut cell = cell(&["<linux:reno", "cubic"], 800);
    for (flow, bytes) in [(0, 3_000_000), (1, 200_000)] {
        cell["flows"][flow]["traffic"] = json!({"kind": "transfer", "bytes": bytes});
    }
    let addresses = ["127.0.0.1", "127.0.0.2"];
    let start = |host: u16, here: &str, there: &str| {
        let agent = [AGENT.to_owned()];
        let bare = json!({"tunnel": null, "addresses": {"here": here, "there": there}});
        Side::start_with(&agent, &folder, host, &cell, &bare)
    };
    let mut foreign = start(0, "192.0.2.1", addresses[1]);
    let message = failure(&foreign.output(), 4, "unavailable");
    assert!(message.contains("192.0.2.1 is no address"), "{message}");
    let mut zero = start(0, addresses[0], addresses[1]);
    let mut one = start(1, addresses[1], addresses[0]);
    zero.until("prepared");
    one.until("prepared");
    assert_eq!(one.until("ready")["inside"], addresses[1]);
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = now.as_nanos() as u64 + 400 * MS;
    for side in [&mut zero, &mut one] {
        side.order(&json!({"order": "start", "real_ns": at}));
    }
    for side in [&mut zero, &mut one] {
        side.until("done");
        assert!(common::wait(&mut side.child).success(), "{:#?}", side.told);
        let document = side.json("side.json");
        let started = document["start_real_ns"].as_u64().unwrap();
        // Both readings of the clock are exact to a microsecond or so.
        assert!(started.abs_diff(at) < 20_000, "{started} {at}");
        assert!(!side.folder.join("tunnel.json").exists());
        for end in document["ends"].as_array().unwrap() {
            assert_eq!(end["failure"], Value::Null, "{end}");
            assert_eq!(end["outcome"]["problem"], Value::Null, "{end}");
        }
    }
    // The server of each transfer has seen its last byte.
    for (side, flow) in [(&zero, 0), (&one, 1)] {
        let end = side.json("side.json")["ends"][flow].clone();
        assert_eq!(end["role"], "receiver");
        assert_eq!(
            end["outcome"]["ended"].as_array().unwrap().len(),
            1,
            "{end}"
        );
    }
    // A time of the other clock cannot be known here.
    std::fs::remove_dir_all(&zero.folder).unwrap();
    let mut alone = start(0, addresses[0], addresses[1]);
    alone.until("prepared");
    alone.order(&json!({"order": "start", "at_ns": at}));
    let message = failure(&alone.output(), 3, "input");
    assert!(
        message.contains("which only a tunnel compares"),
        "{message}"
    );
}

#[test]
fn a_side_that_is_killed_leaves_nothing_and_the_other_notices() {
    let _turn = my_turn();
    if !can_emulate("a killed side leaves nothing") {
        return;
    }
    let folder = Folder::new("side-killed");
    let cell = cell(&["reno", "<linux:reno"], 60_000);
    let (mut zero, one) = pair(&folder, &cell, &json!({"silence_ns": 500 * MS}));
    let family = descendants(one.child.id());
    assert_eq!(family.len(), 2, "one endpoint of each flow");
    zero.order(&json!({"order": "start", "in_ns": 100 * MS}));
    zero.until("progress");
    signal(one.child.id(), "-KILL");
    eventually("all are gone", || family.iter().all(|&pid| !is_alive(pid)));
    let message = failure(&zero.output(), 4, "unavailable");
    assert!(message.contains("nothing has been heard"), "{message}");
    // What there is of the logs can be read.
    assert!(one.folder.join("sent.ntl.part").exists() && !one.folder.join("side.json").exists());
    assert!(zero.folder.join("sent.ntl").exists() && !zero.folder.join("side.json").exists());
    assert_eq!(zero.json("tunnel.json")["reason"], "silence");
}

#[test]
fn the_end_of_the_input_ends_both_sides() {
    let _turn = my_turn();
    if !can_emulate("the end of the input ends both sides") {
        return;
    }
    let folder = Folder::new("side-input");
    let cell = cell(&["cubic"], 60_000);
    let (mut zero, mut one) = pair(&folder, &cell, &json!({}));
    let family: Vec<u32> = [&zero, &one]
        .iter()
        .flat_map(|side| descendants(side.child.id()))
        .collect();
    one.order(&json!({"order": "start", "in_ns": 100 * MS}));
    one.until("starting");
    drop(zero.orders.take());
    failure(&zero.output(), 143, "interrupted");
    let message = failure(&one.output(), 4, "unavailable");
    assert!(
        message.contains("the other end has closed the tunnel"),
        "{message}"
    );
    assert!(family.len() == 2 && family.iter().all(|&pid| !is_alive(pid)));
    assert_eq!(zero.json("tunnel.json")["reason"], "stopped");
}

#[test]
fn orders_and_plans_that_make_no_sense_are_refused() {
    let _turn = my_turn();
    if !can_emulate("bad orders and plans are refused") {
        return;
    }
    let folder = Folder::new("side-refused");
    let here = json!({"bind": "127.0.0.1:0"});
    let reno = cell(&["reno"], 1_000);
    for (order, says) in [
        (
            json!({"order": "start", "in_ns": 1}),
            "wait for 'prepared' and 'open'",
        ),
        (
            json!({"order": "start"}),
            "one of 'in_ns', 'at_ns' and 'real_ns'",
        ),
        (json!({"order": "sing"}), "sing"),
    ] {
        let mut side = Side::here(&folder, 0, &reno, &here);
        side.until("ready");
        side.order(&order);
        let message = failure(&side.output(), 3, "input");
        assert!(message.contains(says), "{message}");
        std::fs::remove_dir_all(&side.folder).unwrap();
    }
    // Plans, of which nothing stays.
    let mut bad = reno.clone();
    bad["flows"][0]["scheme"] = "nonsense".into();
    let message = failure(&Side::here(&folder, 0, &bad, &here).output(), 3, "input");
    assert!(message.contains("'nonsense'"), "{message}");
    let kernel = cell(&["linux:no-such-scheme"], 1_000);
    let message = failure(
        &Side::here(&folder, 0, &kernel, &here).output(),
        4,
        "unavailable",
    );
    assert!(
        message.contains("no congestion control 'no-such-scheme'"),
        "{message}"
    );
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = json!({"bind": taken.local_addr().unwrap()});
    let message = failure(
        &Side::here(&folder, 0, &reno, &taken).output(),
        4,
        "unavailable",
    );
    assert!(message.contains("no UDP socket"), "{message}");
    let agent = travelled(&folder);
    let loaded = cell(&["bpf:htcp"], 1_000);
    let output = Side::start(&agent, &folder, 0, &loaded, &here).output();
    let message = failure(&output, 4, "unavailable");
    assert!(message.contains("let the other host send"), "{message}");
    std::fs::remove_dir_all(folder.path().join("travelled")).unwrap();
    assert_eq!(folder.names(), Vec::<String>::new());

    // Who only receives needs no congestion control.
    let mut one = Side::here(&folder, 1, &kernel, &here);
    one.until("prepared");
}
