//! The flows of a cell: hosts, traffic and scheme.

use crate::{CellError, program};
use narrows_bpf_programs::Program;
use narrows_cc::{Scheme, schemes};
use narrows_media::Media;
use narrows_net::Direction;
use narrows_traffic::{Application, Class, Traffic, TrafficSetup};
use narrows_units::{FileRef, ParamError, ParamSpec, Params, Span, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Prefix of schemes of the running kernel.
const KERNEL: &str = "linux:";
/// Prefix of schemes that are loaded into the running kernel.
const BPF: &str = "bpf:";
/// Settings of the transport that real-time schemes use.
const PACKET_SIZE: &str = "packet_size";
/// The scheme name of datagrams, which have no congestion control.
const DATAGRAMS: &str = "udp";

/// The congestion control of a flow.
#[derive(Clone, Debug)]
pub enum SchemeRef {
    /// A native scheme, with its parameters.
    Native(&'static Scheme, Params),
    /// A native real-time scheme, which implements both ends of a flow, with its parameters.
    Media(&'static Media, Params),
    /// A scheme of the running kernel, by the kernel's name.
    Kernel(String),
    /// A program that is loaded into the running kernel.
    Bpf(BpfRef),
    /// An external program, which implements both ends of the flow.
    Program(Box<program::Program>),
    /// None: the flow sends datagrams.
    Datagrams,
}

/// A congestion control that is loaded into the kernel before the run.
#[derive(Clone, Debug)]
pub enum BpfRef {
    /// A native scheme, with its parameters.
    Program(&'static Program, Params),
    /// A user's object, in a file of the cell.
    Object(FileRef),
}

/// Traffic of a flow.
#[derive(Clone, Debug)]
pub struct TrafficRef {
    /// The kind.
    pub kind: &'static Traffic,
    /// Its parameters.
    pub params: Params,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Number, from 1.
    pub flow: u16,
    /// Name of the scheme as in scenarios.
    pub name: String,
    /// Its kind.
    pub scheme: SchemeRef,
    /// Its traffic.
    pub traffic: TrafficRef,
    /// Number of parallel connections.
    pub connections: u32,
    /// Differentiated-services code point of its packets, 0 to 63.
    pub dscp: u8,
    /// True if it is not measured.
    pub background: bool,
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
    /// Settings of the transport for this flow alone, checked.
    pub transport: Map<String, Value>,
}

impl Flow {
    /// Builds the flow's application.
    ///
    /// # Errors
    /// Parameters that contradict each other.
    pub fn application(&self, seed: u64) -> Result<Box<dyn Application>, CellError> {
        let setup = TrafficSetup {
            seed,
            flow: self.flow,
            connections: self.connections,
        };
        let built = self.traffic.kind.build(&self.traffic.params, &setup);
        built.map_err(|error| self.refuse(error))
    }

    /// True if its media pause for its whole duration, so that it sends no data.
    pub fn is_paused(&self) -> bool {
        let SchemeRef::Media(_, params) = &self.scheme else {
            return false;
        };
        let span = |name| params.span(name).unwrap_or_default();
        span("pause_at").is_zero() && span("pause_for") >= self.stop.since(self.start)
    }

    /// Index of the host whose application decides what is transferred: the one that sends the data or, for traffic
    /// with requests, the one that receives them.
    pub fn client(&self) -> u16 {
        match self.traffic.kind.class {
            Class::Push | Class::Datagrams => self.from,
            Class::Pull => self.to,
        }
    }

    /// Index of the other host.
    pub fn server(&self) -> u16 {
        if self.client() == self.from {
            self.to
        } else {
            self.from
        }
    }

    fn refuse(&self, error: ParamError) -> CellError {
        CellError::Params {
            at: format!(
                "flow {} ({} traffic)",
                self.flow, self.traffic.kind.entry.name
            ),
            error,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WrittenFlow {
    flow: u16,
    scheme: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    object: Option<WrittenFile>,
    #[serde(default)]
    program: Option<Box<program::Program>>,
    #[serde(default)]
    transport: Map<String, Value>,
    #[serde(default)]
    traffic: Option<Map<String, Value>>,
    #[serde(default = "one")]
    connections: u32,
    #[serde(default)]
    dscp: u8,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    start_ns: u64,
    stop_ns: u64,
    #[serde(default)]
    direction: Direction,
    #[serde(default)]
    extra_rtt_ns: u64,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
}

#[derive(Clone, Deserialize)]
struct WrittenFile {
    name: String,
    sha256: String,
}

fn one() -> u32 {
    1
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
                    "flow {}: the host '{name}' does not exist; the hosts are {}",
                    written.flow,
                    hosts.join(", ")
                ))
            })
        }
    };
    let (first, second) = match written.direction {
        Direction::Forward => (0, 1),
        Direction::Backward => (1, 0),
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

fn scheme(written: &WrittenFlow) -> Result<SchemeRef, CellError> {
    if let Some(program) = &written.program {
        program.check(written.flow)?;
        return Ok(SchemeRef::Program(program.clone()));
    }
    if let Some(name) = written.scheme.strip_prefix(BPF) {
        return bpf(written, name).map(SchemeRef::Bpf);
    }
    if written.object.is_some() {
        return Err(CellError::Conflict(format!(
            "flow {}: {} needs no object file; only schemes that begin with {BPF} come from one",
            written.flow, written.scheme
        )));
    }
    let kernel = written.scheme.strip_prefix(KERNEL);
    if kernel.is_some() || written.scheme == DATAGRAMS {
        if let Some(param) = written.params.keys().next() {
            return Err(CellError::Conflict(format!(
                "flow {}: {} takes no parameters, not even '{param}'",
                written.flow, written.scheme
            )));
        }
        return Ok(kernel.map_or(SchemeRef::Datagrams, |name| {
            SchemeRef::Kernel(name.to_owned())
        }));
    }
    if let Some(scheme) = narrows_media::schemes::find(&written.scheme) {
        let params = read_params(written, scheme.name, scheme.params, &written.params)?;
        return Ok(SchemeRef::Media(scheme, params));
    }
    let Some(scheme) = schemes::find(&written.scheme) else {
        let media = narrows_media::schemes::ALL.iter();
        let ours = schemes::ALL.iter().map(|scheme| scheme.name);
        let known: Vec<&str> = ours.chain(media.map(|scheme| scheme.name)).collect();
        return Err(CellError::Scheme {
            flow: written.flow,
            name: written.scheme.clone(),
            known: known.join(", "),
        });
    };
    let params = read_params(written, scheme.name, scheme.params, &written.params)?;
    Ok(SchemeRef::Native(scheme, params))
}

/// The parameters `given` for the scheme that a flow calls `name`.
fn read_params(
    written: &WrittenFlow,
    name: &str,
    specs: &[ParamSpec],
    given: &Map<String, Value>,
) -> Result<Params, CellError> {
    Params::from_json(specs, given).map_err(|error| CellError::Params {
        at: format!("flow {} ({name})", written.flow),
        error,
    })
}

/// The program of `bpf:name`: the object that the flow names, or a shipped one.
fn bpf(written: &WrittenFlow, name: &str) -> Result<BpfRef, CellError> {
    let (flow, scheme) = (written.flow, &written.scheme);
    if let Some(WrittenFile { name, sha256 }) = written.object.clone() {
        if let Some(param) = written.params.keys().next() {
            return Err(CellError::Conflict(format!(
                "flow {flow}: {scheme} comes from an object file and takes no parameters, not even '{param}'"
            )));
        }
        return Ok(BpfRef::Object(FileRef { name, sha256 }));
    }
    let Some(program) = narrows_bpf_programs::find(name) else {
        let programs = narrows_bpf_programs::ALL.iter();
        let known: Vec<&str> = programs.map(|known| known.name).collect();
        return Err(CellError::Conflict(format!(
            "flow {flow}: unknown BPF program '{name}'; known: {}",
            known.join(", ")
        )));
    };
    let params = read_params(written, scheme, &program.params(), &written.params)?;
    Ok(BpfRef::Program(program, params))
}

fn traffic(written: &WrittenFlow) -> Result<TrafficRef, CellError> {
    let mut params = written.traffic.clone().unwrap_or_default();
    let name = match params.shift_remove("kind") {
        None => "bulk".to_owned(),
        Some(Value::String(name)) => name,
        Some(other) => other.to_string(),
    };
    let Some(kind) = narrows_traffic::find(&name) else {
        let known: Vec<&str> = narrows_traffic::kinds::ALL
            .iter()
            .map(|traffic| traffic.entry.name)
            .collect();
        return Err(CellError::Conflict(format!(
            "flow {}: unknown traffic '{name}'; known: {}",
            written.flow,
            known.join(", ")
        )));
    };
    let what = format!("{name} traffic");
    let params = read_params(written, &what, kind.entry.params, &params)?;
    Ok(TrafficRef { kind, params })
}

/// Checks the members of a flow of a real-time scheme other than the scheme.
fn check_media(written: &WrittenFlow, traffic: &str) -> Result<(), CellError> {
    let (flow, scheme) = (written.flow, &written.scheme);
    let conflict = |text: String| Err(CellError::Conflict(format!("flow {flow}: {text}")));
    if traffic != "bulk" {
        return conflict(format!(
            "{scheme} generates media and carries no traffic of the kind '{traffic}'; omit traffic"
        ));
    }
    if written.connections != 1 {
        return conflict(format!(
            "{scheme} has one connection, not {}; omit connections",
            written.connections
        ));
    }
    let other = written.transport.keys().find(|name| *name != PACKET_SIZE);
    if let Some(name) = other {
        return conflict(format!(
            "{scheme} has its own transport, which does not support {name}; only {PACKET_SIZE} can be set"
        ));
    }
    Ok(())
}

/// Checks one flow. `seed` is that of the run: an application that cannot be built is rejected here.
pub(crate) fn flow(written: WrittenFlow, hosts: &[String], seed: u64) -> Result<Flow, CellError> {
    let (from, to) = hosts_of(&written, hosts)?;
    let scheme = scheme(&written)?;
    let traffic = traffic(&written)?;
    let number = written.flow;
    let conflict = |text: String| Err(CellError::Conflict(format!("flow {number}: {text}")));
    let kind = traffic.kind.entry.name;
    let datagrams = traffic.kind.class == Class::Datagrams;
    if datagrams && !matches!(scheme, SchemeRef::Datagrams) {
        return conflict(format!(
            "traffic of the kind '{kind}' consists of datagrams, which no congestion control sends; use the scheme {DATAGRAMS}"
        ));
    }
    if !datagrams && matches!(scheme, SchemeRef::Datagrams) {
        return conflict(format!(
            "the scheme {DATAGRAMS} sends datagrams, but traffic of the kind '{kind}' needs connections; give it a scheme, or traffic of a kind that sends datagrams"
        ));
    }
    if let SchemeRef::Media(..) = scheme {
        check_media(&written, kind)?;
    }
    if let SchemeRef::Program(_) = scheme
        && (kind != "bulk"
            || written.connections != 1
            || written.dscp != 0
            || !written.transport.is_empty())
    {
        return conflict(format!(
            "{} determines its traffic itself; omit traffic, connections, dscp and transport",
            written.scheme
        ));
    }
    let transport = narrows_transport::PARAMS;
    read_params(&written, "transport", transport, &written.transport)?;
    if traffic.kind.whole && written.transport.get("reliable") == Some(&Value::Bool(false)) {
        return conflict(format!(
            "traffic of the kind '{kind}' waits until all data have arrived, so that losses have to be repaired; omit reliable"
        ));
    }
    if written.dscp > 63 {
        return conflict(format!("dscp goes from 0 to 63, not {}", written.dscp));
    }
    if written.connections == 0 || written.connections > 10_000 {
        return conflict("connections go from 1 to 10000".into());
    }
    let flow = Flow {
        flow: number,
        name: written.scheme,
        scheme,
        traffic,
        connections: written.connections,
        dscp: written.dscp,
        background: written.background,
        start: Time::from_ns(written.start_ns),
        stop: Time::from_ns(written.stop_ns),
        direction: written.direction,
        from,
        to,
        extra_rtt: Span::from_ns(written.extra_rtt_ns),
        transport: written.transport,
    };
    flow.application(seed)?;
    Ok(flow)
}
