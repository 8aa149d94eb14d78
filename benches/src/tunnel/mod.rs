//! Throughput of the tunnel, its cost per packet, and the delay that it adds.

pub mod parts;

use crate::Spread;
use crate::emulator::agent;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SECONDS: u64 = 6;
/// Address of the listener's host.
const INSIDE: &str = "10.77.0.1";
const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Runs every line of the table three times and prints it.
pub fn table() {
    let Some(agent) = agent() else {
        println!(
            "tunnel: not measured; build the agent first (cargo build --release -p narrows-agent)"
        );
        return;
    };
    println!(
        "{:44} {:>26} {:>16} {:>20} {:>20}   not logged, lost",
        format!("tunnel over the loopback, {SECONDS} s, both ends"),
        "received Mbit/s",
        "us per packet",
        "delay p50 us",
        "delay p99 us",
    );
    let rates = [0, 1000, 500, 100, 10];
    for (mbps, through) in rates
        .map(|mbps| (mbps, true))
        .into_iter()
        .chain([(100, false)])
    {
        let rate = match mbps {
            0 => "as fast as it goes".to_owned(),
            mbps => format!("paced at {mbps} Mbit/s"),
        };
        let where_ = if through { "" } else { ", without tunnel" };
        let runs: Result<Vec<Run>, String> = (0..3)
            .map(|_| {
                if through {
                    tunnelled(&agent, mbps)
                } else {
                    plain(mbps)
                }
            })
            .collect();
        match runs {
            Ok(runs) => print(&format!("linux:cubic, {rate}{where_}"), &runs),
            Err(why) => {
                println!("tunnel: not measured; {why}");
                return;
            }
        }
    }
    println!();
}

/// One run.
struct Run {
    /// Payload of TCP.
    mbps: f64,
    p50_us: f64,
    p99_us: f64,
    /// Processor time of both ends' threads that move packets, per packet in either direction.
    us_per_packet: f64,
    /// Packets of the hosts that are in no log of what was sent.
    missing: i64,
    /// Packets that were sent and have not arrived.
    lost: i64,
}

fn print(label: &str, runs: &[Run]) {
    let spread = |value: fn(&Run) -> f64, decimals| {
        Spread::of(runs.iter().map(value).collect()).show(decimals)
    };
    let each: Vec<String> = runs
        .iter()
        .map(|run| format!("{}, {}", run.missing, run.lost))
        .collect();
    println!(
        "{label:44} {:>26} {:>16} {:>20} {:>20}   {}",
        spread(|run| run.mbps, 1),
        spread(|run| run.us_per_packet, 2),
        spread(|run| run.p50_us, 1),
        spread(|run| run.p99_us, 0),
        each.join("; ")
    );
}

/// The command that makes this program play a part.
fn part(arguments: &[&str]) -> Result<Vec<String>, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = vec![this.display().to_string(), parts::WORD.to_owned()];
    command.extend(arguments.iter().map(|&argument| argument.to_owned()));
    Ok(command)
}

fn received(line: &str) -> Result<Run, String> {
    let document: Value = serde_json::from_str(line.trim()).map_err(|_| line.to_owned())?;
    let number = |key: &str| document[key].as_f64().unwrap_or(f64::NAN);
    Ok(Run {
        mbps: number("mbps"),
        p50_us: number("p50_ns") / 1e3,
        p99_us: number("p99_ns") / 1e3,
        us_per_packet: f64::NAN,
        missing: 0,
        lost: 0,
    })
}

/// The same programs on the machine's own loopback: what the way costs without a tunnel.
fn plain(mbps: u64) -> Result<Run, String> {
    let receive = part(&["receive", "127.0.0.1"])?;
    let send = part(&["send", "127.0.0.1", &SECONDS.to_string(), &mbps.to_string()])?;
    let start = |command: &[String], stdout: Stdio| {
        let child = Command::new(&command[0])
            .args(&command[1..])
            .stdout(stdout)
            .spawn();
        child.map_err(|error| error.to_string())
    };
    let receiver = start(&receive, Stdio::piped())?;
    let sender = start(&send, Stdio::null())?.wait();
    let output = receiver.wait_with_output();
    if !sender.is_ok_and(|status| status.success()) {
        return Err("the sender without a tunnel has failed".to_owned());
    }
    let output = output.map_err(|error| error.to_string())?;
    received(&String::from_utf8_lossy(&output.stdout))
}

/// One end that runs, and its folder.
struct End {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    folder: PathBuf,
}

impl End {
    fn start(
        agent: &Path,
        folder: PathBuf,
        key: &str,
        address: &str,
        command: &[String],
    ) -> Result<End, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut plan = json!({
            "format": "narrows/tunnel/1", "secret": SECRET, "folder": folder, "command": command,
        });
        plan[key] = address.into();
        let file = folder.with_extension("json");
        fs::write(&file, plan.to_string()).map_err(failed)?;
        let (agent, plan) = (agent.display().to_string(), file.display().to_string());
        let command = part(&["preferred", &agent, "tunnel", "--plan", &plan])?;
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take().ok_or("the agent has no output")?;
        let lines = BufReader::new(stdout).lines();
        Ok(End {
            child,
            lines,
            folder,
        })
    }

    /// The next event of this name.
    fn until(&mut self, event: &str) -> Result<Value, String> {
        let mut last = String::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            let told: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if told["event"] == event {
                return Ok(told);
            }
            last = line;
        }
        Err(format!("the agent has ended without '{event}': {last}"))
    }

    /// The content of `tunnel.json`.
    fn end(&mut self) -> Result<Value, String> {
        let mut done = self.until("done")?;
        Ok(done["tunnel"].take())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tunnelled(agent: &Path, mbps: u64) -> Result<Run, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = |name: &str| folder.path().join(name);
    let receive = part(&["receive", INSIDE])?;
    let mut listener = End::start(agent, place("b"), "bind", "127.0.0.1:0", &receive)?;
    let ready = listener.until("ready")?;
    let address = ready["address"].as_str().unwrap_or_default();
    let send = part(&["send", INSIDE, &SECONDS.to_string(), &mbps.to_string()])?;
    let mut dialer = End::start(agent, place("a"), "dial", address, &send)?;
    let ends = [dialer.end()?, listener.end()?];
    let program =
        |end: &End| fs::read_to_string(end.folder.join("program.log")).unwrap_or_default();
    if ends[0]["program"]["exit_code"] != 0 {
        return Err(format!("the sender has failed: {}", program(&dialer)));
    }
    let joined = Command::new(agent)
        .args(["tunnel-join", "--"])
        .args([&dialer.folder, &listener.folder])
        .output()
        .map_err(|error| error.to_string())?;
    let joined: Value =
        serde_json::from_slice(&joined.stdout).map_err(|error| error.to_string())?;
    let number = |value: &Value| value.as_i64().unwrap_or(-1);
    let sum = |value: fn(&Value) -> &Value| ends.iter().map(|end| number(value(end))).sum::<i64>();
    let packets = sum(|end| &end["sent"]["packets"]);
    let logged =
        packets + sum(|end| &end["sent"]["before_session"]) + sum(|end| &end["sent"]["foreign"]);
    Ok(Run {
        us_per_packet: sum(|end| &end["cpu_ns"]) as f64 / 1e3 / packets as f64,
        missing: sum(|end| &end["wire"]["host_sent"]) - logged,
        lost: number(&joined["there"]["lost"]) + number(&joined["back"]["lost"]),
        ..received(&program(&listener))?
    })
}
