//! Flows: an application and the endpoints that carry out its requests.
//!
//! A connection is one pair of endpoints (a sender and a receiver) up, from client to server, and, if the server
//! answers, one down. Our transport has no handshake: data are sent as soon as a connection is open. The server answers
//! at the instant of arrival.
//!
//! A flow of a real-time scheme or of datagrams has no connections but one pair for its whole duration. Real-time
//! endpoints stop sending when it stops; packets in flight then still arrive and count.

use crate::endpoint_state::SimEndpoint;
use crate::packet::{Label, SimPacket};
use crate::transfers::Transfers;
use narrows_cc::Scheme;
use narrows_cell::{Cell, CellError, Flow, Machine, SchemeRef};
use narrows_net::{Direction, Packet};
use narrows_record::FrameRow;
use narrows_traffic::{Application, Class, Offered, Transfer};
use narrows_transport::{Config, ConnectionTotals, Receiver, Sender};
use narrows_units::{Files, Params, Stream, Time};
use std::collections::{BTreeMap, VecDeque};

/// No endpoint.
pub(crate) const NONE: u32 = u32::MAX;

/// One flow.
pub(crate) struct FlowState {
    pub(crate) application: Box<dyn Application>,
    pub(crate) number: u16,
    /// Its index among all flows.
    place: u16,
    pub(crate) class: Class,
    pub(crate) direction: Direction,
    /// Routes in the direction of its data, and back.
    pub(crate) routes: [u16; 2],
    dscp: u8,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    scheme: Option<(&'static Scheme, Params)>,
    /// Transport of data from client to server, and from server to client.
    configs: [Config; 2],
    seed: u64,
    files: Files,
    /// Decisions of the scheme are left to the caller where they can be.
    pub(crate) decided_outside: bool,
    /// Index of the sender of a flow without connections.
    pub(crate) sender: Option<u32>,
    /// Open connections: number given by the application, index in the world.
    pub(crate) connections: BTreeMap<u32, u32>,
    pub(crate) opened: u32,
    pub(crate) offered: Offered,
    pub(crate) transfers: Transfers,
    /// Counters of pairs that have ended, and packets in the direction of the data that no data pair counts.
    pub(crate) past: ConnectionTotals,
    /// At the end: its video frames, and the number that arrived but were never sent.
    pub(crate) frames: (Vec<FrameRow>, u64),
}

impl FlowState {
    pub(crate) fn new(
        cell: &Cell,
        place: usize,
        flow: &Flow,
        routes: [u16; 2],
    ) -> Result<Self, CellError> {
        let scheme = match &flow.scheme {
            SchemeRef::Native(scheme, params) => Some((*scheme, params.clone())),
            SchemeRef::Media(..) | SchemeRef::Datagrams => None,
            SchemeRef::Program(_) => {
                return Err(CellError::Conflict(format!(
                    "flow {}: {} is a program and cannot be simulated; use where: emulate",
                    flow.flow, flow.name
                )));
            }
            SchemeRef::Kernel(_) | SchemeRef::Bpf(_) => {
                return Err(CellError::Conflict(format!(
                    "flow {}: {} runs inside a kernel and cannot be simulated; use where: emulate",
                    flow.flow, flow.name
                )));
            }
        };
        Ok(FlowState {
            application: flow.application(cell.seed)?,
            number: flow.flow,
            place: place as u16,
            class: flow.traffic.kind.class,
            direction: flow.direction,
            routes,
            dscp: flow.dscp,
            start: flow.start,
            stop: flow.stop,
            scheme,
            configs: [flow.client(), flow.server()].map(|from| cell.transport(flow, from)),
            seed: cell.seed,
            files: cell.files.clone(),
            decided_outside: false,
            sender: None,
            connections: BTreeMap::new(),
            opened: 0,
            offered: Offered::default(),
            transfers: Transfers::new(cell),
            past: ConnectionTotals::default(),
            frames: (Vec::new(), 0),
        })
    }

    /// Leaves the decisions of its scheme to the caller, or checks that the scheme makes them.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn set_decided_outside(&mut self, decided_outside: bool) -> Result<(), CellError> {
        self.decided_outside = decided_outside;
        match &self.scheme {
            // Only schemes that read a model can be without decisions: no other is built once more.
            Some((scheme, params)) if !decided_outside && scheme.reads_model() => {
                let at = format!("flow {} ({})", self.number, scheme.name);
                let random = Stream::new(self.seed, "check");
                let config = self.configs[0].clone();
                Sender::new(config, scheme, params, self.start, random, &self.files)
                    .and_then(|sender| sender.expect_own_decisions(scheme.name))
                    .map_err(|error| CellError::Params { at, error })
            }
            _ => Ok(()),
        }
    }

    /// The direction in which packets on `route` travel.
    fn direction_of(&self, route: u16) -> Direction {
        if route == self.routes[0] {
            self.direction
        } else {
            self.direction.reverse()
        }
    }

    /// Counts a packet that travels in the direction of the flow's data and that no data pair counts: the
    /// acknowledgement of a request, or a packet after the end of its connection.
    #[cold]
    pub(crate) fn count_orphan(&mut self, packet: SimPacket, arrived: bool) {
        if packet.route() != self.routes[0] {
            return;
        }
        let size = u64::from(packet.size());
        if arrived {
            self.past.receiver.received_packets += 1;
            self.past.receiver.received_bytes += size;
        } else {
            self.past.sender.sent_packets += 1;
            self.past.sender.sent_bytes += size;
        }
    }

    /// The pair of a flow without connections, for `index`; it has no serial number yet.
    pub(crate) fn only_pair(
        &self,
        cell: &Cell,
        flow: &Flow,
        index: u32,
    ) -> Result<Option<[SimEndpoint; 2]>, CellError> {
        let Some(machines) = Machine::pair(cell, flow)? else {
            return Ok(None);
        };
        let mut pair = self.pair(machines, index, true, self.start);
        pair[1].stop = self.stop;
        Ok(Some(pair))
    }

    /// The pair at `index` for connection `number`, from client to server or, `down`, from server to client.
    pub(crate) fn connection_pair(
        &self,
        index: u32,
        number: u32,
        down: bool,
        now: Time,
    ) -> Result<[SimEndpoint; 2], CellError> {
        let name = match (number, down) {
            (0, false) => format!("flow/{}", self.number),
            (_, false) => format!("flow/{}/{number}", self.number),
            (_, true) => format!("flow/{}/{number}/down", self.number),
        };
        let random = Stream::new(self.seed, &name);
        let config = &self.configs[usize::from(down)];
        let (scheme, params) = self
            .scheme
            .as_ref()
            .expect("only flows with a scheme open connections");
        let mut sender = Sender::new(config.clone(), scheme, params, now, random, &self.files)
            .map_err(|error| CellError::Params {
                at: format!("flow {} ({})", self.number, scheme.name),
                error,
            })?;
        if self.decided_outside {
            sender.decide_outside();
        }
        sender.set_write_seq(0);
        let machines = [
            Machine::Sender(sender),
            Machine::Receiver(Receiver::new(config)),
        ];
        let is_data = down == (self.class == Class::Pull);
        Ok(self.pair(machines, index, is_data, now))
    }

    /// A sender and its receiver, which does not stop by itself.
    fn pair(
        &self,
        machines: [Machine; 2],
        index: u32,
        is_data: bool,
        now: Time,
    ) -> [SimEndpoint; 2] {
        // The sender of the data is at the first end of the flow.
        let ends = if is_data { [0, 1] } else { [1, 0] };
        let mut each = machines.into_iter().zip(ends).zip([false, true]);
        std::array::from_fn(|_| {
            let ((machine, end), is_ack) = each.next().expect("there are two");
            SimEndpoint {
                machine,
                serial: 0,
                connection: NONE,
                packet: SimPacket::template(&Label {
                    to: index + u32::from(!is_ack),
                    flow: self.number,
                    route: self.routes[end],
                    direction: self.direction_of(self.routes[end]),
                    dscp: self.dscp,
                    is_ack,
                }),
                process: 2 * u32::from(self.place) + end as u32,
                is_data,
                poked: false,
                closing: false,
                stopped: false,
                awaited: u64::MAX,
                start: now.max(self.start),
                stop: if is_ack { Time::FAR } else { self.stop },
            }
        })
    }
}

/// The flows of a cell, in its order.
pub(crate) struct Flows {
    pub(crate) all: Vec<FlowState>,
    /// By flow number: index into `all`.
    index: Vec<u16>,
}

impl Flows {
    pub(crate) fn new(all: Vec<FlowState>) -> Self {
        let mut index = Vec::new();
        for (position, flow) in all.iter().enumerate() {
            let number = usize::from(flow.number);
            index.resize(index.len().max(number + 1), u16::MAX);
            index[number] = position as u16;
        }
        Flows { all, index }
    }

    /// Index of the flow that a packet belongs to.
    #[inline]
    pub(crate) fn index(&self, packet: SimPacket) -> usize {
        usize::from(self.index[usize::from(packet.flow())])
    }

    /// The flow that a packet belongs to.
    pub(crate) fn owner(&mut self, packet: SimPacket) -> &mut FlowState {
        let index = self.index(packet);
        &mut self.all[index]
    }
}

/// One connection.
#[derive(Clone, Debug)]
pub(crate) struct SimConnection {
    pub(crate) flow: u16,
    pub(crate) number: u32,
    /// Indices of its senders; `down` is [`NONE`] until the server answers.
    pub(crate) up: u32,
    pub(crate) down: u32,
    pub(crate) closing: bool,
    /// Bytes that were to go up and down so far.
    pub(crate) up_end: u64,
    pub(crate) down_end: u64,
    pub(crate) pending: VecDeque<PendingTransfer>,
}

/// A pending transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingTransfer {
    pub(crate) transfer: Transfer,
    /// Its index in the flow's transfers.
    pub(crate) row: usize,
    /// Where it ends in the streams.
    pub(crate) up_end: u64,
    pub(crate) down_end: u64,
    /// All data have gone up, and the server answers.
    pub(crate) answered: bool,
}
