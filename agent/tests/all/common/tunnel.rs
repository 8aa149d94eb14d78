//! Both ends of a tunnel on this machine, for tests.

use super::{Folder, run_to_end, wait};
use narrows_tunnel::log::{LogKind, TunnelLogRow, decode};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Variable that makes a test program act as one of the programs inside.
const PART: &str = "NARROWS_TEST_TUNNEL";
pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_narrows-agent");
pub(crate) const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The program inside a tunnel, when tests start their program again: `receive N` and `send N` bytes by TCP, or `wait`.
/// The ignored test `tunnel::inside` calls this.
pub(crate) fn play() {
    let part = std::env::var(PART).unwrap_or_default();
    let mut words = part.split(' ');
    let what = words.next();
    let bytes: usize = words.next().map_or(0, |word| word.parse().unwrap());
    match what {
        Some("receive") => {
            let listener = TcpListener::bind("10.77.0.1:5000").unwrap();
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), "10.77.0.2");
            let mut all = vec![0; bytes];
            stream.read_exact(&mut all).unwrap();
            let sum: u64 = all.iter().map(|&byte| u64::from(byte)).sum();
            stream.write_all(&sum.to_be_bytes()).unwrap();
            // The other side ends the tunnel when it has read the answer.
            let _ = stream.read(&mut [0]);
            std::thread::sleep(Duration::from_mins(1));
        }
        Some("send") => {
            let start = Instant::now();
            let mut stream = loop {
                match TcpStream::connect("10.77.0.1:5000") {
                    Ok(stream) => break stream,
                    // The receiver may not be ready yet.
                    Err(error) => assert!(start.elapsed() < Duration::from_mins(1), "{error}"),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            let all: Vec<u8> = (0..bytes)
                .map(|index| (index * 7 + index / 251) as u8)
                .collect();
            stream.write_all(&all).unwrap();
            let mut sum = [0; 8];
            stream.read_exact(&mut sum).unwrap();
            let expected: u64 = all.iter().map(|&byte| u64::from(byte)).sum();
            assert_eq!(u64::from_be_bytes(sum), expected);
        }
        Some("wait") => std::thread::sleep(Duration::from_mins(10)),
        _ => panic!("not to be run by itself ({part:?})"),
    }
}

/// The command that makes the test program play its part.
fn program() -> Vec<String> {
    let this = std::env::current_exe().unwrap();
    [
        this.to_str().unwrap(),
        "--exact",
        "tunnel::inside",
        "--ignored",
        "--nocapture",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The events of an agent, one per line.
pub(crate) struct Events {
    lines: BufReader<ChildStdout>,
    /// Events that have been read.
    pub(crate) told: Vec<Value>,
}

impl Events {
    /// The events of an agent that was started with a pipe for its output.
    pub(crate) fn new(child: &mut Child) -> Events {
        Events {
            lines: BufReader::new(child.stdout.take().unwrap()),
            told: Vec::new(),
        }
    }

    /// Reads lines until an event of this name; `None` at the end of the output.
    pub(crate) fn until(&mut self, event: &str) -> Option<Value> {
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

    /// The further output of the agent, and its exit status.
    pub(crate) fn output(&mut self, child: &mut Child) -> Output {
        let mut stdout = Vec::new();
        self.lines.read_to_end(&mut stdout).unwrap();
        let status = wait(child);
        Output {
            status,
            stdout,
            stderr: Vec::new(),
        }
    }
}

/// A running end, and its events.
pub(crate) struct End {
    pub(crate) child: Child,
    events: Events,
    pub(crate) folder: PathBuf,
}

impl End {
    pub(crate) fn start(folder: &Folder, name: &str, part: &str, change: &Value) -> End {
        End::start_behind(&[], folder, name, part, change)
    }

    /// Starts an end through `wrapper`, whose last argument precedes the program.
    pub(crate) fn start_behind(
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
        End {
            events: Events::new(&mut child),
            child,
            folder: place,
        }
    }

    /// Reads lines until an event of this name; `None` at the end of the output.
    pub(crate) fn until(&mut self, event: &str) -> Option<Value> {
        self.events.until(event)
    }

    pub(crate) fn address(&mut self) -> String {
        let ready = self.until("ready").expect("the end is ready");
        ready["address"].as_str().unwrap().to_owned()
    }

    /// The content of `tunnel.json`.
    pub(crate) fn end(&mut self) -> Value {
        let done = self.until("done");
        assert!(wait(&mut self.child).success(), "{:?}", self.events.told);
        done.expect("the end reports its counts")["tunnel"].clone()
    }

    pub(crate) fn output(mut self) -> Output {
        self.events.output(&mut self.child)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The agent's joined table of both folders.
pub(crate) fn join(reference: &Path, other: &Path) -> Value {
    let output = run_to_end(
        Command::new(AGENT)
            .arg("tunnel-join")
            .arg(reference)
            .arg(other),
    );
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The shift of the clock of an end. Both ends read the same oscillator, so this is the truth with which estimates are
/// compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    start_raw_ns: i64,
    offset_ns: i64,
    drift_ppb: i64,
}

impl Shift {
    /// Read from an end's `tunnel.json`.
    pub(crate) fn from_document(document: &Value) -> Shift {
        let number = |key: &str| document["clock_shift"][key].as_i64().unwrap();
        Shift {
            start_raw_ns: number("start_raw_ns"),
            offset_ns: number("offset_ns"),
            drift_ppb: number("drift_ppb"),
        }
    }

    /// The reading of the shifted clock less that of the machine's clock, at a reading of the latter.
    pub(crate) fn offset_ns(self, raw_ns: i64) -> i64 {
        let since = i128::from(raw_ns) - i128::from(self.start_raw_ns);
        self.offset_ns + (since * i128::from(self.drift_ppb) / 1_000_000_000) as i64
    }

    /// The machine's reading at a reading of the shifted clock, to a nanosecond.
    pub(crate) fn raw_ns(self, shifted_ns: i64) -> i64 {
        let since = i128::from(shifted_ns) - i128::from(self.start_raw_ns + self.offset_ns);
        let raw = since * 1_000_000_000 / (1_000_000_000 + i128::from(self.drift_ppb));
        self.start_raw_ns + raw as i64
    }
}

/// The two logs of one end.
pub(crate) struct Logs {
    pub(crate) sent: Vec<TunnelLogRow>,
    pub(crate) arrived: Vec<TunnelLogRow>,
}

impl Logs {
    pub(crate) fn read(folder: &Path) -> Logs {
        let rows = |name: &str, side| {
            let mut rows = Vec::new();
            decode(side, &std::fs::read(folder.join(name)).unwrap(), &mut rows).unwrap();
            rows
        };
        Logs {
            sent: rows("sent.ntl", LogKind::Sent),
            arrived: rows("arrived.ntl", LogKind::Arrived),
        }
    }
}
