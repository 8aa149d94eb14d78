//! Endpoints and paths under a virtual clock.

use crate::slots::Slots;
use narrows_cell::{Cell, CellError, RecordKind, SchemeRef, recorded, state_row, trace_rows};
use narrows_net::{Direction, Network, Outcomes, Packet};
use narrows_record::{BinLog, Log, PacketLog, QueueRow, StateRow, TraceRow};
use narrows_transport::{Body, Data, Endpoint, Header, Receiver, Sender};
use narrows_units::{Ecn, Stream, Time, Wakeups};

/// A packet in the simulator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPacket {
    pub(crate) uid: u64,
    content: Content,
    size: u32,
    flow: u16,
    route: u16,
    ecn: Ecn,
    corrupt: bool,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Data(Data),
    /// An acknowledgement, in a slot.
    Ack(u32),
}

impl Packet for SimPacket {
    #[inline]
    fn size(&self) -> u32 {
        self.size
    }
    #[inline]
    fn flow(&self) -> u16 {
        self.flow
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    #[inline]
    fn is_ack(&self) -> bool {
        matches!(self.content, Content::Ack(_))
    }
    #[inline]
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    #[inline]
    fn route(&self) -> u16 {
        self.route
    }
}

/// One flow: its two ends.
pub(crate) struct FlowState {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    direction: Direction,
    /// Routes of its data and of its acknowledgements.
    routes: [u16; 2],
    number: u16,
    start: Time,
    stop: Time,
    stopped: bool,
}

/// What a world has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Data packets that reached their receiver.
    pub data_delivered: u64,
}

// Numbers of the parts in the wake-up tree.
const SAMPLER: usize = 0;
const ENDPOINTS: usize = 1;

/// A network with flows over it, at a moment of virtual time.
pub struct World {
    pub(crate) network: Network<SimPacket>,
    pub(crate) flows: Vec<FlowState>,
    /// By flow number: index into `flows`.
    index: Vec<u16>,
    pub(crate) log: Log,
    pub(crate) states: Vec<StateRow>,
    pub(crate) traces: Vec<TraceRow>,
    pub(crate) queues: Vec<QueueRow>,
    wakeups: Wakeups,
    slots: Slots,
    outcomes: Outcomes<SimPacket>,
    body: Body,
    empty: Body,
    sample: narrows_units::Span,
    next_sample: Time,
    duration: Time,
    totals: Totals,
}

impl World {
    /// Builds the world of `cell` at time zero.
    ///
    /// # Errors
    /// Schemes of the kernel, which no simulator can run, and whatever the network refuses.
    pub fn new(cell: &Cell) -> Result<Self, CellError> {
        let network: Network<SimPacket> = cell.network()?;
        let route = |from, to| {
            network
                .route(from, to)
                .expect("the cell has checked its routes")
        };
        let mut flows = Vec::with_capacity(cell.flows.len());
        let mut index = Vec::new();
        for (position, flow) in cell.flows.iter().enumerate() {
            let SchemeRef::Native(scheme, params) = &flow.scheme else {
                return Err(CellError::Conflict(format!(
                    "flow {}: {} cannot be simulated; use where: emulate",
                    flow.flow, flow.name
                )));
            };
            let random = Stream::new(cell.seed, &format!("flow/{}", flow.flow));
            let sender = Sender::new(cell.transport.clone(), scheme, params, flow.start, random)
                .map_err(|error| CellError::Params {
                    at: format!("flow {} ({})", flow.flow, flow.name),
                    error,
                })?;
            flows.push(FlowState {
                sender,
                receiver: Receiver::new(&cell.transport),
                direction: flow.direction,
                routes: [route(flow.from, flow.to), route(flow.to, flow.from)],
                number: flow.flow,
                start: flow.start,
                stop: flow.stop,
                stopped: false,
            });
            let number = usize::from(flow.flow);
            index.resize(index.len().max(number + 1), u16::MAX);
            index[number] = position as u16;
        }
        let log = match cell.record {
            RecordKind::Packets => {
                Log::Packets(PacketLog::new(narrows_cell::element_names(&network)))
            }
            RecordKind::Bins => Log::Bins(BinLog::new(cell.bin.ns())),
        };
        let mut wakeups = Wakeups::new(ENDPOINTS + 2 * flows.len());
        for (position, flow) in flows.iter().enumerate() {
            wakeups.set(ENDPOINTS + 2 * position, flow.start);
        }
        let next_sample = Time::ZERO + cell.sample;
        wakeups.set(SAMPLER, next_sample);
        Ok(World {
            network,
            flows,
            index,
            log,
            states: Vec::new(),
            traces: Vec::new(),
            queues: Vec::new(),
            wakeups,
            slots: Slots::default(),
            outcomes: Outcomes::new(),
            body: Body::default(),
            empty: Body::default(),
            sample: cell.sample,
            next_sample,
            duration: cell.duration,
            totals: Totals::default(),
        })
    }

    /// What has been done so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How long the run lasts.
    pub fn duration(&self) -> Time {
        self.duration
    }

    /// Lets everything happen that is due at or before `until`.
    pub fn run_until(&mut self, until: Time) {
        loop {
            let (now, part) = self.wakeups.earliest();
            let network = self.network.next_wakeup();
            // What arrives at an instant is seen by the timers of that instant.
            if network <= now {
                if network > until {
                    return;
                }
                self.run_network(network);
                continue;
            }
            if now > until {
                return;
            }
            match part {
                SAMPLER => self.take_samples(now),
                endpoint => {
                    let flow = (endpoint - ENDPOINTS) / 2;
                    if (endpoint - ENDPOINTS).is_multiple_of(2) {
                        self.run_sender(now, flow);
                    } else {
                        self.run_receiver(now, flow);
                    }
                }
            }
        }
    }

    /// Closes the books: what is still in the network is in flight.
    pub fn finish(&mut self) {
        let log = &mut self.log;
        self.network
            .visit_held(&mut |element, packet| log.hold(packet.uid, element));
        self.log.finish();
    }

    /// Advances the network and hands over what has come out.
    #[inline]
    fn run_network(&mut self, now: Time) {
        self.network.advance(now, &mut self.outcomes);
        self.settle();
        while let Some((at, packet)) = self.network.pop() {
            let flow = usize::from(self.index[usize::from(packet.flow)]);
            if packet.corrupt {
                self.log.arrive_corrupt(packet.uid, at.ns(), 0);
                if let Content::Ack(slot) = packet.content {
                    self.slots.free(slot);
                }
                continue;
            }
            self.log.arrive(packet.uid, at.ns(), 0);
            match packet.content {
                Content::Data(data) => {
                    self.totals.data_delivered += 1;
                    let header = Header::Data(data);
                    self.flows[flow]
                        .receiver
                        .receive(at, packet.ecn, &header, &self.empty);
                    self.run_receiver(at, flow);
                }
                Content::Ack(slot) => {
                    let message = self.slots.get(slot);
                    let sender = &mut self.flows[flow].sender;
                    sender.receive(at, packet.ecn, &message.header, &message.body);
                    self.slots.free(slot);
                    self.run_sender(at, flow);
                }
            }
        }
    }

    /// Puts a packet into the network.
    #[inline]
    fn enter(&mut self, now: Time, direction: Direction, mut packet: SimPacket) {
        packet.uid = self
            .log
            .enter(packet.flow, recorded(direction), packet.size, now.ns());
        self.network.push(now, packet, &mut self.outcomes);
        self.settle();
    }

    /// Writes down what elements have dropped, and gives copies an identity.
    #[inline]
    fn settle(&mut self) {
        if !self.outcomes.drops.is_empty() || !self.outcomes.copies.is_empty() {
            self.settle_outcomes();
        }
    }

    #[cold]
    fn settle_outcomes(&mut self) {
        for drop in self.outcomes.drops.drain(..) {
            self.log.drop(drop.packet.uid, drop.element, drop.reason.0);
            if let Content::Ack(slot) = drop.packet.content {
                self.slots.free(slot);
            }
        }
        self.settle_copies();
    }

    fn settle_copies(&mut self) {
        while let Some(copied) = self.outcomes.copies.pop() {
            let mut packet = copied.packet;
            let flow = &self.flows[usize::from(self.index[usize::from(packet.flow)])];
            let direction = match packet.content {
                Content::Data(_) => flow.direction,
                Content::Ack(slot) => {
                    self.slots.share(slot);
                    flow.direction.reverse()
                }
            };
            let (direction, at) = (recorded(direction), copied.at.ns());
            packet.uid = self
                .log
                .copy(packet.uid, packet.flow, direction, packet.size, at);
            self.network
                .inject(copied.element, copied.at, packet, &mut self.outcomes);
            self.network.advance(copied.at, &mut self.outcomes);
            self.settle();
        }
    }

    /// Lets a sender send all it may.
    #[inline]
    fn run_sender(&mut self, now: Time, index: usize) {
        let flow = &mut self.flows[index];
        if now >= flow.stop && !flow.stopped {
            flow.stopped = true;
            flow.sender.stop();
        }
        let (direction, number, routes) = (flow.direction, flow.number, flow.routes);
        while let Some(out) = self.flows[index].sender.transmit(now, &mut self.body) {
            if let Header::Data(data) = out.header {
                let packet = SimPacket {
                    uid: 0,
                    content: Content::Data(data),
                    size: out.size,
                    flow: number,
                    route: routes[0],
                    ecn: out.ecn,
                    corrupt: false,
                };
                self.enter(now, direction, packet);
            }
        }
        let flow = &self.flows[index];
        let mut wakeup = flow.sender.next_wakeup();
        if !flow.stopped {
            wakeup = wakeup.min(flow.stop).max(flow.start);
        }
        self.wakeups.set(ENDPOINTS + 2 * index, wakeup);
    }

    /// Lets a receiver acknowledge what is due.
    #[inline]
    fn run_receiver(&mut self, now: Time, index: usize) {
        let flow = &self.flows[index];
        let (direction, number) = (flow.direction.reverse(), flow.number);
        let route = flow.routes[1];
        while let Some(out) = self.flows[index].receiver.transmit(now, &mut self.body) {
            let slot = self.slots.put(out.header, &mut self.body);
            let packet = SimPacket {
                uid: 0,
                content: Content::Ack(slot),
                size: out.size,
                flow: number,
                route,
                ecn: out.ecn,
                corrupt: false,
            };
            self.enter(now, direction, packet);
        }
        let wakeup = self.flows[index].receiver.next_wakeup();
        self.wakeups.set(ENDPOINTS + 2 * index + 1, wakeup);
    }

    fn take_samples(&mut self, now: Time) {
        for flow in &self.flows {
            if now >= flow.start && now <= flow.stop {
                let snapshot = flow.sender.snapshot();
                self.states
                    .push(state_row(flow.number, now.ns(), &snapshot));
                self.traces
                    .extend(trace_rows(flow.number, now.ns(), &snapshot));
            }
        }
        for stage in self.network.stages() {
            if stage.element.server().is_some() {
                let backlog = stage.element.queued();
                self.queues.push(QueueRow {
                    element: stage.name.to_owned(),
                    time_ns: now.ns(),
                    backlog_bytes: backlog.bytes,
                    backlog_packets: backlog.packets,
                });
            }
        }
        self.next_sample = now + self.sample;
        self.wakeups.set(SAMPLER, self.next_sample);
    }
}
