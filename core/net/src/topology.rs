//! The topology: hosts, directed links and the routes between hosts.

use crate::BuildError;
pub use narrows_units::Direction;
use narrows_units::{Span, Time};
use serde_json::{Map, Value};

/// A flow as the network sees it.
#[derive(Clone, Copy, Debug)]
pub struct FlowSetup {
    /// Number, from 1.
    pub flow: u16,
    /// Additional round-trip time of this flow, split over both directions (dumbbells only).
    pub extra_rtt: Span,
}

/// A network description was rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// A member is missing, of the wrong type or contradicts another.
    #[error("{at}: {what}")]
    Shape {
        /// Place in the description.
        at: String,
        /// The problem.
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

impl NetworkError {
    pub(crate) fn shape(at: &str, what: impl Into<String>) -> Self {
        NetworkError::Shape {
            at: at.to_owned(),
            what: what.into(),
        }
    }
}

/// One direction of a link, with its elements as described.
#[derive(Clone, Debug)]
pub struct LinkPlan<'a> {
    /// Name, unique.
    pub name: String,
    /// Node at which packets enter.
    pub from: String,
    /// Node at which they leave.
    pub to: String,
    /// Its direction: from nodes that are described earlier to later ones is forward.
    pub direction: Direction,
    /// Descriptions of its elements, with their names.
    pub elements: Vec<(String, &'a Map<String, Value>)>,
}

/// The links that packets pass from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the host at which it starts.
    pub from: u16,
    /// Index of the host at which it ends.
    pub to: u16,
    /// Direction recorded for packets of no flow.
    pub direction: Direction,
    /// Indices of its links, in order.
    pub links: Vec<u16>,
}

/// Hosts, links and routes of a network, as described.
#[derive(Clone, Debug)]
pub struct Topology<'a> {
    /// Names of the hosts, in the order of their numbers.
    pub hosts: Vec<String>,
    /// All directed links.
    pub links: Vec<LinkPlan<'a>>,
    /// All routes.
    pub routes: Vec<Route>,
}

impl<'a> Topology<'a> {
    /// Reads a description: `{"kind": "dumbbell", "forward": [...], "backward": [...]}` (the hosts
    /// `sender` and `receiver`, one route each way), or `{"kind": "graph", "hosts": [{"name"}],
    /// "routers": [...], "links": [{"name", "from", "to", "elements"}], "routes": [{"from", "to",
    /// "links"}]}`.
    ///
    /// # Errors
    /// A malformed description, unknown names, or routes that are not connected.
    pub fn from_json(json: &'a Value) -> Result<Self, NetworkError> {
        match json
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("dumbbell")
        {
            "dumbbell" => Self::dumbbell(json),
            "graph" => Self::graph(json),
            other => Err(NetworkError::shape(
                "network.kind",
                format!("'{other}' is not known; known: dumbbell, graph"),
            )),
        }
    }

    fn dumbbell(json: &'a Value) -> Result<Self, NetworkError> {
        let hosts = vec!["sender".to_owned(), "receiver".to_owned()];
        let mut links = Vec::new();
        let mut routes = Vec::new();
        for direction in Direction::BOTH {
            let name = direction.word();
            let (from, to) = match direction {
                Direction::Forward => (0, 1),
                Direction::Backward => (1, 0),
            };
            links.push(LinkPlan {
                name: name.to_owned(),
                from: hosts[usize::from(from)].clone(),
                to: hosts[usize::from(to)].clone(),
                direction,
                elements: elements(json.get(name), &format!("network.{name}"), name)?,
            });
            routes.push(Route {
                from,
                to,
                direction,
                links: vec![direction as u16],
            });
        }
        Ok(Topology {
            hosts,
            links,
            routes,
        })
    }

    fn graph(json: &'a Value) -> Result<Self, NetworkError> {
        let list = |key: &str| -> Result<&'a [Value], NetworkError> {
            json.get(key)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .ok_or_else(|| NetworkError::shape(&format!("network.{key}"), "a list is required"))
        };
        let word = |value: &Value, key: &str, at: &str| -> Result<String, NetworkError> {
            let word = value.get(key).and_then(Value::as_str).map(str::to_owned);
            word.ok_or_else(|| NetworkError::shape(at, format!("'{key}' must be a name")))
        };
        let mut nodes = Vec::new();
        for host in list("hosts")? {
            nodes.push(word(host, "name", "network.hosts")?);
        }
        let hosts = nodes.clone();
        if let Some(routers) = json.get("routers").and_then(Value::as_array) {
            nodes.extend(routers.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        for (index, name) in nodes.iter().enumerate() {
            if nodes[..index].contains(name) {
                return Err(NetworkError::shape(name, "two nodes have this name"));
            }
        }
        let place = |name: &str, at: &str| {
            nodes
                .iter()
                .position(|node| node == name)
                .ok_or_else(|| NetworkError::shape(at, format!("the node '{name}' does not exist")))
        };
        let mut links: Vec<LinkPlan> = Vec::new();
        for link in list("links")? {
            let name = word(link, "name", "network.links")?;
            let (from, to) = (word(link, "from", &name)?, word(link, "to", &name)?);
            if links.iter().any(|other| other.name == name) {
                return Err(NetworkError::shape(&name, "two links have this name"));
            }
            let direction = if place(&from, &name)? < place(&to, &name)? {
                Direction::Forward
            } else {
                Direction::Backward
            };
            let elements = elements(link.get("elements"), &format!("network.{name}"), &name)?;
            links.push(LinkPlan {
                name,
                from,
                to,
                direction,
                elements,
            });
        }
        let mut routes = Vec::new();
        for route in list("routes")? {
            routes.push(read_route(route, &hosts, &links)?);
        }
        Ok(Topology {
            hosts,
            links,
            routes,
        })
    }
}

/// Reads a route, which must lead from host to host over connected links, each at most once.
fn read_route(json: &Value, hosts: &[String], links: &[LinkPlan]) -> Result<Route, NetworkError> {
    let host = |key: &str| -> Result<u16, NetworkError> {
        let name = json.get(key).and_then(Value::as_str).unwrap_or_default();
        hosts
            .iter()
            .position(|host| host == name)
            .map(|index| index as u16)
            .ok_or_else(|| {
                NetworkError::shape(
                    "network.routes",
                    format!("the host '{name}' does not exist"),
                )
            })
    };
    let (from, to) = (host("from")?, host("to")?);
    let at = format!(
        "route from {} to {}",
        hosts[usize::from(from)],
        hosts[usize::from(to)]
    );
    let names = json
        .get("links")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let mut here = hosts[usize::from(from)].as_str();
    let mut indices = Vec::new();
    for name in names.iter().map(|name| name.as_str().unwrap_or_default()) {
        let index = links.iter().position(|link| link.name == name);
        let index = index
            .ok_or_else(|| NetworkError::shape(&at, format!("the link '{name}' does not exist")))?;
        if links[index].from != here {
            return Err(NetworkError::shape(
                &at,
                format!("the link '{name}' does not start at {here}"),
            ));
        }
        if indices.contains(&(index as u16)) {
            return Err(NetworkError::shape(
                &at,
                format!("it passes the link '{name}' twice"),
            ));
        }
        here = &links[index].to;
        indices.push(index as u16);
    }
    if here != hosts[usize::from(to)] || indices.is_empty() {
        return Err(NetworkError::shape(&at, format!("it ends at {here}")));
    }
    let direction = if from < to {
        Direction::Forward
    } else {
        Direction::Backward
    };
    Ok(Route {
        from,
        to,
        direction,
        links: indices,
    })
}

/// Descriptions of elements, with their names.
type Named<'a> = Vec<(String, &'a Map<String, Value>)>;

fn elements<'a>(
    list: Option<&'a Value>,
    at: &str,
    prefix: &str,
) -> Result<Named<'a>, NetworkError> {
    let list = list.and_then(Value::as_array);
    let list = list.ok_or_else(|| NetworkError::shape(at, "a list of elements is required"))?;
    let named = list.iter().enumerate().map(|(index, element)| {
        let default = format!("{prefix}.{index}");
        let object = element
            .as_object()
            .ok_or_else(|| NetworkError::shape(&default, "an element must be an object"))?;
        let name = object.get("name").and_then(Value::as_str);
        Ok((name.map_or(default, str::to_owned), object))
    });
    named.collect()
}

/// One planned change of one element, as described.
#[derive(Clone, Debug)]
pub(crate) struct PlannedChange<'a> {
    pub(crate) at: Time,
    pub(crate) element: &'a str,
    pub(crate) set: &'a Map<String, Value>,
}

/// Reads a timeline, `[{"at_ns", "element", "set": {...}}]`, in order of time.
pub(crate) fn read_timeline(json: &Value) -> Result<Vec<PlannedChange<'_>>, NetworkError> {
    let list = match json {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => {
            return Err(NetworkError::shape(
                "timeline",
                "a list of changes is required",
            ));
        }
    };
    let mut changes = Vec::new();
    for (index, change) in list.iter().enumerate() {
        let read = || {
            Some(PlannedChange {
                at: Time::from_ns(change.get("at_ns")?.as_u64()?),
                element: change.get("element")?.as_str()?,
                set: change.get("set")?.as_object()?,
            })
        };
        changes.push(read().ok_or_else(|| {
            NetworkError::shape(
                &format!("timeline.{index}"),
                "a change needs 'at_ns', 'element' and 'set'",
            )
        })?);
    }
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}
