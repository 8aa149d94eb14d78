//! A cell: one run of one scheme on one path, fully resolved.

use crate::flow::{Flow, SchemeRef, WrittenFlow, flow};
use crate::hosts::{Host, transport};
use narrows_net::{Files, FlowSetup, Network, NetworkError, Packet, Plan, Topology};
use narrows_record::{BinLog, KeptTransfers, Measure};
use narrows_transport::{Config, PARAMS};
use narrows_units::{ParamError, Params, Span, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The format that is read.
const FORMAT: &str = "narrows/cell/1";
/// Maximum number of bins or samples of one run: all are kept in memory until the run ends.
const MAX_STEPS: u64 = 10_000_000;

/// Settings by which a scheme without retransmissions disables the transport's timers.
const TIMERS: [&str; 3] = ["rto_rule", "min_rto", "tail_loss_probe"];

/// Reasons for which a cell is rejected. Each message is one sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    /// The text is not JSON, or lacks a member.
    #[error("the cell cannot be read: {0}")]
    Shape(String),
    /// It has another format.
    #[error("the cell has the format '{0}', but this program reads '{FORMAT}'")]
    Format(String),
    /// A flow has a scheme that does not exist.
    #[error(
        "flow {flow}: unknown scheme '{name}'; known: {known}, and linux:NAME and bpf:NAME when emulated"
    )]
    Scheme {
        /// The flow.
        flow: u16,
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Parameters of a scheme or of the transport.
    #[error("{at}: {error}")]
    Params {
        /// Owner of the parameters.
        at: String,
        /// The reason for which they are rejected.
        error: ParamError,
    },
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Members that contradict each other.
    #[error("{0}")]
    Conflict(String),
}

/// Detail in which packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// Every packet.
    Packets,
    /// Binned series and delay histograms.
    Bins,
}

/// A cell, checked and typed.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The cell as it was given.
    pub json: Value,
    /// Name of its folder.
    pub id: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Duration of the run.
    pub duration: Time,
    /// Detail of the packets in the record.
    pub record: RecordKind,
    /// Width of bins.
    pub bin: Span,
    /// Time between samples of states and queues.
    pub sample: Span,
    /// Span of the run that is measured.
    pub measure: Measure,
    /// Detail of the transfers in the record.
    pub transfers: KeptTransfers,
    /// Its flows, in ascending order of their numbers.
    pub flows: Vec<Flow>,
    /// Parameters of our transport, without the settings of hosts and schemes.
    pub transport: Params,
    /// Settings of the hosts, in the order of the network's hosts.
    pub hosts: Vec<Host>,
    /// Contents of the files that it names.
    pub files: Files,
}

#[derive(Deserialize)]
struct Written {
    format: String,
    id: String,
    seed: u64,
    duration_ns: u64,
    record: RecordKind,
    bin_ns: u64,
    sample_ns: u64,
    #[serde(rename = "network")]
    _network: Map<String, Value>,
    flows: Vec<WrittenFlow>,
    #[serde(default)]
    transport: Map<String, Value>,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    transfers: KeptTransfers,
}

impl Cell {
    /// Reads and checks a cell that names no files.
    ///
    /// # Errors
    /// Anything that would prevent the run, detected before it starts.
    pub fn parse(text: &str) -> Result<Self, CellError> {
        Cell::parse_with(text, |_| Ok(Files::default()))
    }

    /// Reads and checks a cell; `files` provides the files that its JSON names, for example
    /// [`load_files`](crate::load_files).
    ///
    /// # Errors
    /// Anything that would prevent the run, detected before it starts.
    pub fn parse_with(
        text: &str,
        files: impl FnOnce(&Value) -> Result<Files, CellError>,
    ) -> Result<Self, CellError> {
        let shape = |error: serde_json::Error| CellError::Shape(error.to_string());
        let json: Value = serde_json::from_str(text).map_err(shape)?;
        if let Some(format) = json.get("format").and_then(Value::as_str)
            && format != FORMAT
        {
            return Err(CellError::Format(format.to_owned()));
        }
        let written = Written::deserialize(&json).map_err(shape)?;
        if written.format != FORMAT {
            return Err(CellError::Format(written.format));
        }
        let transport =
            Params::from_json(PARAMS, &written.transport).map_err(|error| CellError::Params {
                at: "transport".into(),
                error,
            })?;
        let files = files(&json)?;
        let names = Topology::from_json(&json["network"])?.hosts;
        let hosts = host_settings(&json["network"], &names)?;
        let mut flows = written
            .flows
            .into_iter()
            .map(|flow_written| flow(flow_written, &names, written.seed))
            .collect::<Result<Vec<_>, CellError>>()?;
        flows.sort_by_key(|flow| flow.flow);
        let cell = Cell {
            json,
            id: written.id,
            seed: written.seed,
            duration: Time::from_ns(written.duration_ns),
            record: written.record,
            bin: Span::from_ns(written.bin_ns),
            sample: Span::from_ns(written.sample_ns),
            measure: written.measure,
            transfers: written.transfers,
            flows,
            transport,
            hosts,
            files,
        };
        cell.check()?;
        Ok(cell)
    }

    fn check(&self) -> Result<(), CellError> {
        let conflict = |text: String| Err(CellError::Conflict(text));
        if self.duration == Time::ZERO {
            return conflict("the duration must be above zero".into());
        }
        if self.bin.is_zero() || self.sample.is_zero() {
            return conflict("bin_ns and sample_ns must be at least 1".into());
        }
        for (name, step) in [("bin_ns", self.bin), ("sample_ns", self.sample)] {
            if self.duration.ns() / step.ns() > MAX_STEPS {
                return conflict(format!(
                    "{name} is so short that the run has more than {MAX_STEPS} of them"
                ));
            }
        }
        let (from, to) = self.measure.span_ns().unwrap_or((0, u64::MAX));
        if from >= to || from >= self.duration.ns() {
            return conflict(
                "the measured part must begin before it ends and before the run does".into(),
            );
        }
        if self.flows.is_empty() {
            return conflict("at least one flow is required".into());
        }
        for (index, flow) in self.flows.iter().enumerate() {
            if flow.flow == 0 || flow.flow > 10_000 {
                return conflict(format!("flow {}: numbers go from 1 to 10000", flow.flow));
            }
            if index > 0 && self.flows[index - 1].flow == flow.flow {
                return conflict(format!("flow {} is there twice", flow.flow));
            }
            if flow.start >= flow.stop || flow.start >= self.duration {
                return conflict(format!(
                    "flow {}: it must start (at {}) before it stops (at {}) and before the run ends",
                    flow.flow, flow.start, flow.stop
                ));
            }
        }
        Ok(())
    }

    /// The transport's parameters for data of `flow` that host `from`, one of the flow's two, sends to the other: those
    /// of the flow override those of the scheme, which override those of the scenario; the settings of both hosts are
    /// applied to the result.
    pub fn transport(&self, flow: &Flow, from: u16) -> Config {
        let settings = match &flow.scheme {
            SchemeRef::Native(scheme, _) => scheme.transport,
            SchemeRef::Media(..)
            | SchemeRef::Kernel(_)
            | SchemeRef::Bpf(_)
            | SchemeRef::Program(_)
            | SchemeRef::Datagrams => &[],
        };
        let mut own = flow.transport.clone();
        if flow.traffic.kind.whole {
            // The flow itself cannot override this.
            own.insert("reliable".into(), true.into());
        }
        // A scheme without retransmissions may disable timers, but reliable data must not wait for ever.
        let repairs = own.get("reliable") == Some(&true.into());
        let moot = repairs && settings.contains(&("reliable", "false"));
        let mut settings = settings.to_vec();
        settings.retain(|(name, _)| !(moot && TIMERS.contains(name)));
        // The definition of a scheme applies where the scenario has the default.
        let params = self.transport.with_defaults(PARAMS, &settings);
        let params = params.with_json(PARAMS, &own);
        let base = Config::new(&params.expect("the flow's settings are checked"));
        let to = if from == flow.from {
            flow.to
        } else {
            flow.from
        };
        let host = |index: u16| &self.hosts[usize::from(index)];
        transport(&base, host(from), host(to), from == flow.client())
    }

    /// The log of a run of `record: bins`.
    pub fn bin_log(&self) -> BinLog {
        BinLog::new(self.bin.ns()).measuring(self.measure.clone())
    }

    /// The bottlenecks whose server the timeline replaces during the run.
    pub fn replaced_rates(&self) -> Vec<String> {
        replaced_rates(&self.json["timeline"])
    }

    /// The bottlenecks whose rate over time does not follow from the cell alone, and whose server is never replaced, so
    /// that it can report the rate.
    pub fn unknown_rates(&self) -> Vec<String> {
        let replaced = self.replaced_rates();
        let Ok(cell) = narrows_record::Cell::parse(&self.json) else {
            return Vec::new();
        };
        let elements = cell.network.elements().map(|(_, element)| element);
        elements
            .filter(|element| element.is_bottleneck() && cell.rate_law(element).is_err())
            .map(|element| element.label().to_owned())
            .filter(|name| !replaced.contains(name))
            .collect()
    }

    /// Builds the network with everything in it idle.
    ///
    /// # Errors
    /// Unknown elements or rejected parameters.
    pub fn network<P: Packet + 'static>(&self) -> Result<Network<P>, CellError> {
        self.checked_network(Network::new)
    }

    /// The same for a driver that is never late; see [`Network::fused`].
    ///
    /// # Errors
    /// Those of [`Cell::network`].
    pub fn fused_network<P: Packet + 'static>(&self) -> Result<Network<P>, CellError> {
        self.checked_network(Network::fused)
    }

    fn checked_network<P: Packet + 'static>(
        &self,
        build: impl FnOnce(&Plan) -> Result<Network<P>, NetworkError>,
    ) -> Result<Network<P>, CellError> {
        let setups: Vec<FlowSetup> = self
            .flows
            .iter()
            .map(|flow| FlowSetup {
                flow: flow.flow,
                extra_rtt: flow.extra_rtt,
            })
            .collect();
        let network = build(&Plan {
            network: &self.json["network"],
            timeline: &self.json["timeline"],
            flows: &setups,
            seed: self.seed,
            files: &self.files,
        })?;
        for flow in &self.flows {
            if network.route(flow.from, flow.to).is_none()
                || network.route(flow.to, flow.from).is_none()
            {
                let hosts = network.hosts();
                return Err(CellError::Conflict(format!(
                    "flow {}: there must be a route from {} to {} and one back",
                    flow.flow,
                    hosts[usize::from(flow.from)],
                    hosts[usize::from(flow.to)]
                )));
            }
        }
        Ok(network)
    }
}

/// The settings of all hosts: `network.hosts` is a list of `{"name", "settings"}`.
fn host_settings(network: &Value, names: &[String]) -> Result<Vec<Host>, CellError> {
    let mut hosts = vec![Host::default(); names.len()];
    let listed = network.get("hosts").and_then(Value::as_array);
    for listed in listed.into_iter().flatten() {
        let name = listed["name"].as_str().unwrap_or_default();
        let Some(index) = names.iter().position(|known| known == name) else {
            return Err(CellError::Conflict(format!(
                "network.hosts: the host '{name}' does not exist; the hosts are {}",
                names.join(", ")
            )));
        };
        match listed.get("settings") {
            None | Some(Value::Null) => {}
            Some(Value::Object(settings)) => hosts[index] = Host::new(name, settings)?,
            Some(_) => {
                return Err(CellError::Conflict(format!(
                    "network.hosts: the settings of host {name} must be an object"
                )));
            }
        }
    }
    Ok(hosts)
}

/// Names of the elements whose rates a timeline replaces.
pub fn replaced_rates(timeline: &Value) -> Vec<String> {
    let changes = timeline.as_array().into_iter().flatten();
    changes
        .filter(|change| change["set"].get("rate").is_some())
        .filter_map(|change| change["element"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests;
