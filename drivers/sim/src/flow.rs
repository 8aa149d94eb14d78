//! Flows: an application and the connections that it has opened.
//!
//! A connection is one pipe (a sender and a receiver) up, from client to server, and, where the
//! server answers, one down. Our transport has no handshake: data goes out as soon as a connection
//! is open. What arrives at the server is answered at the same instant.

use crate::media::MediaEnds;
use crate::packet::{SimPacket, SimPacketKind};
use narrows_cc::Scheme;
use narrows_cell::{Cell, CellError, Flow, SchemeRef};
use narrows_net::PathDirection;
use narrows_record::TransferRow;
use narrows_traffic::{Application, Class, DatagramSink, Offered, Transfer};
use narrows_transport::{Config, ConnectionTotals, Receiver, Sender};
use narrows_units::{Ecn, Files, Params, Stream, Time};
use std::collections::{BTreeMap, VecDeque};

/// No pipe.
pub(crate) const NONE: u32 = u32::MAX;

/// One flow.
pub(crate) struct FlowState {
    pub(crate) application: Box<dyn Application>,
    pub(crate) number: u16,
    pub(crate) class: Class,
    pub(crate) direction: PathDirection,
    /// Routes in the direction of its data, and back.
    pub(crate) routes: [u16; 2],
    pub(crate) dscp: u8,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    scheme: Option<(&'static Scheme, Params)>,
    /// Transport of data from client to server, and from server to client.
    configs: [Config; 2],
    seed: u64,
    files: Files,
    /// Open connections: number given by the application, index in the world.
    pub(crate) connections: BTreeMap<u32, u32>,
    pub(crate) opened: u32,
    pub(crate) offered: Offered,
    /// Transfers that are complete, and those that are not, in the order of their beginning.
    pub(crate) transfers: Vec<TransferRow>,
    /// Counters of pipes that are gone, and packets in the direction of the data that no data
    /// pipe counts.
    pub(crate) past: ConnectionTotals,
    pub(crate) datagrams: Datagrams,
    /// Both ends of a real-time scheme, in the place of connections.
    pub(crate) media: Option<Box<MediaEnds>>,
}

/// The datagrams of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) serial: u32,
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
    pub(crate) sink: Option<DatagramSink>,
}

impl FlowState {
    pub(crate) fn new(cell: &Cell, flow: &Flow, routes: [u16; 2]) -> Result<Self, CellError> {
        let scheme = match &flow.scheme {
            SchemeRef::Native(scheme, params) => Some((*scheme, params.clone())),
            SchemeRef::Media(..) | SchemeRef::Datagrams => None,
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
            connections: BTreeMap::new(),
            opened: 0,
            offered: Offered::default(),
            transfers: Vec::new(),
            past: ConnectionTotals::default(),
            datagrams: Datagrams {
                sink: (flow.traffic.kind.class == Class::Datagrams).then(DatagramSink::default),
                ..Datagrams::default()
            },
            media: MediaEnds::of(cell, flow)?,
        })
    }

    /// The direction in which packets on `route` travel.
    #[inline]
    pub(crate) fn direction_of(&self, route: u16) -> PathDirection {
        if route == self.routes[0] {
            self.direction
        } else {
            self.direction.reverse()
        }
    }

    /// A pipe with index `place` for connection `number`, from client to server or, `down`, from server to client.
    pub(crate) fn pipe(
        &self,
        connection: u32,
        place: u32,
        number: u32,
        serial: u32,
        down: bool,
        now: Time,
    ) -> Result<SimPipe, CellError> {
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
        sender.set_write_seq(0);
        let is_data = down == (self.class == Class::Pull);
        let [there, back] = self.routes;
        let packet = |route, kind| SimPacket {
            uid: 0,
            slot: 0,
            kind,
            size: 0,
            pipe: place,
            serial,
            flow: self.number,
            route,
            ecn: Ecn::NotEct,
            dscp: self.dscp,
            corrupt: false,
        };
        Ok(SimPipe {
            sender,
            receiver: Receiver::new(config),
            serial,
            connection,
            packets: if is_data {
                [
                    packet(there, SimPacketKind::Data),
                    packet(back, SimPacketKind::Ack),
                ]
            } else {
                [
                    packet(back, SimPacketKind::Data),
                    packet(there, SimPacketKind::Ack),
                ]
            },
            is_data,
            closing: false,
            poked: false,
            stopped: false,
            direction: if is_data {
                self.direction
            } else {
                self.direction.reverse()
            },
            watch: u64::MAX,
            start: now.max(self.start),
            stop: self.stop,
        })
    }

    /// Adds what a pipe has counted that is gone now.
    pub(crate) fn retire(&mut self, pipe: &SimPipe) {
        if !pipe.is_data {
            return;
        }
        self.past.add_sender(&pipe.sender);
        self.past.add_receiver(&pipe.receiver);
    }
}

/// One direction of a connection: a sender, and the receiver at the other end.
pub(crate) struct SimPipe {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Unique among all pipes of the run; 0 when the place is free.
    pub(crate) serial: u32,
    pub(crate) connection: u32,
    /// The common part of its data packets and its acknowledgements. Packets are copied in wide
    /// words, so starting from memory at rest is faster than writing field by field.
    pub(crate) packets: [SimPacket; 2],
    /// True if it carries the flow's data, not requests for them.
    pub(crate) is_data: bool,
    /// The sender has been given something new to think about.
    pub(crate) poked: bool,
    /// True if its connection ends when everything is through.
    pub(crate) closing: bool,
    pub(crate) stopped: bool,
    /// Direction of its data.
    pub(crate) direction: PathDirection,
    /// Position in the stream whose arrival the connection waits for.
    pub(crate) watch: u64,
    pub(crate) start: Time,
    pub(crate) stop: Time,
}

/// One connection.
#[derive(Clone, Debug)]
pub(crate) struct SimConnection {
    pub(crate) flow: u16,
    pub(crate) number: u32,
    /// Indices of its pipes; `down` is [`NONE`] until the server answers.
    pub(crate) up: u32,
    pub(crate) down: u32,
    pub(crate) closing: bool,
    /// Bytes that were to go up and down so far.
    pub(crate) up_end: u64,
    pub(crate) down_end: u64,
    pub(crate) pending: VecDeque<PendingTransfer>,
}

/// A transfer under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingTransfer {
    pub(crate) transfer: Transfer,
    /// Its place in the flow's transfers.
    pub(crate) row: usize,
    /// Where it ends in the streams.
    pub(crate) up_end: u64,
    pub(crate) down_end: u64,
    /// Everything has gone up, and the server answers.
    pub(crate) answered: bool,
}
