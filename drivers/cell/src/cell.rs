//! A cell: one run of one scheme on one path, fully resolved.

use narrows_cc::{Scheme, schemes};
use narrows_net::{Direction, Files, FlowSetup, Network, NetworkError, Packet, Plan, Topology};
use narrows_transport::Config;
use narrows_units::{ParamError, Params, Span, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The format that is read.
const FORMAT: &str = "narrows/cell/1";
/// Most bins or samples of one run: each is kept in memory until the run ends.
const MOST_STEPS: u64 = 10_000_000;
/// Prefix of schemes of the running kernel.
const KERNEL: &str = "linux:";

/// Why a cell was refused. Each message is one sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    /// The text is not JSON, or lacks a member.
    #[error("the cell cannot be read: {0}")]
    Shape(String),
    /// It has another format.
    #[error("the cell has the format '{0}', but this program reads '{FORMAT}'")]
    Format(String),
    /// A flow has a scheme that does not exist.
    #[error("flow {flow}: unknown scheme '{name}'; known: {known}, and linux:NAME when emulated")]
    Scheme {
        /// The flow.
        flow: u16,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Parameters of a scheme or of the transport.
    #[error("{at}: {error}")]
    Params {
        /// Whose parameters.
        at: String,
        /// Why they were refused.
        error: ParamError,
    },
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Members that contradict each other.
    #[error("{0}")]
    Conflict(String),
}

/// How much of a run is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// Every packet.
    Packets,
    /// Binned series and delay histograms.
    Bins,
}

/// Who controls a flow's congestion.
#[derive(Clone, Debug)]
pub enum SchemeRef {
    /// One of ours, with its parameters.
    Native(&'static Scheme, Params),
    /// The running kernel's, by its own name.
    Kernel(String),
}

/// One flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Number, from 1.
    pub flow: u16,
    /// Name of the scheme as in scenarios.
    pub name: String,
    /// What that is.
    pub scheme: SchemeRef,
    /// When it starts.
    pub start: Time,
    /// When it stops.
    pub stop: Time,
    /// Direction in which its data travel.
    pub direction: Direction,
    /// Index of the host that sends the data.
    pub from: u16,
    /// Index of the host that receives them.
    pub to: u16,
    /// Round-trip time in addition to the path's.
    pub extra_rtt: Span,
}

/// A cell, checked and typed.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The cell as it was given.
    pub json: Value,
    /// Name of its folder.
    pub id: String,
    /// Seed of all chance.
    pub seed: u64,
    /// How long it runs.
    pub duration: Time,
    /// What is kept.
    pub record: RecordKind,
    /// Width of bins.
    pub bin: Span,
    /// Time between samples of states and queues.
    pub sample: Span,
    /// Its flows, in ascending order of their numbers.
    pub flows: Vec<Flow>,
    /// Parameters of our transport.
    pub transport: Config,
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
}

#[derive(Deserialize)]
struct WrittenFlow {
    flow: u16,
    scheme: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    start_ns: u64,
    stop_ns: u64,
    #[serde(default)]
    direction: WrittenDirection,
    #[serde(default)]
    extra_rtt_ns: u64,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenDirection {
    #[default]
    Forward,
    Backward,
}

impl Cell {
    /// Reads and checks a cell that names no files.
    ///
    /// # Errors
    /// Anything that would keep it from running, before anything runs.
    pub fn parse(text: &str) -> Result<Self, CellError> {
        Cell::parse_with(text, |_| Ok(Files::default()))
    }

    /// Reads and checks a cell; `files` provides the files that its JSON names, for example
    /// [`load_files`](crate::load_files).
    ///
    /// # Errors
    /// Anything that would keep it from running, before anything runs.
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
            Params::from_json(narrows_transport::PARAMS, &written.transport).map_err(|error| {
                CellError::Params {
                    at: "transport".into(),
                    error,
                }
            })?;
        let files = files(&json)?;
        let hosts = Topology::from_json(&json["network"])?.hosts;
        let mut flows = written
            .flows
            .into_iter()
            .map(|written| flow(written, &hosts))
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
            flows,
            transport: Config::new(&transport),
            files,
        };
        cell.check()?;
        Ok(cell)
    }

    fn check(&self) -> Result<(), CellError> {
        let conflict = |text: String| Err(CellError::Conflict(text));
        if self.duration == Time::ZERO {
            return conflict("the duration must be longer than nothing".into());
        }
        if self.bin.is_zero() || self.sample.is_zero() {
            return conflict("bin_ns and sample_ns must be at least 1".into());
        }
        for (name, step) in [("bin_ns", self.bin), ("sample_ns", self.sample)] {
            if self.duration.ns() / step.ns() > MOST_STEPS {
                return conflict(format!(
                    "{name} is so short that the run has more than {MOST_STEPS} of them"
                ));
            }
        }
        if self.flows.is_empty() {
            return conflict("at least one flow is needed".into());
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

    /// The bottlenecks whose server the timeline replaces while the run goes on.
    pub fn replaced_rates(&self) -> Vec<String> {
        let changes = self.json["timeline"].as_array().into_iter().flatten();
        changes
            .filter(|change| change["set"].get("rate").is_some())
            .filter_map(|change| change["element"].as_str().map(str::to_owned))
            .collect()
    }

    /// Builds the network with everything in it idle.
    ///
    /// # Errors
    /// Unknown elements or refused parameters.
    pub fn network<P: Packet + 'static>(&self) -> Result<Network<P>, CellError> {
        let setups: Vec<FlowSetup> = self
            .flows
            .iter()
            .map(|flow| FlowSetup {
                flow: flow.flow,
                extra_rtt: flow.extra_rtt,
            })
            .collect();
        let network = Network::new(&Plan {
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

/// The hosts of a flow: those that it names, or the two of a dumbbell.
fn hosts_of(written: &WrittenFlow, hosts: &[String]) -> Result<(u16, u16), CellError> {
    let find = |name: &Option<String>, default: u16| match name {
        None if hosts.len() == 2 => Ok(default),
        name => {
            let name = name.as_deref().unwrap_or_default();
            let found = hosts.iter().position(|host| host == name);
            found.map(|index| index as u16).ok_or_else(|| {
                CellError::Conflict(format!(
                    "flow {}: there is no host '{name}'; the hosts are {}",
                    written.flow,
                    hosts.join(", ")
                ))
            })
        }
    };
    let (first, second) = match written.direction {
        WrittenDirection::Forward => (0, 1),
        WrittenDirection::Backward => (1, 0),
    };
    let pair = (find(&written.from, first)?, find(&written.to, second)?);
    if pair.0 == pair.1 {
        return Err(CellError::Conflict(format!(
            "flow {}: it must lead from one host to another",
            written.flow
        )));
    }
    Ok(pair)
}

fn flow(written: WrittenFlow, hosts: &[String]) -> Result<Flow, CellError> {
    let (from, to) = hosts_of(&written, hosts)?;
    let scheme = if let Some(name) = written.scheme.strip_prefix(KERNEL) {
        if let Some(param) = written.params.keys().next() {
            return Err(CellError::Conflict(format!(
                "flow {}: {} takes no parameters, not even '{param}'",
                written.flow, written.scheme
            )));
        }
        SchemeRef::Kernel(name.to_owned())
    } else {
        let Some(scheme) = schemes::find(&written.scheme) else {
            let known: Vec<&str> = schemes::ALL.iter().map(|scheme| scheme.name).collect();
            return Err(CellError::Scheme {
                flow: written.flow,
                name: written.scheme,
                known: known.join(", "),
            });
        };
        let params = Params::from_json(scheme.params, &written.params).map_err(|error| {
            CellError::Params {
                at: format!("flow {} ({})", written.flow, scheme.name),
                error,
            }
        })?;
        SchemeRef::Native(scheme, params)
    };
    Ok(Flow {
        flow: written.flow,
        name: written.scheme,
        scheme,
        start: Time::from_ns(written.start_ns),
        stop: Time::from_ns(written.stop_ns),
        direction: match written.direction {
            WrittenDirection::Forward => Direction::Forward,
            WrittenDirection::Backward => Direction::Backward,
        },
        from,
        to,
        extra_rtt: Span::from_ns(written.extra_rtt_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell(change: impl FnOnce(&mut Value)) -> Result<Cell, String> {
        let mut cell = json!({
            "format": "narrows/cell/1", "id": "reno-r1", "scheme": "reno", "run": 1,
            "where": "simulate", "seed": 1, "duration_ns": 1_000_000_000u64,
            "record": "packets", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
            "network": {"kind": "dumbbell",
                "forward": [{"kind": "delay", "delay": 10}], "backward": []},
            "flows": [{"flow": 1, "scheme": "reno", "params": {"beta": 0.6},
                       "start_ns": 0, "stop_ns": 1_000_000_000u64, "direction": "forward"}],
        });
        change(&mut cell);
        let cell = Cell::parse(&cell.to_string()).map_err(|error| error.to_string())?;
        cell.network::<narrows_net::testing::TestPacket>()
            .map_err(|error| error.to_string())?;
        Ok(cell)
    }

    #[test]
    fn a_cell_is_read() {
        let cell = cell(|_| {}).unwrap();
        assert_eq!((cell.id.as_str(), cell.seed), ("reno-r1", 1));
        assert_eq!(cell.transport, Config::default());
        match &cell.flows[0].scheme {
            SchemeRef::Native(scheme, params) => {
                assert_eq!((scheme.name, params.real("beta")), ("reno", Some(0.6)));
            }
            SchemeRef::Kernel(_) => unreachable!("reno is native"),
        }
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 12] = [
            (|c| c["sample_ns"] = 1.into(), "sample_ns is so short"),
            (
                |c| c["format"] = "narrows/cell/2".into(),
                "the cell has the format 'narrows/cell/2'",
            ),
            (|c| c["seed"] = Value::Null, "the cell cannot be read"),
            (|c| c["flows"] = json!([]), "at least one flow"),
            (
                |c| c["flows"][0]["scheme"] = "vegsa".into(),
                "flow 1: unknown scheme 'vegsa'; known: reno",
            ),
            (
                |c| c["flows"][0]["params"] = json!({"x": 1}),
                "flow 1 (reno): unknown parameter 'x'",
            ),
            (
                |c| c["flows"][0]["start_ns"] = 2_000_000_000u64.into(),
                "flow 1: it must start",
            ),
            (
                |c| c["flows"][0]["flow"] = 0.into(),
                "flow 0: numbers go from 1",
            ),
            (|c| c["duration_ns"] = 0.into(), "the duration must be"),
            (
                |c| c["transport"] = json!({"ack_evry": 3}),
                "transport: unknown parameter 'ack_evry'",
            ),
            (
                |c| c["network"]["forward"][0]["kind"] = "dealy".into(),
                "forward.0: unknown link element 'dealy'",
            ),
            (
                |c| c["network"]["forward"] = 5.into(),
                "network.forward: a list of elements is wanted",
            ),
        ];
        for (change, says) in cases {
            let error = cell(change).unwrap_err();
            assert!(
                error.starts_with(says),
                "'{error}' should start with '{says}'"
            );
        }
        let kernel = |c: &mut Value| c["flows"][0]["scheme"] = "linux:cubic".into();
        assert!(cell(kernel).unwrap_err().contains("takes no parameters"));
    }
}
