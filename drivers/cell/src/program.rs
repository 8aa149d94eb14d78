//! An external program as both ends of a flow: the processes in its two hosts, their readiness, and their end.
//! Manifests (`narrows/program/1`) are read and checked in Python; cells contain plain data.

use crate::{Cell, CellError, Flow, Role, SchemeRef};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The two processes of a program, by their role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Starts before the run and waits for connections.
    Listener,
    /// Starts with the flow and connects to the listener.
    Connector,
}

impl Side {
    /// The word in manifests and sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Listener => "listener",
            Side::Connector => "connector",
        }
    }

    /// The other side.
    pub const fn other(self) -> Side {
        match self {
            Side::Listener => Side::Connector,
            Side::Connector => Side::Listener,
        }
    }
}

/// The sign that a process is ready.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    /// It listens on this TCP port, or on that of the flow.
    Tcp(Option<u16>),
    /// It has bound this UDP port, or that of the flow.
    Udp(Option<u16>),
    /// It listens on this port, or on that of the flow, by TCP or by UDP.
    Port(Option<u16>),
    /// A line of its output contains this text.
    Line(String),
}

/// The standard input of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StandardInput {
    /// Empty.
    #[default]
    Null,
    /// Open, without any input.
    Open,
    /// As much input as is read.
    Endless,
}

/// One process of a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SidePlan {
    /// Program and arguments, with placeholders.
    pub command: Vec<String>,
    /// Variables that are set for it, with placeholders.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working folder; by default that of its logs.
    #[serde(default)]
    pub folder: Option<String>,
    /// Standard input.
    #[serde(default)]
    pub stdin: StandardInput,
    /// Sign that it is ready. A connector with one also starts before the run, and a line on its standard input signals
    /// the start of its flow.
    #[serde(default)]
    pub ready: Option<Readiness>,
}

/// The event after which a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndsWith {
    /// A signal when the flow stops; before that it must not end.
    Signal,
    /// The duration that was passed to it.
    Duration,
    /// Completion of its transfer, at any time.
    Done,
}

/// How a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndPlan {
    /// The event after which it ends.
    pub when: EndsWith,
    /// Number of the signal.
    pub signal: i32,
    /// Time from the signal until it is killed.
    pub grace_ns: u64,
}

/// Limits of each process of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramLimits {
    /// Maximum time until a process that starts before the run is ready.
    pub ready_ns: u64,
    /// Memory: of the whole program if control groups are available, otherwise the private memory of each of its
    /// processes (`RLIMIT_DATA`).
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Processor time (`RLIMIT_CPU`, whole seconds).
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Time from the start of a process until it is killed.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Size of each file that it writes (`RLIMIT_FSIZE`).
    pub file_bytes: u64,
    /// Output that is kept, of each of its two streams.
    pub output_bytes: u64,
}

/// A folder in which the processes of a program run as in a separate file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRoot {
    /// Its path.
    pub folder: String,
    /// `folder`, or `oci` for an unpacked archive.
    pub kind: String,
    /// Digest of its content: of the manifest of an archive, or over names, modes and contents of a folder.
    pub digest: String,
    /// Variables that an archive sets for its programs.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A program with one of its variants.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// Name of the variant.
    pub variant: String,
    /// SHA-256 of the manifest.
    pub manifest: String,
    /// The side that sends the data.
    pub data: Side,
    /// Command that prints the version; empty if there is none.
    #[serde(default)]
    pub version: Vec<String>,
    /// Files that it needs, whose hashes are recorded.
    #[serde(default)]
    pub files: Vec<String>,
    /// The process that starts before the run.
    pub listener: SidePlan,
    /// The process that connects to it.
    pub connector: SidePlan,
    /// How it ends.
    pub end: EndPlan,
    /// Limits of each process.
    pub limits: ProgramLimits,
    /// True if one listener serves all flows of this program with the same host for it.
    #[serde(default)]
    pub shared: bool,
    /// File in the folders of both sides in which they report video frames, if any.
    #[serde(default)]
    pub frames: Option<String>,
    /// File in the folder of the receiving side in which a player reports segments; only stored.
    #[serde(default)]
    pub segments: Option<String>,
    /// Its file system, if not that of the machine.
    #[serde(default)]
    pub root: Option<ProgramRoot>,
    /// Metrics that it reports in its output.
    #[serde(default)]
    pub reports: serde_json::Value,
}

impl Program {
    /// The side at one end of the flow.
    pub fn side_at(&self, role: Role) -> Side {
        match role {
            Role::Sender => self.data,
            Role::Receiver => self.data.other(),
        }
    }

    /// The process of a side.
    pub fn plan(&self, side: Side) -> &SidePlan {
        match side {
            Side::Listener => &self.listener,
            Side::Connector => &self.connector,
        }
    }

    /// Maximum time until a process that starts before the run is ready.
    pub fn ready_limit(&self) -> Duration {
        Duration::from_nanos(self.limits.ready_ns)
    }

    /// Rejects programs that cannot be started.
    pub(crate) fn check(&self, flow: u16) -> Result<(), CellError> {
        let refuse = |text: &str| Err(CellError::Conflict(format!("flow {flow}: {text}")));
        if self.listener.command.is_empty() || self.connector.command.is_empty() {
            return refuse("each side of a program needs a command");
        }
        if self.listener.ready.is_none() {
            return refuse("the listener of a program needs a sign that it is ready");
        }
        if !matches!(self.connector.ready, None | Some(Readiness::Line(_))) {
            return refuse("a connector must signal with a line that it is ready");
        }
        if !(1..=64).contains(&self.end.signal) {
            return refuse("signals go from 1 to 64");
        }
        Ok(())
    }
}

impl Cell {
    /// The flows whose ends are programs, with their programs.
    pub fn programs(&self) -> impl Iterator<Item = (&Flow, &Program)> {
        self.flows.iter().filter_map(|flow| match &flow.scheme {
            SchemeRef::Program(program) => Some((flow, &**program)),
            _ => None,
        })
    }

    /// Private hosts of a flow, sender and receiver: numbered behind those of the network, and attached where the
    /// flow's hosts are. Flows of programs have them, so that every packet can be assigned to its flow regardless of
    /// ports.
    pub fn own_hosts(&self, flow: u16) -> Option<[u16; 2]> {
        let mut next = self.hosts.len() as u16;
        let mut found: Vec<(u16, [u16; 2])> = Vec::new();
        for (other, program) in self.programs() {
            let leader = self
                .leader(other.flow)
                .filter(|leader| *leader != other.flow);
            let mut new = || {
                next += 1;
                next - 1
            };
            let known = leader.and_then(|leader| found.iter().find(|(flow, _)| *flow == leader));
            let hosts = match (known, program.side_at(Role::Sender)) {
                (Some((_, [sender, _])), Side::Listener) => [*sender, new()],
                (Some((_, [_, receiver])), Side::Connector) => [new(), *receiver],
                (None, _) => [new(), new()],
            };
            if other.flow == flow {
                return Some(hosts);
            }
            found.push((other.flow, hosts));
        }
        None
    }

    /// The flow whose listener serves a flow of a program: itself or, if the manifest asks for one process, the first
    /// flow with the same program on the same host.
    pub fn leader(&self, flow: u16) -> Option<u16> {
        let place = |flow: &Flow, program: &Program| match program.side_at(Role::Sender) {
            Side::Listener => flow.from,
            Side::Connector => flow.to,
        };
        let (own, program) = self.programs().find(|(other, _)| other.flow == flow)?;
        let mut others = self.programs();
        let first =
            others.find(|(other, one)| *one == program && place(other, one) == place(own, program));
        match first {
            Some((first, _)) if program.shared => Some(first.flow),
            _ => Some(flow),
        }
    }

    /// Index of the host on which one end of a flow runs.
    pub fn host_at(&self, flow: &Flow, role: Role) -> u16 {
        match (self.own_hosts(flow.flow), role) {
            (Some([sender, _]), Role::Sender) => sender,
            (Some([_, receiver]), Role::Receiver) => receiver,
            (None, Role::Sender) => flow.from,
            (None, Role::Receiver) => flow.to,
        }
    }
}

/// The report on one process of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramReport {
    /// The command line as it was started.
    pub command: Vec<String>,
    /// Variables that were set for it.
    pub env: BTreeMap<String, String>,
    /// Working folder.
    pub folder: String,
    /// The started file, the files that the manifest names, then the mapped libraries, with hashes.
    pub files: Vec<ProgramFile>,
    /// Output of the version command.
    pub version: Option<String>,
    /// When it was started, from the start of the run (negative: before).
    pub started_ns: Option<i64>,
    /// Time from its start until it was ready, if it started before the run.
    pub ready_ns: Option<u64>,
    /// When it ended, from the start of the run.
    pub ended_ns: Option<i64>,
    /// Exit code, if it ended by itself.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// True if it was still running when it had to stop.
    pub stopped: bool,
    /// True if it had to be killed, because it did not end within its grace period.
    pub killed: bool,
    /// True if it was killed because it exceeded its limit of time.
    pub overran: bool,
    /// True if it or one of its processes was killed because it exceeded its limit of memory.
    pub out_of_memory: bool,
    /// The mechanism that enforced its memory limit, if it has one: `cgroup` or `rlimit`.
    pub memory_by: Option<String>,
    /// How its processes are tracked: `namespace`, which the kernel ends as a whole, or `subreaper`.
    pub kept_by: String,
    /// Names of processes that it left behind, which were killed.
    pub left: Vec<String>,
    /// Bytes that it printed: standard output and standard error.
    pub printed: [u64; 2],
    /// Bytes of these that were kept.
    pub kept: [u64; 2],
    /// The last line that it printed.
    pub last_line: Option<String>,
}

/// A file that was part of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    /// `program`, `needed` or `library`.
    pub part: String,
    /// Its path.
    pub path: String,
    /// SHA-256 of its content; none if it could not be read.
    pub sha256: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn cell(program: Value) -> Result<Cell, CellError> {
        let flow = |number: u16, scheme: &str| json!({"flow": number, "scheme": scheme, "stop_ns": 1_000_000_000});
        let mut flows = vec![flow(1, "reno"), flow(2, "x:y"), flow(3, "x:y")];
        flows[1]["program"] = program.clone();
        flows[1]["direction"] = "backward".into();
        flows[2]["program"] = program;
        let cell = json!({
            "format": "narrows/cell/1", "id": "c", "seed": 1, "duration_ns": 1_000_000_000, "record": "packets",
            "bin_ns": 1_000_000, "sample_ns": 1_000_000, "flows": flows,
            "network": {"kind": "dumbbell", "forward": [], "backward": []},
        });
        Cell::parse(&cell.to_string())
    }

    fn program() -> Value {
        json!({
            "name": "x", "variant": "y", "manifest": "00", "data": "connector",
            "listener": {"command": ["a"], "ready": {"tcp": 5000}},
            "connector": {"command": ["b", "{address}"], "stdin": "endless"},
            "end": {"when": "signal", "signal": 15, "grace_ns": 1000},
            "limits": {"ready_ns": 1_000, "file_bytes": 1, "output_bytes": 1},
        })
    }

    #[test]
    fn a_listener_serves_all_flows_where_it_is_to() {
        let mut shared = program();
        shared["shared"] = true.into();
        let cell_of = |directions: [&str; 3], program: Value| {
            let flow = |number: usize| {
                json!({"flow": number + 1, "scheme": "x:y", "stop_ns": 1_000_000_000, "program": program,
                       "direction": directions[number]})
            };
            let cell = json!({
                "format": "narrows/cell/1", "id": "c", "seed": 1, "duration_ns": 1_000_000_000, "record": "packets",
                "bin_ns": 1_000_000, "sample_ns": 1_000_000, "flows": [flow(0), flow(1), flow(2)],
                "network": {"kind": "dumbbell", "forward": [], "backward": []},
            });
            Cell::parse(&cell.to_string()).unwrap()
        };
        let cell = cell_of(["forward", "backward", "forward"], shared.clone());
        assert_eq!([1, 2, 3].map(|flow| cell.leader(flow).unwrap()), [1, 2, 1]);
        let hosts = [1, 2, 3].map(|flow| cell.own_hosts(flow).unwrap());
        assert_eq!(
            hosts,
            [[2, 3], [4, 5], [6, 3]],
            "flow 2 has its listener elsewhere"
        );
        shared["data"] = "listener".into();
        let cell = cell_of(["forward"; 3], shared.clone());
        let hosts = [1, 2, 3].map(|flow| cell.own_hosts(flow).unwrap());
        assert_eq!(hosts, [[2, 3], [2, 4], [2, 5]]);
        shared["shared"] = false.into();
        let cell = cell_of(["forward"; 3], shared);
        assert_eq!(cell.leader(3), Some(3));
        assert_eq!(cell.own_hosts(3), Some([6, 7]));
    }

    #[test]
    fn flows_of_programs_have_hosts_of_their_own() {
        let cell = cell(program()).unwrap();
        assert_eq!(cell.own_hosts(1), None);
        assert_eq!(cell.own_hosts(2), Some([2, 3]));
        assert_eq!(cell.own_hosts(3), Some([4, 5]));
        let at = |flow: usize, role| cell.host_at(&cell.flows[flow], role);
        assert_eq!((at(0, Role::Sender), at(0, Role::Receiver)), (0, 1));
        assert_eq!((at(1, Role::Sender), at(1, Role::Receiver)), (2, 3));
        let (flow, program) = cell.programs().next().unwrap();
        assert_eq!((flow.flow, flow.from), (2, 1), "its data travel backward");
        assert_eq!(program.side_at(Role::Sender), Side::Connector);
        assert_eq!(program.listener.ready, Some(Readiness::Tcp(Some(5000))));
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut program = program();
            change(&mut program);
            cell(program).unwrap_err().to_string()
        };
        assert!(refused(&|p| p["listener"]["command"] = json!([])).contains("needs a command"));
        assert!(refused(&|p| p["listener"]["ready"] = Value::Null).contains("ready"));
        assert!(refused(&|p| p["connector"]["ready"] = json!({"tcp": 1})).contains("with a line"));
        assert!(refused(&|p| p["end"]["signal"] = 65.into()).contains("signals"));
        assert!(refused(&|p| p["wrong"] = 1.into()).contains("wrong"));
    }
}
