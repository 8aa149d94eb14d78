//! Memory that a cell needs: for frames inside the network, rings and TCP buffers.

use narrows_cell::{Cell, Flow, SchemeRef};
use narrows_emulator::frame;
use narrows_net::{Network, Packet, queues};
use narrows_units::{ParamSpec, Rate, Span, Time};
use serde_json::{Map, Value};

/// Sizes that follow from a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sizing {
    /// Smallest round-trip time of any flow without queues.
    pub(super) base_rtt: Span,
    /// Maximum number of frames expected inside the network.
    pub(super) frames: usize,
    /// Largest IP packet.
    pub(super) mtu: u32,
    /// Slots per ring.
    pub(super) ring: usize,
    /// Largest TCP buffer.
    pub(super) tcp_buffer: u64,
    /// True if an element damages packets.
    pub(super) damage: bool,
    /// Highest rate of the route of each flow's data, in the order of the cell's flows.
    rates: Vec<u64>,
}

/// Bounds of the unsent data in a send buffer.
const MIN_UNSENT: u32 = 64 << 10;
const MAX_UNSENT: u32 = 1 << 20;
/// MTU of the wires in bytes, unless our transport has to send larger packets.
const ETHERNET_MTU: u32 = 1500;
/// Minimum buffer, sufficient for all small networks.
const MIN_BUFFER: u64 = 16 << 20;
/// The kernel's own limit for windows is 1 GiB.
const MAX_BUFFER: u64 = 1 << 30;
/// Rate of the hosts themselves, if the network has no limit.
const HOSTS: u64 = 5_000_000_000;
/// Bytes that a queue without any limit counts as.
const UNLIMITED: u64 = 64 << 20;
/// Number of times at which varying rates are sampled.
const LOOKS: u64 = 200;
/// Memory for all rings together.
const RINGS: usize = 256 << 20;

/// The memory requirements of one link.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Highest rate of its slowest bottleneck, if it has one.
    rate: Option<u64>,
    /// Constant delay.
    delay: Span,
    /// Capacity of its queues in bytes.
    queues: u64,
}

impl Load {
    /// The load of two links in series.
    fn then(self, other: Load) -> Load {
        Load {
            rate: [self.rate, other.rate].into_iter().flatten().min(),
            delay: self.delay + other.delay,
            queues: self.queues.saturating_add(other.queues),
        }
    }

    /// Bytes in flight and in queues at `rate`.
    fn inside(self, rate: u64, more: Span) -> u64 {
        let moving = Rate::from_bps(rate).bytes_in(self.delay + more);
        moving.get().saturating_add(self.queues)
    }
}

impl Sizing {
    /// Bytes of the largest Ethernet frame.
    pub(super) fn largest_frame(&self) -> usize {
        frame::ETHERNET + self.mtu as usize
    }

    /// Unsent data to keep in the send buffer of a connection of `flow`: the traffic that its route carries in 10 ms,
    /// for which the sender may have to wait for a processor.
    pub(super) fn unsent(&self, cell: &Cell, flow: &Flow) -> u32 {
        let index = cell.flows.iter().position(|other| other.flow == flow.flow);
        let rate = index.and_then(|index| self.rates.get(index)).copied();
        let bytes = rate.unwrap_or(HOSTS) / 8 / 100;
        bytes.clamp(u64::from(MIN_UNSENT), u64::from(MAX_UNSENT)) as u32
    }

    /// Sizes for `cell`, whose hosts allow packets of up to `mtu` bytes, if specified.
    pub(super) fn new<P: Packet + 'static>(
        cell: &Cell,
        network: &Network<P>,
        mtu: Option<u32>,
    ) -> Self {
        let links = loads(cell, network);
        let fastest = links.iter().filter_map(|link| link.rate).max();
        let fastest = fastest.unwrap_or(HOSTS);
        let way = |from, to| {
            let route = network.route(from, to);
            let route = route.map(|index| &network.routes()[usize::from(index)]);
            let passed = route.into_iter().flat_map(|route| &route.links);
            passed.fold(Load::default(), |sum, &link| {
                sum.then(links[usize::from(link)])
            })
        };
        let mut base_rtt: Option<Span> = None;
        let mut largest = 0;
        let mut extra = Span::ZERO;
        let mut rates = Vec::new();
        for flow in &cell.flows {
            let round = way(flow.from, flow.to).then(way(flow.to, flow.from));
            let rtt = round.delay + flow.extra_rtt;
            base_rtt = Some(base_rtt.map_or(rtt, |minimum| minimum.min(rtt)));
            let rate = way(flow.from, flow.to).rate.unwrap_or(fastest);
            largest = round.inside(rate, flow.extra_rtt).max(largest);
            extra = extra.max(flow.extra_rtt);
            rates.push(rate);
        }
        let inside = links.iter().map(|link| link.inside(fastest, extra));
        let inside = inside.fold(0, u64::saturating_add);
        // A ring holds the frames that can arrive while the thread is descheduled for 50 ms; hosts may temporarily send
        // faster than the bottleneck.
        let mtu = mtu.unwrap_or(ETHERNET_MTU).max(packet_size(cell));
        let slot = (mtu as usize + 256).next_power_of_two();
        let hosts = network.hosts().len() + 2 * cell.programs().count();
        let maximum = RINGS / slot / hosts.max(1);
        let ring = (fastest / 8 / 1500 / 20).clamp(8 * 1024, 32 * 1024) as usize;
        Sizing {
            base_rtt: base_rtt.unwrap_or_default(),
            mtu,
            frames: (inside / 1500 * 2).clamp(2048, 1 << 18) as usize,
            ring: ring.min(maximum.max(1024)),
            tcp_buffer: largest.saturating_mul(4).clamp(MIN_BUFFER, MAX_BUFFER),
            damage: network.stages().any(|stage| stage.kind == "corrupt"),
            rates,
        }
    }
}

/// All links, in the order of their indices.
fn loads<P: Packet + 'static>(cell: &Cell, network: &Network<P>) -> Vec<Load> {
    let mut links: Vec<Load> = Vec::new();
    for stage in network.stages() {
        let link = usize::from(stage.link_index);
        if links.len() <= link {
            links.resize(link + 1, Load::default());
        }
        let mut load = Load {
            rate: None,
            delay: stage.element.propagation(),
            queues: 0,
        };
        if let Some(server) = stage.element.server() {
            // Rates may vary: the mean, and the maximum of the samples.
            let mean = server.capacity(Time::ZERO, cell.duration).get();
            let mean = mean.saturating_mul(8_000_000_000) / cell.duration.ns().max(1);
            let seen = (0..LOOKS).map(|look| {
                let at = u128::from(cell.duration.ns()) * u128::from(look) / u128::from(LOOKS);
                server.rate(Time::from_ns(at as u64)).bps()
            });
            let planned = planned_rate(&cell.json["timeline"], stage.name);
            load.rate = Some(seen.max().unwrap_or(0).max(mean).max(planned));
            load.queues = element(&cell.json["network"], stage.name)
                .and_then(|element| element.get("queue"))
                .map_or(UNLIMITED, room);
        }
        links[link] = links[link].then(load);
    }
    // A link without any element has no stage, and needs no memory.
    let maximum = network.routes().iter().flat_map(|route| &route.links).max();
    let maximum = maximum.map_or(0, |&link| usize::from(link) + 1);
    links.resize(links.len().max(maximum), Load::default());
    links
}

/// The highest constant rate that the timeline sets for an element.
fn planned_rate(timeline: &Value, element: &str) -> u64 {
    let changes = timeline.as_array().map_or(&[][..], Vec::as_slice);
    let mine = changes.iter().filter(|change| change["element"] == element);
    let rates = mine.filter_map(|change| change["set"]["rate"]["rate"].as_u64());
    rates.max().unwrap_or(0)
}

/// The description of the element called `name`.
fn element<'a>(json: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    match json {
        Value::Array(list) => list.iter().find_map(|item| element(item, name)),
        Value::Object(object) => {
            let word = |key: &str| object.get(key).and_then(Value::as_str);
            if word("name") == Some(name) && object.contains_key("kind") {
                return Some(object);
            }
            object.values().find_map(|value| element(value, name))
        }
        _ => None,
    }
}

/// Bytes that a queue can hold, by its parameters or their defaults.
fn room(queue: &Value) -> u64 {
    let kind = queue["kind"].as_str().unwrap_or_default();
    let entry = queues::ALL.iter().find(|entry| entry.name == kind);
    let specs: &[ParamSpec] = entry.map_or(&[], |entry| entry.params);
    let limits = specs.iter().filter_map(|spec| {
        let unit = match spec.name {
            "bytes" | "memory" | "limit_bytes" => 1,
            "packets" | "limit" => 1500,
            _ => return None,
        };
        let value = match queue.get(spec.name) {
            Some(Value::Null) | None => spec.to_json()["default"].as_u64(),
            Some(value) => value.as_u64(),
        };
        Some(value?.saturating_mul(unit))
    });
    limits.min().unwrap_or(UNLIMITED).min(MAX_BUFFER)
}

/// Size of the largest full packet of native flows; the kernel's TCP uses the MTU of the wire.
fn packet_size(cell: &Cell) -> u32 {
    let ours = |flow: &&Flow| matches!(flow.scheme, SchemeRef::Native(..) | SchemeRef::Media(..));
    let size = |flow: &Flow| {
        let ends = [flow.from, flow.to].map(|from| {
            let config = cell.transport(flow, from);
            config.packet_size.get() as u32
        });
        ends[0].max(ends[1])
    };
    cell.flows.iter().filter(ours).map(size).max().unwrap_or(0)
}
