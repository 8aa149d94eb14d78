//! The folder of one peer of a run.

use crate::peer::ClockReading;
use crate::tunnel::EndFolder;
use narrows_cell::FlowEnd;
use narrows_cell::RunError;
use narrows_cell::{EndpointOutcome, ProgramReport, Role};
use narrows_record::{BpfFingerprint, Host, Process, ReceiverCounters, Versions};
use narrows_sys::cpu::CpuTicks;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the document of a peer.
const FILE: &str = "side.json";
/// Its format.
const FORMAT: &str = "narrows/side-end/1";

/// The folder of one peer.
pub(super) struct PeerFolder {
    pub(super) folder: PathBuf,
    pub(super) end: EndFolder,
    pub(super) document: PeerDocument,
}

/// `side.json`. Readers ignore unknown members.
#[derive(Debug, Deserialize)]
pub(super) struct PeerDocument {
    format: String,
    /// Index of the host.
    host: u16,
    /// Its name.
    #[serde(default)]
    pub(super) name: String,
    /// True if its packets went through a tunnel. If not, only the ends of flows are known.
    #[serde(default = "yes")]
    pub(super) tunnel: bool,
    /// Readings of its clocks.
    pub(super) clocks: ClockReadings,
    /// Bound in ns of the difference between its start and that of the other peer, if known.
    #[serde(default)]
    pub(super) start_error_ns: Option<u64>,
    /// End of the run by the wall clock.
    pub(super) ended_real_ns: u64,
    /// The machine.
    pub(super) machine: Host,
    /// Settings inside the namespace.
    pub(super) settings: NamespaceSettings,
    /// Privilege by which it got its namespace.
    pub(super) privilege: String,
    /// Versions of the program that ran there.
    #[serde(default)]
    pub(super) versions: Versions,
    /// Step in ns of the wall clock during the run.
    pub(super) clock_step_ns: i64,
    /// Synchronisation of its clock, before the run.
    #[serde(default)]
    pub(super) timekeeping: ClockDiscipline,
    /// Use of the processors during the run.
    #[serde(default)]
    cpu: Processors,
    /// Calls that its kernel omitted, by scheme.
    #[serde(default)]
    pub(super) missed_calls: Option<BTreeMap<String, u64>>,
    /// Exits of its processes.
    pub(super) processes: Vec<Process>,
    /// The ends of flows that ran there.
    pub(super) ends: Vec<PeerFlowEnd>,
}

/// A machine's report about its clock; empty if the clock is not synchronised.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct ClockDiscipline {
    /// The synchronised clock, and the oscillator, at one time.
    pub(super) real_ns: Option<i64>,
    pub(super) raw_ns: Option<i64>,
    /// Error bound of the synchronised clock.
    pub(super) bound_ns: Option<u64>,
    /// Rate correction relative to the oscillator.
    pub(super) correction_ppb: Option<i64>,
}

const fn yes() -> bool {
    true
}

/// Readings of a peer's clocks at two times.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct ClockReadings {
    /// Reading at the start of the run.
    pub(super) start: ClockReading,
    /// Reading at the end of the run.
    end: ClockReading,
}

impl ClockReadings {
    /// Reading of the tunnel's clock when `since_ns` have passed since the start by the endpoints' clock: time services
    /// correct that clock and not the tunnel's.
    pub(super) fn at(&self, since_ns: u64) -> u64 {
        let [tunnel, mono] = [
            self.end.tunnel_ns.saturating_sub(self.start.tunnel_ns),
            self.end.mono_ns.saturating_sub(self.start.mono_ns),
        ];
        if mono == 0 {
            return self.start.tunnel_ns.saturating_add(since_ns);
        }
        let since = u128::from(since_ns) * u128::from(tunnel) / u128::from(mono);
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        self.start.tunnel_ns.saturating_add(since)
    }
}

/// Settings in force inside a peer's namespace.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NamespaceSettings {
    pub(super) sysctls: Map<String, Value>,
    /// Maximum packet size in bytes, if a tunnel limits it.
    pub(super) mtu: Option<u32>,
}

/// Ticks of the processors of a machine during the run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Processors {
    ticks: Vec<RecordedTicks>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedTicks {
    total: u64,
    idle: u64,
    stolen: u64,
}

/// One end of one flow.
#[derive(Debug, Deserialize)]
pub(super) struct PeerFlowEnd {
    flow: u16,
    role: Role,
    active_ns: u64,
    outcome: Option<EndpointOutcome>,
    failure: Option<String>,
    #[serde(default)]
    loaded: Option<Loaded>,
}

/// The program that was loaded into a kernel for a flow.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Loaded {
    pub(super) identity: BpfFingerprint,
    pub(super) params: Map<String, Value>,
}

impl PeerDocument {
    /// Ticks of all processors together.
    pub(super) fn ticks(&self) -> CpuTicks {
        CpuTicks::sum(self.cpu.ticks.iter().map(|cpu| CpuTicks {
            total: cpu.total,
            idle: cpu.idle,
            stolen: cpu.stolen,
        }))
    }

    /// Counters of the receivers here.
    pub(super) fn receivers(&self) -> impl Iterator<Item = (u16, &ReceiverCounters)> {
        let own = self.ends.iter().filter(|end| end.role == Role::Receiver);
        own.filter_map(|end| Some((end.flow, &end.outcome.as_ref()?.receiver)))
    }

    /// The reports of the processes of programs here.
    pub(super) fn programs(&self) -> impl Iterator<Item = (u16, Role, ProgramReport)> {
        let ends = self.ends.iter();
        ends.filter_map(|end| {
            let report = end.outcome.as_ref()?.program.as_ref()?;
            Some((end.flow, end.role, (**report).clone()))
        })
    }

    /// Programs that were loaded for the flows whose data this peer sends.
    pub(super) fn loaded(&self) -> BTreeMap<u16, Loaded> {
        let ends = self.ends.iter();
        ends.filter_map(|end| Some((end.flow, end.loaded.clone()?)))
            .collect()
    }
}

impl PeerFolder {
    /// Reads the folder of host `host`. Truncated logs are read up to the truncation.
    ///
    /// # Errors
    /// [`RunError::Input`] with the file and its problem.
    pub(super) fn read(folder: &Path, host: u16) -> Result<PeerFolder, RunError> {
        let path = folder.join(FILE);
        let wrong = |message: String| RunError::Input(format!("{}: {message}", path.display()));
        let text = std::fs::read(&path).map_err(|error| {
            wrong(format!(
                "{error}; it is written when a side ends regularly, so this one was killed, or this is another folder"
            ))
        })?;
        let document: PeerDocument =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if document.format != FORMAT {
            return Err(wrong(format!(
                "'format' is '{}', and this agent reads '{FORMAT}'; use the same version of Narrows on both hosts",
                document.format
            )));
        }
        if document.host != host {
            return Err(wrong(format!(
                "this is the side of host {}, not of host {host}; the folders are confused",
                document.host
            )));
        }
        Ok(PeerFolder {
            folder: folder.to_owned(),
            end: if document.tunnel {
                EndFolder::read(folder, true)?
            } else {
                EndFolder::absent(folder)
            },
            document,
        })
    }

    /// The ends of flows at both peers, with times converted into those of the record: `time` is called with the host
    /// and the time since its start.
    pub(super) fn ends(peers: [PeerFolder; 2], time: impl Fn(usize, u64) -> u64) -> Vec<FlowEnd> {
        let mut ends = Vec::new();
        for (host, peer) in peers.into_iter().enumerate() {
            for mut end in peer.document.ends {
                if let Some(outcome) = &mut end.outcome {
                    outcome.map_times(|since| time(host, since));
                }
                ends.push(FlowEnd {
                    flow: end.flow,
                    role: end.role,
                    active_ns: end.active_ns,
                    outcome: end.outcome,
                    failure: end.failure,
                });
            }
        }
        ends
    }
}
