//! Both sides of runs between two hosts, on this machine: two agents, two tunnels' ends, the endpoints of flows.

mod bare;
mod ends;
mod loaded;
mod together;

use crate::common::tunnel::{AGENT, Events, SECRET};
use crate::common::{Folder, MS};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};

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

/// A running side.
struct Side {
    child: Child,
    orders: Option<ChildStdin>,
    events: Events,
    folder: PathBuf,
}

impl Side {
    /// Starts `agent` (possibly through other programs) for one host of `cell`, with a tunnel.
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
        let mut side = Side {
            orders: child.stdin.take(),
            events: Events::new(&mut child),
            child,
            folder: place,
        };
        side.order(&plan);
        side
    }

    fn here(folder: &Folder, host: u16, cell: &Value, tunnel: &Value) -> Side {
        Side::start(&[AGENT.to_owned()], folder, host, cell, tunnel)
    }

    fn order(&mut self, order: &Value) {
        // A side that has ended does not read.
        let _ = writeln!(self.orders.as_mut().unwrap(), "{order}");
    }

    /// The first event of this name, waiting for it.
    fn until(&mut self, event: &str) -> Value {
        if let Some(told) = self.events.told.iter().find(|told| told["event"] == event) {
            return told.clone();
        }
        let next = self.events.until(event);
        next.unwrap_or_else(|| panic!("no event {event}: {:#?}", self.events.told))
    }

    /// Waits for its end, which must be successful.
    fn end_well(&mut self) {
        self.until("done");
        assert!(
            crate::common::wait(&mut self.child).success(),
            "{:#?}",
            self.events.told
        );
    }

    fn address(&mut self) -> String {
        self.until("ready")["address"].as_str().unwrap().to_owned()
    }

    fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.folder.join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// All its output until it ends.
    fn output(&mut self) -> Output {
        self.events.output(&mut self.child)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two sides that are ready to start; the first listens.
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

/// Makes the record of two sides in the folder `record`.
fn make_record(folder: &Folder, cell: &Value, zero: &Path, one: &Path) -> Output {
    let file = folder.path().join("cell.json");
    std::fs::write(&file, cell.to_string()).unwrap();
    let mut command = Command::new(AGENT);
    command.arg("side-record").arg("--cell").arg(&file);
    command.arg("--host0").arg(zero).arg("--host1").arg(one);
    crate::common::run_to_end(command.arg("--out").arg(folder.path().join("record")))
}

/// An agent that was copied to this machine alone, without the program that loads congestion controls.
fn travelled(folder: &Folder) -> [String; 1] {
    let place = folder.path().join("travelled");
    std::fs::create_dir(&place).unwrap();
    let agent = place.join("narrows-agent");
    std::fs::copy(AGENT, &agent).unwrap();
    [agent.to_str().unwrap().to_owned()]
}
