//! Admission: which frames of a host enter the network, when, as packets of which flow, and on which route.

use super::core::CoreConfig;
use super::frame::{self, Header, Kind};
use super::handle::Handle;
use super::hooks::Transit;
use narrows_cell::addressing;
use narrows_cell::judgement::RefusedFrames;
use narrows_net::{Direction, Network};
use narrows_units::Time;

/// The rule by which the destination of a packet is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// By its address, which is that of a host of the run.
    ByAddress,
    /// Whatever enters at one of two ports leaves at the other, whoever it is for.
    Across,
}

/// Properties of a flow that admission uses.
#[derive(Clone, Copy, Debug)]
pub struct FlowEntry {
    /// The host that sends the data.
    pub from: u16,
    /// The direction in which these are said to travel.
    pub direction: Direction,
    /// When they end.
    pub stop: Time,
    /// True if our own transport carries it.
    pub native: bool,
}

/// No way from one host to another.
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
    /// True if it carries an acknowledgement and nothing else.
    pub(crate) is_ack: bool,
}

/// A route of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteEntry {
    /// Port of the host at which it begins.
    from: u16,
    /// Port of the host at which it ends.
    pub(crate) to: u16,
    pub(crate) direction: Direction,
}

/// The rules of a run, and what they have kept out.
#[derive(Debug)]
pub(crate) struct Admission {
    flows: Vec<Option<FlowEntry>>,
    forwarding: Forwarding,
    pub(crate) routes: Vec<RouteEntry>,
    /// `route_of[from * hosts + to]`, or [`NO_ROUTE`].
    route_of: Vec<u16>,
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
            from: route.from,
            to: route.to,
            direction: route.direction,
        });
        Admission {
            flows: config.flows.clone(),
            forwarding: config.forwarding,
            routes: routes.collect(),
            route_of,
            entered: vec![Time::ZERO; hosts],
            refused: RefusedFrames::default(),
        }
    }

    /// Looks at a frame that left the host at `port` at `stamp`.
    #[inline]
    pub(crate) fn admit(&mut self, port: u16, stamp: Time, bytes: &[u8]) -> Option<Admitted> {
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
        if let Some(Some(known)) = self.flows.get(usize::from(header.flow)) {
            flow = header.flow;
            // A stopped sender is silent, as in the simulator, whatever the kernel repeats.
            if known.from == port && stamp >= known.stop {
                self.refused.after_stop += 1;
                return None;
            }
            direction = known.direction_from(port);
            is_ack |= known.native && header.udp_ack;
        }
        // Two processors of one host can stamp in one order and enqueue in the other, a
        // microsecond apart; the wire keeps the order of the queue.
        let entered = &mut self.entered[usize::from(port)];
        let at = stamp.max(*entered);
        *entered = at;
        Some(Admitted {
            header,
            flow,
            route,
            direction,
            at,
            is_ack,
        })
    }

    /// The route from the host at `port` to an address.
    #[inline]
    fn route(&self, port: u16, to: [u8; 4]) -> Option<u16> {
        let to = match self.forwarding {
            Forwarding::ByAddress => addressing::host_of(to)?,
            Forwarding::Across => 1 - port.min(1),
        };
        let hosts = self.entered.len();
        if usize::from(to) >= hosts {
            return None;
        }
        let route = self.route_of[usize::from(port) * hosts + usize::from(to)];
        (route != NO_ROUTE).then_some(route)
    }

    /// A packet in the network, as hooks see it at `at`.
    #[inline]
    pub(crate) fn transit(&self, packet: &Handle, at: Time) -> Transit {
        Transit {
            slot: packet.slot,
            direction: self.routes[usize::from(packet.route)].direction,
            size: u32::from(packet.size),
            at,
        }
    }

    /// The way in which a packet is said to travel: acknowledgements of a flow against its data.
    pub(crate) fn direction_of(&self, flow: u16, route: u16) -> Direction {
        let route = self.routes[usize::from(route)];
        let known = self.flows.get(usize::from(flow)).copied().flatten();
        known.map_or(route.direction, |known| known.direction_from(route.from))
    }
}

impl FlowEntry {
    /// The way in which its packets travel that the host at `port` sends.
    #[inline]
    fn direction_from(&self, port: u16) -> Direction {
        if self.from == port {
            self.direction
        } else {
            self.direction.reverse()
        }
    }
}
