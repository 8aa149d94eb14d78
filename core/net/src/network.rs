//! The network of one run: two directions between the senders' and the receivers' side.

use crate::links::delay::Delay;
use crate::{
    Backlog, Bottleneck, BuildError, Element, Outcomes, Packet, Path, Setup, links, queues, rates,
};
use narrows_units::{Span, Time};
use serde_json::{Map, Value};

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// From the senders' side to the receivers' side.
    Forward = 0,
    /// From the receivers' side to the senders' side.
    Backward = 1,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// The name used in records.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
    }

    /// The other direction.
    pub const fn reverse(self) -> Self {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// What the network needs to know of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowSetup {
    /// Number, from 1.
    pub flow: u16,
    /// Round-trip time that this flow has in addition, split over both directions.
    pub extra_rtt: Span,
}

/// Why a network description was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// A member is missing or of the wrong type.
    #[error("{at}: {what}")]
    Shape {
        /// Place in the description.
        at: String,
        /// What is wanted.
        what: String,
    },
    /// An element could not be built.
    #[error("{at}: {error}")]
    Build {
        /// Name of the element.
        at: String,
        /// Why.
        error: BuildError,
    },
}

/// A dumbbell: all flows share one path per direction; each may have its own extra round-trip
/// time on an access link in front of it.
pub struct Network<P> {
    paths: [Path<P>; 2],
}

impl<P: Packet + 'static> Network<P> {
    /// Builds the network from its resolved description
    /// (`{"kind": "dumbbell", "forward": [...], "backward": [...]}`, base units).
    ///
    /// # Errors
    /// A malformed description, unknown names or refused parameters, with the element's name.
    pub fn from_json(json: &Value, flows: &[FlowSetup], seed: u64) -> Result<Self, NetworkError> {
        let kind = json
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("dumbbell");
        if kind != "dumbbell" {
            return Err(shape(
                "network.kind",
                format!("'{kind}' is not known; known: dumbbell"),
            ));
        }
        let build = |direction: Direction| -> Result<Path<P>, NetworkError> {
            let mut path = Path::new();
            let half = |flow: &FlowSetup| match direction {
                Direction::Forward => Span::from_ns(flow.extra_rtt.ns() / 2),
                Direction::Backward => Span::from_ns(flow.extra_rtt.ns().div_ceil(2)),
            };
            if flows.iter().any(|flow| !flow.extra_rtt.is_zero()) {
                let access = Access::new(flows.iter().map(|flow| (flow.flow, half(flow))));
                path.add(
                    &format!("{}.access", direction.name()),
                    "access",
                    Box::new(access),
                );
            }
            let name = direction.name();
            let list = json.get(name).and_then(Value::as_array).ok_or_else(|| {
                shape(
                    &format!("network.{name}"),
                    "a list of elements is wanted".into(),
                )
            })?;
            for (index, element) in list.iter().enumerate() {
                let default = format!("{name}.{index}");
                let object = element
                    .as_object()
                    .ok_or_else(|| shape(&default, "an element is an object".into()))?;
                let label = object
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or(&default);
                let (kind, built) = build_element(label, object, seed)?;
                path.add(label, &kind, built);
            }
            Ok(path)
        };
        Ok(Network {
            paths: [build(Direction::Forward)?, build(Direction::Backward)?],
        })
    }

    /// The path of one direction.
    #[inline]
    pub fn path(&self, direction: Direction) -> &Path<P> {
        &self.paths[direction as usize]
    }

    /// The path of one direction, to push into and to advance.
    #[inline]
    pub fn path_mut(&mut self, direction: Direction) -> &mut Path<P> {
        &mut self.paths[direction as usize]
    }
}

fn shape(at: &str, what: String) -> NetworkError {
    NetworkError::Shape {
        at: at.to_owned(),
        what,
    }
}

/// Whether one element can be built from `{"kind": ..., "name": ..., parameters...}`: parameters
/// may be right one by one and wrong together.
///
/// # Errors
/// What [`Network::from_json`] would say of it.
pub fn check_element(object: &Map<String, Value>) -> Result<(), NetworkError> {
    let name = object
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("element");
    build_element::<crate::testing::TestPacket>(name, object, 0).map(|_| ())
}

/// Builds one element from `{"kind": ..., "name": ..., parameters...}`.
fn build_element<P: Packet + 'static>(
    name: &str,
    object: &Map<String, Value>,
    seed: u64,
) -> Result<(String, Box<dyn Element<P>>), NetworkError> {
    let setup = Setup {
        seed,
        name: name.to_owned(),
    };
    let wrap = |error| NetworkError::Build {
        at: name.to_owned(),
        error,
    };
    let (kind, mut params) = split(name, object)?;
    params.remove("name");
    if kind == "bottleneck" {
        let part = |key: &str| {
            let value = object.get(key).and_then(Value::as_object);
            let object = value.ok_or_else(|| shape(name, format!("'{key}' must be an object")))?;
            split(&format!("{name}.{key}"), object)
        };
        let (rate, rate_params) = part("rate")?;
        let (queue, queue_params) = part("queue")?;
        let server = rates::build(&rate, &rate_params, &setup).map_err(wrap)?;
        let queue = queues::build(&queue, &queue_params, &setup).map_err(wrap)?;
        return Ok((kind, Box::new(Bottleneck::new(queue, server))));
    }
    let element = links::build(&kind, &params, &setup).map_err(wrap)?;
    Ok((kind, element))
}

/// Separates the registry name from the parameters.
fn split(
    at: &str,
    object: &Map<String, Value>,
) -> Result<(String, Map<String, Value>), NetworkError> {
    let mut params = object.clone();
    match params.remove("kind") {
        Some(Value::String(kind)) => Ok((kind, params)),
        _ => Err(shape(at, "'kind' must name a registry entry".into())),
    }
}

/// Access links: a delay per flow in front of the shared path.
struct Access<P> {
    /// By flow number; flows without extra delay pass at once.
    lines: Vec<Option<Delay<P>>>,
    /// Earliest wake-up of all lines and its line.
    next: (Time, usize),
}

impl<P: Packet> Access<P> {
    fn new(delays: impl Iterator<Item = (u16, Span)>) -> Self {
        let mut lines = vec![Some(Delay::new(Span::ZERO))];
        for (flow, delay) in delays {
            let flow = usize::from(flow);
            if lines.len() <= flow {
                lines.resize_with(flow + 1, || None);
            }
            lines[flow] = Some(Delay::new(delay));
        }
        Access {
            lines,
            next: (Time::FAR, 0),
        }
    }

    /// On ties the lower flow number goes first.
    fn find_next(&mut self) {
        let wakeups = self
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| line.as_ref().map(|line| (line.next_wakeup(), index)));
        self.next = wakeups.min().unwrap_or((Time::FAR, 0));
    }
}

impl<P: Packet> Element<P> for Access<P> {
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let flow = usize::from(packet.flow());
        // Packets of no flow, or of one that has no line of its own, take line 0 (no delay).
        let index = if self.lines.get(flow).is_some_and(Option::is_some) {
            flow
        } else {
            0
        };
        if let Some(line) = &mut self.lines[index] {
            line.push(now, packet, outcomes);
            self.next = self.next.min((line.next_wakeup(), index));
        }
    }

    fn pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        let packet = self.lines[self.next.1].as_mut()?.pop(now, outcomes);
        self.find_next();
        packet
    }

    fn next_wakeup(&self) -> Time {
        self.next.0
    }

    fn held(&self) -> Backlog {
        self.lines
            .iter()
            .flatten()
            .fold(Backlog::default(), |sum, line| Backlog {
                bytes: sum.bytes + line.held().bytes,
                packets: sum.packets + line.held().packets,
            })
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.lines
            .iter()
            .flatten()
            .for_each(|line| line.visit_held(visit));
    }
}
