//! Both ends of a measuring tunnel on this machine, over the loopback.

mod common;

use common::{
    Folder, can_emulate, descendants, eventually, failure, is_alive, last_event, my_turn, signal,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Tells this program that it is to be one of the programs inside.
const PART: &str = "NARROWS_TEST_TUNNEL";
const AGENT: &str = env!("CARGO_BIN_EXE_narrows-agent");
const BYTES: usize = 3_000_000;
const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Not a test: what runs inside the tunnel when others start this program again.
#[test]
#[ignore = "a program for the other tests"]
fn inside() {
    match std::env::var(PART).as_deref() {
        Ok("receive") => {
            let listener = TcpListener::bind("10.77.0.1:5000").unwrap();
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), "10.77.0.2");
            let mut all = vec![0; BYTES];
            stream.read_exact(&mut all).unwrap();
            let sum: u64 = all.iter().map(|&byte| u64::from(byte)).sum();
            stream.write_all(&sum.to_be_bytes()).unwrap();
            // The other side ends the tunnel when it has read the answer.
            let _ = stream.read(&mut [0]);
            std::thread::sleep(Duration::from_mins(1));
        }
        Ok("send") => {
            let start = Instant::now();
            let mut stream = loop {
                match TcpStream::connect("10.77.0.1:5000") {
                    Ok(stream) => break stream,
                    // The receiver may not be ready yet.
                    Err(error) => assert!(start.elapsed() < Duration::from_mins(1), "{error}"),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            let all: Vec<u8> = (0..BYTES)
                .map(|index| (index * 7 + index / 251) as u8)
                .collect();
            stream.write_all(&all).unwrap();
            let mut sum = [0; 8];
            stream.read_exact(&mut sum).unwrap();
            let expected: u64 = all.iter().map(|&byte| u64::from(byte)).sum();
            assert_eq!(u64::from_be_bytes(sum), expected);
        }
        Ok("wait") => std::thread::sleep(Duration::from_mins(10)),
        other => panic!("not to be run by itself ({other:?})"),
    }
}

/// The command that makes this program play its part.
fn program() -> Vec<String> {
    let this = std::env::current_exe().unwrap();
    [
        this.to_str().unwrap(),
        "--exact",
        "inside",
        "--ignored",
        "--nocapture",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// One end that runs, and the lines that it prints.
struct End {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    told: Vec<Value>,
    folder: PathBuf,
}

impl End {
    fn start(folder: &Folder, name: &str, part: &str, change: &Value) -> End {
        End::start_behind(&[], folder, name, part, change)
    }

    /// Started by `wrapper`, whose last argument comes before the program.
    fn start_behind(
        wrapper: &[String],
        folder: &Folder,
        name: &str,
        part: &str,
        change: &Value,
    ) -> End {
        let place = folder.path().join(name);
        let mut plan = json!({
            "format": "narrows/tunnel/1", "secret": SECRET, "folder": place, "command": program(),
            "patience_ns": 60_000_000_000u64,
        });
        for (key, value) in change.as_object().unwrap() {
            plan[key] = value.clone();
        }
        let file = folder.path().join(format!("{name}.json"));
        std::fs::write(&file, plan.to_string()).unwrap();
        let mut line = wrapper.to_vec();
        line.extend([AGENT, "tunnel", "--plan"].map(str::to_owned));
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .arg(file)
            .env(PART, part)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        End {
            child,
            lines,
            told: Vec::new(),
            folder: place,
        }
    }

    /// Reads lines until an event of this name; `None` at the end of the output.
    fn until(&mut self, event: &str) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let told: Value = serde_json::from_str(&line).unwrap();
            self.told.push(told.clone());
            if told["event"] == event {
                return Some(told);
            }
        }
    }

    fn address(&mut self) -> String {
        let ready = self.until("ready").expect("the end is ready");
        ready["address"].as_str().unwrap().to_owned()
    }

    /// The content of `tunnel.json`.
    fn end(&mut self) -> Value {
        let done = self.until("done");
        assert!(common::wait(&mut self.child).success(), "{:?}", self.told);
        done.expect("the end tells what was")["tunnel"].clone()
    }

    fn output(mut self) -> Output {
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

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn join(reference: &Path, other: &Path) -> Value {
    let output = common::run_to_end(
        Command::new(AGENT)
            .arg("tunnel-join")
            .arg(reference)
            .arg(other),
    );
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the shifted clock reads less what the plain one reads, at a reading of the plain one.
fn true_offset(shift: &Value, at_ns: i64) -> i64 {
    let number = |key: &str| i128::from(shift[key].as_i64().unwrap());
    let since = i128::from(at_ns) - number("start_raw_ns");
    (number("offset_ns") + since * number("drift_ppb") / 1_000_000_000) as i64
}

/// Both ends read the same oscillator, so the true relation of their clocks is what `shifted`, the
/// document of the end that is not the reference, was asked for.
fn the_bound_holds_the_truth(joined: &Value, shifted: &Value) {
    for place in ["start", "end"] {
        let clock = &joined["clock"][place];
        let truth = true_offset(&shifted["clock_shift"], clock["at_ns"].as_i64().unwrap());
        let error = (clock["offset_ns"].as_i64().unwrap() - truth).unsigned_abs();
        // Two nanoseconds of rounding.
        let bound = clock["error_ns"].as_u64().unwrap() + 2;
        assert!(error <= bound, "off by {error}: {joined:#}");
    }
}

#[test]
fn tcp_runs_through_and_both_logs_agree_although_strangers_shout() {
    let _turn = my_turn();
    if !can_emulate("tcp runs through a tunnel") {
        return;
    }
    let folder = Folder::new("tunnel-tcp");
    let shift = json!({"offset_ns": 2_500_000_000i64, "drift_ppb": 50_000});
    let mut listener = End::start(
        &folder,
        "listener",
        "receive",
        &json!({"bind": "127.0.0.1:0", "clock": shift}),
    );
    let address = listener.address();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let shout = |count: usize| {
        for index in 0..count {
            // All kinds, sessions and sizes.
            let bytes: Vec<u8> = (0..index % 1400)
                .map(|at| (index * 31 + at * at) as u8)
                .collect();
            let _ = stranger.send_to(&bytes, &address);
        }
    };
    shout(500);
    let mut dialer = End::start(&folder, "dialer", "send", &json!({"dial": address}));
    dialer.until("open").expect("the tunnel opens");
    shout(2_000);
    let (there, here) = (dialer.end(), listener.end());
    for (end, reason) in [(&there, "program_ended"), (&here, "other_end")] {
        assert_eq!(end["reason"], reason, "{end:#}");
        assert_eq!(end["sent"]["unsent"], 0, "{end:#}");
        assert_eq!(
            (&end["lost_here"]["ring"], &end["arrived"]["undelivered"]),
            (&json!(0), &json!(0))
        );
    }
    let log = std::fs::read_to_string(dialer.folder.join("program.log")).unwrap();
    assert_eq!(there["program"]["exit_code"], 0, "{log}");
    // The loopback carries what an Ethernet does.
    assert_eq!(
        (&there["path_bytes"], &there["inner_mtu"]),
        (&json!(1500), &json!(1444))
    );
    let refused: u64 = here["arrived"]["refused"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert!(refused > 100, "{here:#}");
    assert_eq!(here["arrived"]["sessions"], 1);

    let joined = join(&dialer.folder, &listener.folder);
    assert_eq!(joined["there"]["sent"], there["sent"]["packets"]);
    assert_eq!(joined["back"]["sent"], here["sent"]["packets"]);
    assert_eq!(joined["there"]["arrived"], here["arrived"]["packets"]);
    assert_eq!(joined["back"]["arrived"], there["arrived"]["packets"]);
    for direction in [&joined["there"], &joined["back"]] {
        assert_eq!(
            (
                &direction["unknown"],
                &direction["again"],
                &direction["contradicting"]
            ),
            (&json!(0), &json!(0), &json!(0))
        );
        let least = direction["delay_ns"]["min"].as_i64().unwrap();
        // Never negative, but for the microsecond that stamps may be wrong.
        assert!(least >= -1_002, "{joined:#}");
    }
    let payload = joined["there"]["arrived_bytes"].as_u64().unwrap();
    assert!(payload > BYTES as u64);
    the_bound_holds_the_truth(&joined, &here);
    // The other way round everything is the same, by the other clock.
    let turned = join(&listener.folder, &dialer.folder);
    assert_eq!(turned["back"]["arrived"], joined["there"]["arrived"]);
    assert_eq!(turned["there"]["lost"], joined["back"]["lost"]);
}

#[test]
fn an_asymmetric_path_lies_within_the_bound() {
    let _turn = my_turn();
    if !can_emulate("an asymmetric path lies within the bound") {
        return;
    }
    let folder = Folder::new("tunnel-path");
    let shift = json!({"offset_ns": -700_000_000i64, "drift_ppb": -30_000});
    let end = json!({"bind": "127.0.0.1:0", "clock": shift});
    let mut listener = End::start(&folder, "listener", "receive", &end);
    let port = listener.address().rsplit(':').next().unwrap().to_owned();
    // A shell whose machine outside is this one, 4 ms away there and 12 ms back. What it sends on
    // comes from a port of its own, as from an address translator.
    let delay =
        |name: &str, ms: u64| json!({"name": name, "kind": "delay", "delay": ms * 1_000_000});
    let plan = json!({"format": "narrows/shell/1", "seed": 1, "quiet": true,
        "network": {"kind": "dumbbell",
            "forward": [delay("forward.0", 4)], "backward": [delay("backward.0", 12)]}});
    let file = folder.path().join("shell.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let shell = [AGENT, "shell", "--plan", file.to_str().unwrap(), "--"].map(str::to_owned);
    let to = json!({"dial": format!("198.18.0.1:{port}")});
    let mut dialer = End::start_behind(&shell, &folder, "dialer", "send", &to);
    let (there, here) = (dialer.end(), listener.end());
    let log = std::fs::read_to_string(dialer.folder.join("program.log")).unwrap();
    assert_eq!(there["program"]["exit_code"], 0, "{log}");

    let joined = join(&dialer.folder, &listener.folder);
    the_bound_holds_the_truth(&joined, &here);
    // An emulator is late and never early, so every line between 4 ms above and 12 ms below the true one
    // is possible, and no bound may be smaller than half of that.
    for place in ["start", "end"] {
        assert!(
            joined["clock"][place]["error_ns"].as_u64().unwrap() >= 8_000_000,
            "{joined:#}"
        );
    }
    // The sum of both ways does not depend on the offset. A drift that is wrong by 200 ppm makes it
    // wrong by 1 ms in the 5 s that this takes on a slow machine.
    let least = |way: &str| joined[way]["delay_ns"]["min"].as_i64().unwrap();
    assert!(least("there") + least("back") > 15_000_000, "{joined:#}");
    assert!(least("there") > -1_002 && least("back") > -1_002);
}

#[test]
fn failures_are_one_sentence() {
    let _turn = my_turn();
    if !can_emulate("failures of tunnels are one sentence") {
        return;
    }
    let folder = Folder::new("tunnel-failures");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap().to_string();
    let patience = 300_000_000u64;
    let dialer = End::start(
        &folder,
        "nobody",
        "wait",
        &json!({"dial": to, "patience_ns": patience}),
    );
    let message = failure(&dialer.output(), 4, "unavailable");
    assert!(
        message.contains(&to) && message.contains("firewalls"),
        "{message}"
    );

    // Another secret.
    let mut listener = End::start(
        &folder,
        "listener",
        "wait",
        &json!({"bind": "127.0.0.1:0", "patience_ns": 3_000_000_000u64}),
    );
    let address = listener.address();
    let wrong = "f".repeat(64);
    let dialer = End::start(
        &folder,
        "wrong",
        "wait",
        &json!({"dial": address, "secret": wrong, "patience_ns": patience}),
    );
    failure(&dialer.output(), 4, "unavailable");
    let message = failure(&listener.output(), 4, "unavailable");
    assert!(
        message.contains("do not have this tunnel's secret"),
        "{message}"
    );

    let taken = json!({"bind": to});
    let message = failure(
        &End::start(&folder, "taken", "wait", &taken).output(),
        4,
        "unavailable",
    );
    assert!(message.contains(&to), "{message}");
    let existing = json!({"bind": "127.0.0.1:0", "folder": folder.path()});
    failure(
        &End::start(&folder, "existing", "wait", &existing).output(),
        3,
        "input",
    );
    let output = common::run_to_end(
        Command::new(AGENT)
            .arg("tunnel-join")
            .args([folder.path(), folder.path()]),
    );
    assert!(failure(&output, 3, "input").contains("tunnel.json"));
    assert_eq!(last_event(&output)["event"], "error");
}

#[test]
fn a_killed_end_leaves_no_process_and_logs_that_can_be_read() {
    let _turn = my_turn();
    if !can_emulate("a killed end of a tunnel leaves no process") {
        return;
    }
    let folder = Folder::new("tunnel-killed");
    let silence = json!(1_000_000_000u64);
    let mut listener = End::start(
        &folder,
        "listener",
        "wait",
        &json!({"bind": "127.0.0.1:0", "silence_ns": silence}),
    );
    let address = listener.address();
    let mut dialer = End::start(
        &folder,
        "dialer",
        "wait",
        &json!({"dial": address, "silence_ns": silence}),
    );
    dialer.until("open").expect("the tunnel opens");
    let mut family = Vec::new();
    eventually("the guard and the program run", || {
        family = descendants(dialer.child.id());
        family.len() == 2
    });
    signal(dialer.child.id(), "-KILL");
    eventually("all are gone", || family.iter().all(|&pid| !is_alive(pid)));
    // The other end notices the silence and ends in order.
    let end = listener.end();
    assert_eq!(end["reason"], "silence");
    assert!(listener.folder.join("sent.ntl").exists());
    assert!(dialer.folder.join("sent.ntl.part").exists());
    assert!(!dialer.folder.join("tunnel.json").exists());
}
