//! Admission of frames: whether and when a frame of a host enters the network, and its flow and route.

use super::core_config::{CoreConfig, FlowEntry, Forwarding};
use super::frame::{self, Header, Kind};
use super::handle::Handle;
use super::hooks::Transit;
use narrows_cell::judgement::{Conversation, ProgramTraffic, RefusedFrames};
use narrows_cell::{Role, addressing};
use narrows_net::{Direction, Network};
use narrows_units::Time;
use std::collections::BTreeMap;

/// The relation of a private host to a flow. Several flows may share one.
#[derive(Clone, Copy, Debug)]
struct OwnPort {
    flow: u16,
    role: Role,
    /// The host of the network that it replaces.
    place: u16,
    /// The other host of the flow, and the one that it replaces.
    partner: u16,
    partner_place: u16,
    start: Time,
}

/// No route from one host to another.
const NO_ROUTE: u16 = u16::MAX;

/// A frame that may enter the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(crate) header: Header,
    /// Number of its flow, or 0.
    pub(crate) flow: u16,
    pub(crate) route: u16,
    pub(crate) direction: Direction,
    /// Model time at which it enters.
    pub(crate) at: Time,
    /// True if it is a pure acknowledgement.
    pub(crate) is_ack: bool,
}

/// A route of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteEntry {
    /// Port of the host at which it ends.
    pub(crate) to: u16,
    pub(crate) direction: Direction,
}

/// The admission rules of a run, and counters of rejected frames.
#[derive(Debug)]
pub(crate) struct Admission {
    flows: Vec<Option<FlowEntry>>,
    forwarding: Forwarding,
    pub(crate) routes: Vec<RouteEntry>,
    /// `route_of[from * hosts + to]`, or [`NO_ROUTE`].
    route_of: Vec<u16>,
    /// Number of the network's hosts, whose ports are first.
    hosts: usize,
    /// The other ports, with the flows of each.
    own: Vec<Vec<OwnPort>>,
    /// Traffic of private hosts, by flow number.
    traffic: Vec<ProgramTraffic>,
    /// By port: when the last packet of its host entered.
    entered: Vec<Time>,
    pub(crate) refused: RefusedFrames,
}

impl Admission {
    pub(crate) fn new(network: &Network<Handle>, config: &CoreConfig) -> Self {
        let hosts = network.hosts().len();
        let mut route_of = vec![NO_ROUTE; hosts * hosts];
        for (index, route) in (0..).zip(network.routes()) {
            let place = &mut route_of[usize::from(route.from) * hosts + usize::from(route.to)];
            *place = (*place).min(index);
        }
        let routes = network.routes().iter().map(|route| RouteEntry {
            to: route.to,
            direction: route.direction,
        });
        let own = own_ports(&config.flows);
        Admission {
            hosts,
            traffic: vec![
                ProgramTraffic::default();
                if own.is_empty() {
                    0
                } else {
                    config.flows.len()
                }
            ],
            flows: config.flows.clone(),
            forwarding: config.forwarding,
            routes: routes.collect(),
            route_of,
            entered: vec![Time::ZERO; hosts + own.len()],
            own,
            refused: RefusedFrames::default(),
        }
    }

    /// A flow stops at another time.
    pub(crate) fn stop(&mut self, flow: u16, at: Time) {
        if let Some(Some(known)) = self.flows.get_mut(usize::from(flow)) {
            known.stop = at;
        }
    }

    /// Decides about a frame that left the host at `port` at `stamp`.
    #[inline]
    pub(crate) fn admit(&mut self, port: u16, stamp: Time, bytes: &[u8]) -> Option<Admitted> {
        if usize::from(port) >= self.hosts {
            return self.admit_own(port, stamp, bytes);
        }
        let header = match frame::classify(bytes) {
            Kind::Packet(header) => header,
            Kind::WarmUp(header) if self.forwarding == Forwarding::Across => header,
            Kind::WarmUp(_) => return None,
            Kind::Foreign => {
                self.refused.foreign += 1;
                return None;
            }
        };
        let Some(route) = self.route(port, header.to) else {
            self.refused.no_route += 1;
            return None;
        };
        let mut direction = self.routes[usize::from(route)].direction;
        let mut flow = 0;
        let mut is_ack = header.tcp_ack;
        if let Some(Some(known)) = self.flows.get(usize::from(header.flow))
            && known.own.is_none()
        {
            flow = header.flow;
            // A stopped sender is silent, as in the simulator, even if the kernel retransmits.
            if known.from == port && stamp >= known.stop {
                self.refused.after_stop += 1;
                return None;
            }
            direction = known.direction_from(port);
            is_ack |= known.native && header.udp_ack;
        }
        let at = self.entry_time(port, stamp);
        Some(Admitted {
            header,
            flow,
            route,
            direction,
            at,
            is_ack,
        })
    }

    /// The time at which a frame that the host at `port` sent at `stamp` enters.
    #[inline]
    fn entry_time(&mut self, port: u16, stamp: Time) -> Time {
        // Two processors of one host can stamp in one order and enqueue in the other, a
        // microsecond apart; the wire keeps the order of the queue.
        let entered = &mut self.entered[usize::from(port)];
        let at = stamp.max(*entered);
        *entered = at;
        at
    }

    /// The same for a private host of a flow. Only frames to its partner enter the network.
    fn admit_own(&mut self, port: u16, stamp: Time, bytes: &[u8]) -> Option<Admitted> {
        let flows = &self.own[usize::from(port) - self.hosts];
        let packet = match frame::classify(bytes) {
            // There is no warm-up once the run has begun, and programs may use any ports.
            Kind::Packet(header) | Kind::WarmUp(header) => Some(header),
            Kind::Foreign => None,
        };
        let known = packet.and_then(|header| {
            let to = addressing::host_of(header.to)?;
            let own = *flows.iter().find(|own| own.partner == to)?;
            let route = self.route_between(own.place, own.partner_place)?;
            Some((header, own, route))
        });
        let Some((header, own, route)) = known else {
            let first = flows.first()?.flow;
            self.traffic[usize::from(first)].stray += 1;
            return None;
        };
        let flow = self.flows[usize::from(own.flow)]?;
        if own.role == Role::Sender && stamp >= flow.stop {
            self.refused.after_stop += 1;
            return None;
        }
        let at = self.entry_time(port, stamp);
        let (protocol, [from, to], payload) = frame::contents(bytes);
        let (sender_port, receiver_port) = match own.role {
            Role::Sender => (from, to),
            Role::Receiver => (to, from),
        };
        let traffic = &mut self.traffic[usize::from(own.flow)];
        traffic.add(
            own.role,
            at.ns(),
            u64::from(header.size),
            payload,
            at >= own.start,
        );
        traffic.note(Conversation {
            protocol,
            sender_port,
            receiver_port,
        });
        Some(Admitted {
            header,
            flow: own.flow,
            route,
            direction: flow.direction_from(port),
            at,
            is_ack: header.tcp_ack,
        })
    }

    /// Number of ports: those of the network's hosts, then those of private hosts.
    pub(crate) fn ports(&self) -> usize {
        self.hosts + self.own.len()
    }

    /// The port at which a packet leaves the network.
    #[inline]
    pub(crate) fn exit(&self, flow: u16, route: RouteEntry) -> u16 {
        if self.own.is_empty() {
            return route.to;
        }
        let known = self.flows.get(usize::from(flow)).copied().flatten();
        match known.and_then(|known| known.own) {
            Some(own) if own.places[0] == route.to => own.ports[0],
            Some(own) => own.ports[1],
            None => route.to,
        }
    }

    /// The traffic of private hosts, by flow number.
    pub(crate) fn traffic(&self) -> BTreeMap<u16, ProgramTraffic> {
        let flows = self.own.iter().flatten().map(|own| own.flow);
        flows
            .map(|flow| (flow, self.traffic[usize::from(flow)].clone()))
            .collect()
    }

    /// The route from the host at `port` to an address.
    #[inline]
    fn route(&self, port: u16, to: [u8; 4]) -> Option<u16> {
        let to = match self.forwarding {
            Forwarding::ByAddress => addressing::host_of(to)?,
            Forwarding::Across => 1 - port.min(1),
        };
        self.route_between(port, to)
    }

    /// The route from one host of the network to another.
    #[inline]
    fn route_between(&self, from: u16, to: u16) -> Option<u16> {
        if usize::from(to) >= self.hosts {
            return None;
        }
        let route = self.route_of[usize::from(from) * self.hosts + usize::from(to)];
        (route != NO_ROUTE).then_some(route)
    }

    /// A packet in the network, as hooks see it at `at`.
    #[inline]
    pub(crate) fn transit(&self, packet: &Handle, at: Time) -> Transit {
        Transit {
            slot: packet.slot,
            flow: packet.flow,
            route: packet.route,
            direction: self.routes[usize::from(packet.route)].direction,
            size: u32::from(packet.size),
            at,
        }
    }
}

/// The ports of private hosts, in order.
fn own_ports(flows: &[Option<FlowEntry>]) -> Vec<Vec<OwnPort>> {
    let mut found: BTreeMap<u16, Vec<OwnPort>> = BTreeMap::new();
    for (flow, entry) in (0..).zip(flows) {
        let Some(own) = entry.and_then(|entry| entry.own) else {
            continue;
        };
        for (end, role) in [Role::Sender, Role::Receiver].into_iter().enumerate() {
            let port = OwnPort {
                flow,
                role,
                place: own.places[end],
                partner: own.ports[1 - end],
                partner_place: own.places[1 - end],
                start: own.start,
            };
            found.entry(own.ports[end]).or_default().push(port);
        }
    }
    found.into_values().collect()
}

impl FlowEntry {
    /// The direction of its packets from the host at `port`.
    #[inline]
    fn direction_from(&self, port: u16) -> Direction {
        if self.from == port {
            self.direction
        } else {
            self.direction.reverse()
        }
    }
}
