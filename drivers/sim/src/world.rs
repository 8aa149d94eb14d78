//! Endpoints and paths under a virtual clock.

use crate::endpoints::SimEndpoint;
use crate::flow::FlowState;
use crate::packet::SimPacket;
use crate::scheduling_noise::DelayedProcesses;
use crate::transit::Transit;
use narrows_cell::{Cell, CellError, Machine, RecordKind, merge_frames, state_row, trace_rows};
use narrows_net::Network;
use narrows_record::completions::Completions;
use narrows_record::{FrameRow, Log, PacketLog, QueueRow, StateRow, TraceRow, TransferRow};
use narrows_traffic::{Class, DatagramReport, TrafficAction, TrafficEvent};
use narrows_transport::{Body, ConnectionTotals};
use narrows_units::{Time, Wakeups};

/// Totals of a world so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    /// Data packets that reached their receiver.
    pub data_delivered: u64,
}

/// Numbers of the parts in the tree of wake-ups: the sampler, the applications of all flows, the endpoints that
/// exist from the start, the processes that may run late, and the endpoints of connections. On ties the lower number
/// acts first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Number of endpoints that exist from the start.
    fixed: usize,
    /// Part of the first such endpoint.
    first_fixed: usize,
    first_process: usize,
    /// Part of the first endpoint of a connection.
    first_connection: usize,
}

const SAMPLER: usize = 0;

impl Parts {
    pub(crate) fn application(flow: usize) -> usize {
        1 + flow
    }

    pub(crate) fn process(self, process: usize) -> usize {
        self.first_process + process
    }

    #[inline]
    pub(crate) fn endpoint(self, index: usize) -> usize {
        match index.checked_sub(self.fixed) {
            Some(behind) => self.first_connection + behind,
            None => self.first_fixed + index,
        }
    }
}

/// A network with flows over it, at an instant of virtual time.
pub struct World {
    pub(crate) transit: Transit,
    pub(crate) flows: Vec<FlowState>,
    /// Pairs of senders and receivers; slots of ended ones are reused.
    pub(crate) endpoints: Vec<SimEndpoint>,
    pub(crate) free_pairs: Vec<u32>,
    pub(crate) connections: Vec<crate::flow::SimConnection>,
    pub(crate) free_connections: Vec<u32>,
    /// Pairs begun so far.
    pub(crate) serials: u32,
    /// Processes with delays, if hosts have scheduling noise.
    pub(crate) delayed_processes: Option<Box<DelayedProcesses>>,
    pub(crate) actions: Vec<TrafficAction>,
    /// By flow number: index into `flows`.
    pub(crate) index: Vec<u16>,
    pub(crate) states: Vec<StateRow>,
    pub(crate) traces: Vec<TraceRow>,
    pub(crate) queues: Vec<QueueRow>,
    pub(crate) parts: Parts,
    pub(crate) wakeups: Wakeups,
    pub(crate) body: Body,
    sample: narrows_units::Span,
    duration: Time,
    pub(crate) totals: RunTotals,
}

impl World {
    /// Builds the world of `cell` at time zero.
    ///
    /// # Errors
    /// Schemes of the kernel, which a simulator cannot run, and errors of the network.
    pub fn new(cell: &Cell) -> Result<Self, CellError> {
        let network: Network<SimPacket> = cell.fused_network()?;
        let route = |from, to| {
            network
                .route(from, to)
                .expect("the cell has checked its routes")
        };
        let mut flows = Vec::with_capacity(cell.flows.len());
        let mut endpoints = Vec::new();
        let mut index = Vec::new();
        for (position, flow) in cell.flows.iter().enumerate() {
            let routes = [route(flow.from, flow.to), route(flow.to, flow.from)];
            let mut state = FlowState::new(cell, position, flow, routes)?;
            let sender = endpoints.len() as u32;
            if let Some(pair) = state.only_pair(cell, flow, sender)? {
                state.sender = Some(sender);
                endpoints.extend(pair);
            }
            flows.push(state);
            let number = usize::from(flow.flow);
            index.resize(index.len().max(number + 1), u16::MAX);
            index[number] = position as u16;
        }
        let log = match cell.record {
            RecordKind::Packets => {
                Log::Packets(PacketLog::new(narrows_cell::element_names(&network)))
            }
            RecordKind::Bins => Log::Bins(cell.bin_log()),
        };
        let delayed_processes = DelayedProcesses::new(cell);
        let late = delayed_processes.as_ref();
        let (first_fixed, fixed) = (Parts::application(flows.len()), endpoints.len());
        let processes = late.map_or(0, |late| late.processes.len());
        let parts = Parts {
            fixed,
            first_fixed,
            first_process: first_fixed + fixed,
            first_connection: first_fixed + fixed + processes,
        };
        let next_sample = Time::ZERO + cell.sample;
        let mut world = World {
            transit: Transit::new(network, log),
            delayed_processes,
            wakeups: Wakeups::new(parts.endpoint(2 * flows.len())),
            parts,
            flows,
            endpoints,
            free_pairs: Vec::new(),
            connections: Vec::new(),
            free_connections: Vec::new(),
            serials: 0,
            actions: Vec::new(),
            index,
            states: Vec::new(),
            traces: Vec::new(),
            queues: Vec::new(),
            body: Body::default(),
            sample: cell.sample,
            duration: cell.duration,
            totals: RunTotals::default(),
        };
        for index in 0..world.flows.len() {
            let flow = &world.flows[index];
            let start = flow.start;
            match (flow.sender, flow.class) {
                // Datagrams begin when the application does.
                (Some(_), Class::Datagrams) => {
                    world.wakeups.set(Parts::application(index), start);
                }
                (Some(sender), _) => {
                    world.identify(sender);
                    for endpoint in [sender as usize, sender as usize + 1] {
                        world.endpoints[endpoint].poked = true;
                        world.wakeups.set(parts.endpoint(endpoint), start);
                    }
                }
                // Connections that are open from the start exist from the start, but become active at the start of the
                // flow.
                (None, _) => world.notify(start, index, TrafficEvent::Start),
            }
        }
        world.wakeups.set(SAMPLER, next_sample);
        Ok(world)
    }

    /// Totals so far.
    pub fn totals(&self) -> &RunTotals {
        &self.totals
    }

    /// Duration of the run.
    pub fn duration(&self) -> Time {
        self.duration
    }

    /// Processes all events due at or before `until`.
    pub fn run_until(&mut self, until: Time) {
        loop {
            let (now, part) = self.wakeups.earliest();
            let network = self.transit.network.next_wakeup();
            // Timers of an instant see the arrivals of that instant.
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
            let mut part = part;
            self.run_part(now, part);
            // Hosts act at an instant before the network moves any of their packets.
            let first = self.parts.first_connection;
            while part < first {
                let (at, next) = self.wakeups.earliest();
                if at > now || next < part || next >= first {
                    break;
                }
                part = next;
                self.run_part(now, part);
            }
        }
    }

    /// Lets a part of the tree of wake-ups act.
    #[inline]
    fn run_part(&mut self, now: Time, part: usize) {
        let parts = self.parts;
        if part >= parts.first_connection {
            self.wake_endpoint(now, part - parts.first_connection + parts.fixed);
        } else if part == SAMPLER {
            self.take_samples(now);
        } else if part < parts.first_fixed {
            self.wake_application(now, part - Parts::application(0));
        } else if part < parts.first_process {
            self.wake_endpoint(now, part - parts.first_fixed);
        } else {
            self.run_process(now, part - parts.first_process);
        }
    }

    /// Ends the run and closes its log.
    pub fn finish(&mut self) {
        self.read_the_rest();
        self.merge_frames();
        self.transit.finish(self.duration);
    }

    /// The transfers that applications have begun, flow by flow: those that are not in the histograms, and the
    /// histograms.
    pub(crate) fn take_transfers(&mut self) -> (Vec<TransferRow>, Completions) {
        let (mut rows, mut counted) = (Vec::new(), Completions::default());
        for flow in &mut self.flows {
            let (each, done) = flow.transfers.take();
            rows.extend(each);
            counted.join(done);
        }
        (rows, counted)
    }

    /// The frames of video of all flows, flow by flow, once the world is finished.
    pub fn frames(&self) -> Vec<FrameRow> {
        let frames = self.flows.iter().flat_map(|flow| &flow.frames.0);
        frames.copied().collect()
    }

    fn merge_frames(&mut self) {
        for flow in &mut self.flows {
            let Some(sender) = flow.sender else { continue };
            let (mut sent, mut arrived) = (Vec::new(), Vec::new());
            for endpoint in &mut self.endpoints[sender as usize..][..2] {
                endpoint.machine.take_frames(&mut sent, &mut arrived);
            }
            flow.frames = merge_frames(flow.number, &sent, &arrived);
        }
    }

    /// Indices of the current senders of a flow's data.
    fn data_senders(&self, flow: &FlowState) -> impl Iterator<Item = usize> {
        let connections = flow.connections.values().map(|&slot| {
            let connection = &self.connections[slot as usize];
            match flow.class {
                Class::Pull => connection.down,
                Class::Push | Class::Datagrams => connection.up,
            }
        });
        let senders = flow.sender.into_iter().chain(connections);
        senders.map(|index| index as usize)
    }

    /// Counters of all data pairs of a flow, including those that have ended.
    pub(crate) fn counters(&self, flow: &FlowState) -> ConnectionTotals {
        let mut totals = flow.past;
        for sender in self.data_senders(flow) {
            for endpoint in self.endpoints.iter().skip(sender).take(2) {
                endpoint.machine.count(&mut totals);
            }
        }
        totals
    }

    /// Report of the sink of a flow of datagrams.
    pub(crate) fn datagrams(&self, flow: &FlowState) -> Option<DatagramReport> {
        match &self.endpoints[flow.sender? as usize + 1].machine {
            Machine::DatagramSink(sink) => Some(sink.report()),
            _ => None,
        }
    }

    /// Advances the network and delivers the packets that have left it.
    #[inline]
    fn run_network(&mut self, now: Time) {
        let mut next = self.transit.advance(now);
        while let Some((at, packet)) = next {
            if self.transit.arrive(at, packet) {
                self.deliver(at, packet);
            }
            next = self.transit.pop();
        }
    }

    /// A packet has reached its host.
    #[inline]
    fn deliver(&mut self, at: Time, packet: SimPacket) {
        if self.delayed_processes.is_some() && self.deliver_to_socket(at, packet) {
            return;
        }
        if let Some(id) = self.on_packet(at, packet) {
            self.respond(at, id.index as usize);
        }
    }

    fn take_samples(&mut self, now: Time) {
        let (mut states, mut traces) = (Vec::new(), Vec::new());
        for flow in &self.flows {
            if now < flow.start || now > flow.stop || flow.class == Class::Datagrams {
                continue;
            }
            let senders = self.data_senders(flow);
            let senders = senders.filter_map(|index| self.endpoints.get(index));
            let mut snapshots = senders.filter_map(|sender| sender.machine.snapshot());
            let (number, time) = (flow.number, now.ns());
            let alone = flow.sender.is_some() || flow.opened == 1;
            let only = if alone { snapshots.next() } else { None };
            let snapshot = only.unwrap_or_else(|| flow.past.together(snapshots));
            states.push(state_row(number, time, &snapshot));
            traces.extend(trace_rows(number, time, &snapshot));
        }
        self.states.append(&mut states);
        self.traces.append(&mut traces);
        let network = &mut self.transit.network;
        network.catch_up(now);
        for stage in network.stages() {
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
        self.wakeups.set(SAMPLER, now + self.sample);
    }
}
