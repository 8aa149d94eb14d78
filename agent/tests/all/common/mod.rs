//! Cells, agents and processes for black-box tests.
#![allow(dead_code, reason = "every test program uses another part")]

pub(crate) mod tunnel;

use narrows_record::{Record, Verdict};
pub(crate) use narrows_skips::skip;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub(crate) const MS: u64 = 1_000_000;

/// Emulated runs measure time, so they take turns. (Other test programs run one after another anyway.)
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn my_turn() -> MutexGuard<'static, ()> {
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A folder that is removed afterwards.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("narrows-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Names of all entries of the folder, hidden or not.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A 20 Mbit/s, 10 ms path with a buffer of one and a half BDP. Flows start so close after each other that no slow
/// start has filled the buffer yet: a flow whose first packets all find it full waits a second for its timeout, by RFC
/// 6298.
pub(crate) fn cell(schemes: &[&str], duration_ms: u64) -> Value {
    let flows: Vec<Value> = (1..)
        .zip(schemes)
        .map(|(flow, scheme)| {
            json!({"flow": flow, "scheme": scheme, "params": {}, "start_ns": (flow - 1) * 5 * MS,
                   "stop_ns": duration_ms * MS, "direction": "forward", "extra_rtt_ns": 0})
        })
        .collect();
    let delay = |name: &str| json!({"name": name, "kind": "delay", "delay": 5 * MS});
    json!({
        "format": "narrows/cell/1", "id": "test-r1", "scheme": schemes[0], "run": 1,
        "where": "emulate", "seed": 77, "duration_ns": duration_ms * MS, "record": "packets",
        "bin_ns": 100 * MS, "sample_ns": 10 * MS,
        "network": {
            "kind": "dumbbell",
            "forward": [
                {"name": "forward.0", "kind": "bottleneck",
                 "rate": {"kind": "constant", "rate": 20_000_000},
                 "queue": {"kind": "droptail", "bytes": 37_500, "packets": null}},
                delay("forward.1"),
            ],
            "backward": [delay("backward.0")],
        },
        "flows": flows, "transport": {},
    })
}

/// `narrows-agent emulate` for `cell` with the record in `folder/out`.
pub(crate) fn emulate(folder: &Folder, cell: &Value) -> Command {
    let file = folder.path().join("cell.json");
    std::fs::write(&file, cell.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows-agent"));
    command
        .arg("emulate")
        .arg("--cell")
        .arg(file)
        .arg("--out")
        .arg(folder.path().join("out"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs that a busy machine may spoil before a test gives up.
pub(crate) const ATTEMPTS: usize = 6;

/// Reasons that a busy machine may cause; any other is a defect.
pub(crate) const MACHINE: &[&str] = &[
    "lateness",
    "standstill",
    "emulator_starved",
    "emulator_saturated",
    "endpoint_starved",
    "stolen",
    "sender_starved",
    "send_buffer",
];

/// Notes about pauses of the machine that are too short to change the verdict.
pub(crate) const SPIKES: &[&str] = &["lateness_spike", "endpoint_held_up"];

/// Whether the machine kept time, for every single packet.
pub(crate) fn undisturbed(record: &Record) -> bool {
    let mut reasons = record.run.reasons.iter();
    record.run.verdict == Verdict::Ok && !reasons.any(|reason| SPIKES.contains(&&*reason.code))
}

/// Makes a run and checks a test's claims about its times and rates. A pause of the machine of even a tenth of a second
/// can invalidate them: a disturbed run that fails is repeated, an undisturbed one fails the test immediately. Claims
/// that hold for every run, however busy the machine is, belong into `run`.
pub(crate) fn claim(mut run: impl FnMut() -> Record, check: impl Fn(&Record)) {
    for attempt in 1.. {
        let record = run();
        let Err(failure) = catch_unwind(AssertUnwindSafe(|| check(&record))) else {
            return;
        };
        if attempt == ATTEMPTS || undisturbed(&record) {
            resume_unwind(failure);
        }
        let reasons = record.run.reasons.iter().map(|reason| &*reason.text);
        let reasons: Vec<&str> = reasons.collect();
        eprintln!("a disturbed run is repeated: {}", reasons.join(" "));
    }
}

/// Far above the duration of any run of the tests, even on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// Runs a program to its end; its standard output and error are collected. One that does not end
/// is shown with all its descendants, ended, and fails the test.
pub(crate) fn run_to_end(command: &mut Command) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    finish(child)
}

/// The same for a running program.
pub(crate) fn finish(mut child: Child) -> Output {
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child);
    // Do not wait longer than that for a descendant that keeps a pipe open.
    let text = |lines: &Receiver<Vec<u8>>| {
        lines
            .recv_timeout(LIMIT)
            .expect("whatever the program has started ends with it")
    };
    Output {
        status,
        stdout: text(&stdout),
        stderr: text(&stderr),
    }
}

/// Waits until a program has ended.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > limit {
            let mut family = vec![child.id()];
            family.extend(descendants(child.id()));
            let state: String = family.iter().map(|&pid| describe(pid)).collect();
            for pid in family {
                let _ = Command::new("kill")
                    .args(["-KILL", &pid.to_string()])
                    .status();
            }
            panic!("a program has not ended after {LIMIT:?}:\n{state}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, hear) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        tell.send(bytes)
    });
    hear
}

/// The state of each thread of a process: its name, state, and kernel wait channel.
fn describe(pid: u32) -> String {
    let read = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    let place = PathBuf::from(format!("/proc/{pid}"));
    let command = read(&place.join("cmdline")).replace('\0', " ");
    let mut text = format!("process {pid}: {command}\n");
    for task in std::fs::read_dir(place.join("task")).into_iter().flatten() {
        let task = task.unwrap().path();
        let status = read(&task.join("status"));
        let state = status.lines().find(|line| line.starts_with("State"));
        let _ = write!(
            text,
            "  thread {}: {}, in {}\n{}",
            read(&task.join("comm")).trim(),
            state.unwrap_or_default(),
            read(&task.join("wchan")),
            read(&task.join("stack")),
        );
    }
    text
}

/// The agent's report about this machine.
fn facts() -> Value {
    let output = run_to_end(Command::new(env!("CARGO_BIN_EXE_narrows-agent")).arg("doctor"));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether BPF congestion controls can be loaded here; if not, the running test is skipped.
pub(crate) fn can_load() -> bool {
    let facts = facts();
    let able = facts["bpf"]["ok"] == true;
    if !able {
        skip(&facts["bpf"]["why"]);
    }
    able && can_emulate()
}

/// Whether this machine can emulate at all; if not, the running test is skipped.
pub(crate) fn can_emulate() -> bool {
    let facts = facts();
    let able = facts["namespaces"]["ok"] == true && facts["packet_socket"]["ok"] == true;
    if !able {
        skip(format!(
            "{} {}",
            facts["namespaces"]["why"], facts["packet_socket"]["why"]
        ));
    }
    able
}

/// The last JSON line that the agent printed.
pub(crate) fn last_event(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .rfind(|line| line.starts_with('{'))
        .unwrap_or("null");
    serde_json::from_str(line).unwrap()
}

/// Checks exit code and kind of a failure; returns its sentence.
pub(crate) fn failure(output: &Output, code: i32, kind: &str) -> String {
    let event = last_event(output);
    let text = format!("{output:?}");
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(
        (event["event"].as_str(), event["kind"].as_str()),
        (Some("error"), Some(kind)),
        "{text}"
    );
    let message = event["message"].as_str().unwrap().to_owned();
    assert!(
        !message.contains('\n') && !message.is_empty(),
        "one sentence: {message}"
    );
    message
}

pub(crate) fn signal(pid: u32, signal: &str) {
    assert!(
        Command::new("kill")
            .args([signal, &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// All descendants of a process.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in text
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
        {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// The network namespaces that a process and its descendants use.
pub(crate) fn namespaces(pid: u32) -> Vec<String> {
    let mut all: Vec<String> = std::iter::once(pid)
        .chain(descendants(pid))
        .filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    all.sort();
    all.dedup();
    all
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // A zombie has ended: its parent has not collected it yet.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.starts_with(" Z"))
    })
}

/// Waits until `what` holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < limit, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the agent and both endpoints of each of `flows` flows run; returns the endpoints.
pub(crate) fn wait_for_endpoints(agent: &mut Child, flows: usize) -> Vec<u32> {
    wait_for(agent, 2 * flows)
}

/// Waits until the agent has `number` descendants; returns them.
pub(crate) fn wait_for(agent: &mut Child, number: usize) -> Vec<u32> {
    let mut found = Vec::new();
    eventually("all helpers run", || {
        assert!(
            agent.try_wait().unwrap().is_none(),
            "the agent has ended early"
        );
        found = descendants(agent.id());
        found.len() == number
    });
    found
}
