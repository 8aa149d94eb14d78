//! Hosts, links and routes, and the elements that packets meet on them.

use crate::schema::Direction;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The network that packets pass. A dumbbell is read as two links with a route each.
#[derive(Clone, Debug, Default)]
pub struct CellNetwork {
    /// True if it is written as two lists of elements, so that a packet's direction determines its
    /// path.
    pub dumbbell: bool,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// All directed links.
    pub links: Vec<CellLink>,
    /// The paths from host to host.
    pub routes: Vec<CellRoute>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct CellLink {
    /// Its name.
    pub name: String,
    /// Node at which packets enter.
    pub from: String,
    /// Node at which they leave.
    pub to: String,
    /// The links or elements they pass, in order.
    pub elements: Vec<CellElement>,
}

/// The path from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRoute {
    /// Name of the host at which it starts.
    pub from: String,
    /// Name of the host at which it ends.
    pub to: String,
    /// Direction recorded for packets that belong to no flow.
    pub direction: Direction,
    /// Indices of its links, in order.
    pub links: Vec<usize>,
}

/// One element.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CellElement {
    /// Its name, if it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its kind, as in the registry.
    pub kind: String,
    /// Its parameters.
    #[serde(flatten)]
    pub params: Map<String, Value>,
}

/// Framing on the wire of a bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellFraming {
    /// Bytes that each packet has in addition to its IP size.
    overhead: u64,
    /// True if packets fill ATM cells of 48 bytes, which have 53 on the wire.
    atm: bool,
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellQueueLimit {
    /// Maximum number of bytes that may wait.
    pub bytes: Option<u64>,
    /// Maximum number of packets that may wait.
    pub packets: Option<u64>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    hosts: Vec<WrittenHost>,
    #[serde(default)]
    routers: Vec<String>,
    #[serde(default)]
    links: Vec<WrittenLink>,
    #[serde(default)]
    routes: Vec<WrittenRoute>,
    #[serde(default)]
    forward: Vec<CellElement>,
    #[serde(default)]
    backward: Vec<CellElement>,
}

#[derive(Deserialize)]
struct WrittenHost {
    name: String,
}

#[derive(Deserialize)]
struct WrittenLink {
    name: String,
    from: String,
    to: String,
    #[serde(default)]
    elements: Vec<CellElement>,
}

#[derive(Deserialize)]
struct WrittenRoute {
    from: String,
    to: String,
    links: Vec<String>,
}

impl<'de> Deserialize<'de> for CellNetwork {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let network = match written.kind.as_deref().unwrap_or("dumbbell") {
            "dumbbell" => Ok(CellNetwork::dumbbell(written)),
            "graph" => CellNetwork::graph(written),
            other => Err(format!("the network kind '{other}' is unknown")),
        };
        let mut network = network.map_err(serde::de::Error::custom)?;
        for link in &mut network.links {
            for (index, element) in link.elements.iter_mut().enumerate() {
                let name = || format!("{}.{index}", link.name);
                element.name.get_or_insert_with(name);
            }
        }
        Ok(network)
    }
}

impl CellNetwork {
    fn dumbbell(written: Written) -> Self {
        let (from, to) = ("sender".to_owned(), "receiver".to_owned());
        let link = |direction: Direction, elements| CellLink {
            name: direction.word().to_owned(),
            from: if direction == Direction::Forward {
                &from
            } else {
                &to
            }
            .clone(),
            to: if direction == Direction::Forward {
                &to
            } else {
                &from
            }
            .clone(),
            elements,
        };
        let links = vec![
            link(Direction::Forward, written.forward),
            link(Direction::Backward, written.backward),
        ];
        let routes = [Direction::Forward, Direction::Backward].map(|direction| CellRoute {
            from: links[direction as usize].from.clone(),
            to: links[direction as usize].to.clone(),
            direction,
            links: vec![direction as usize],
        });
        CellNetwork {
            dumbbell: true,
            hosts: vec![from, to],
            links,
            routes: routes.into(),
        }
    }

    fn graph(written: Written) -> Result<Self, String> {
        let hosts: Vec<String> = written.hosts.into_iter().map(|host| host.name).collect();
        let mut nodes = hosts.clone();
        nodes.extend(written.routers);
        let known = |name: &String| {
            let place = nodes.iter().position(|node| node == name);
            place.ok_or_else(|| format!("the node '{name}' does not exist"))
        };
        let mut links: Vec<CellLink> = Vec::new();
        for link in written.links {
            known(&link.from)?;
            known(&link.to)?;
            links.push(CellLink {
                name: link.name,
                from: link.from,
                to: link.to,
                elements: link.elements,
            });
        }
        let mut routes = Vec::new();
        for route in written.routes {
            let place = |name: &String| {
                let place = links.iter().position(|link| link.name == *name);
                place.ok_or_else(|| format!("the link '{name}' does not exist"))
            };
            let way: Vec<usize> = route.links.iter().map(place).collect::<Result<_, _>>()?;
            let joined = way.windows(2).all(|w| links[w[0]].to == links[w[1]].from);
            let ends = way.first().zip(way.last());
            let ends = ends.map(|(&a, &b)| (&links[a].from, &links[b].to));
            if !joined || ends != Some((&route.from, &route.to)) {
                let (from, to) = (route.from, route.to);
                return Err(format!("the route from {from} to {to} is not connected"));
            }
            let forward = known(&route.from)? < known(&route.to)?;
            routes.push(CellRoute {
                from: route.from,
                to: route.to,
                direction: if forward {
                    Direction::Forward
                } else {
                    Direction::Backward
                },
                links: way,
            });
        }
        Ok(CellNetwork {
            dumbbell: false,
            hosts,
            links,
            routes,
        })
    }

    /// All elements with the index of their link.
    pub fn elements(&self) -> impl Iterator<Item = (usize, &CellElement)> {
        let links = self.links.iter().enumerate();
        links.flat_map(|(index, link)| link.elements.iter().map(move |element| (index, element)))
    }

    /// The element called `name`.
    pub fn element(&self, name: &str) -> Option<&CellElement> {
        let mut all = self.elements().map(|(_, element)| element);
        all.find(|element| element.label() == name)
    }

    /// The elements on route number `route`, in order, without access links.
    pub fn path(&self, route: usize) -> impl Iterator<Item = &CellElement> {
        let links = self.routes.get(route).map_or(&[][..], |route| &route.links);
        links.iter().flat_map(|&link| &self.links[link].elements)
    }
}

impl CellElement {
    /// The name.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }

    /// True if it is a queue before a server.
    pub fn is_bottleneck(&self) -> bool {
        self.kind == "bottleneck"
    }

    /// The fixed delay; zero for all other kinds.
    pub fn delay_ns(&self) -> u64 {
        match self.kind.as_str() {
            "delay" => self
                .params
                .get("delay")
                .and_then(Value::as_u64)
                .unwrap_or(0),
            _ => 0,
        }
    }

    /// The rate of a bottleneck, if it is constant.
    pub fn constant_bps(&self) -> Option<u64> {
        let rate = self.params.get("rate")?;
        (rate.get("kind")?.as_str()? == "constant").then(|| rate.get("rate")?.as_u64())?
    }

    /// The kind of the queue of a bottleneck.
    pub fn queue_kind(&self) -> Option<&str> {
        self.params.get("queue")?.get("kind")?.as_str()
    }

    /// The limits of the queue of a bottleneck.
    pub fn limit(&self) -> CellQueueLimit {
        if let Some(packets) = self.queue_effects().packets {
            return CellQueueLimit {
                bytes: None,
                packets: Some(packets),
            };
        }
        self.params
            .get("queue")
            .map_or_else(CellQueueLimit::default, CellQueueLimit::read)
    }

    /// Size at which a bottleneck counts packets.
    pub(crate) fn framing(&self) -> CellFraming {
        CellFraming {
            overhead: self
                .params
                .get("overhead")
                .and_then(Value::as_u64)
                .unwrap_or(0),
            atm: self.params.get("atm").and_then(Value::as_bool) == Some(true),
        }
    }
}

impl CellFraming {
    /// Bytes that a packet of `size` bytes takes up on the wire.
    pub(crate) fn wire_bytes(self, size: u64) -> u64 {
        let bytes = size + self.overhead;
        if self.atm {
            bytes.div_ceil(48) * 53
        } else {
            bytes
        }
    }

    /// Bytes of packets on the wire, each taken to be of mean size.
    pub(crate) fn mean_wire_bytes(self, bytes: u64, packets: u64) -> f64 {
        if self == CellFraming::default() || packets == 0 {
            return bytes as f64;
        }
        self.wire_bytes(bytes.div_ceil(packets)) as f64 * packets as f64
    }
}

impl CellQueueLimit {
    /// The limits that the description of a queue specifies.
    pub(crate) fn read(queue: &Value) -> Self {
        let of = |name: &str| queue.get(name).and_then(Value::as_u64);
        CellQueueLimit {
            bytes: of("bytes"),
            packets: of("packets"),
        }
    }
}
