//! Endpoints and paths under a virtual clock.

use crate::applications::Applications;
use crate::flow::{FlowState, Flows};
use crate::packet::SimPacket;
use crate::packet_exchange::{PacketExchange, RunTotals};
use crate::samples::Samples;
use crate::scheduling_noise::DelayedProcesses;
use crate::transit::Transit;
use crate::wakeup_clock::{Clock, Part};
use narrows_cell::{Cell, CellError, Machine, RecordKind, merge_frames};
use narrows_net::Network;
use narrows_record::{FrameRow, Log, PacketLog};
use narrows_traffic::{Class, DatagramReport, TrafficEvent};
use narrows_transport::ConnectionTotals;
use narrows_units::Time;

/// A network with flows over it, at an instant of virtual time.
pub struct World {
    pub(crate) exchange: PacketExchange,
    pub(crate) applications: Applications,
    pub(crate) samples: Samples,
    processes: DelayedProcesses,
    duration: Time,
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
        for (position, flow) in cell.flows.iter().enumerate() {
            let routes = [route(flow.from, flow.to), route(flow.to, flow.from)];
            let mut state = FlowState::new(cell, position, flow, routes)?;
            let sender = endpoints.len() as u32;
            if let Some(pair) = state.only_pair(cell, flow, sender)? {
                state.sender = Some(sender);
                endpoints.extend(pair);
            }
            flows.push(state);
        }
        let log = match cell.record {
            RecordKind::Packets => {
                Log::Packets(PacketLog::new(narrows_cell::element_names(&network)))
            }
            RecordKind::Bins => Log::Bins(cell.bin_log()),
        };
        let processes = DelayedProcesses::new(cell);
        let clock = Clock::new(flows.len(), endpoints.len(), processes.len());
        let mut world = World {
            exchange: PacketExchange::new(clock, endpoints, Transit::new(network, log)),
            applications: Applications::new(Flows::new(flows)),
            samples: Samples::new(cell.sample),
            processes,
            duration: cell.duration,
        };
        world.start();
        world.exchange.clock.wake_sampler(Time::ZERO + cell.sample);
        Ok(world)
    }

    fn start(&mut self) {
        let exchange = &mut self.exchange;
        for index in 0..self.applications.flows.all.len() {
            let flow = &self.applications.flows.all[index];
            let start = flow.start;
            match (flow.sender, flow.class) {
                // Datagrams begin when the application does.
                (Some(_), Class::Datagrams) => exchange.clock.wake_application(index, start),
                (Some(sender), _) => {
                    exchange.identify(sender);
                    for endpoint in [sender as usize, sender as usize + 1] {
                        exchange.poke(start, endpoint);
                    }
                }
                // Connections that are open from the start exist from the start, but become active at the start of the
                // flow.
                (None, _) => {
                    self.applications
                        .notify(start, index, TrafficEvent::Start, exchange);
                }
            }
        }
    }

    /// Totals so far.
    pub fn totals(&self) -> &RunTotals {
        &self.exchange.totals
    }

    /// Duration of the run.
    pub fn duration(&self) -> Time {
        self.duration
    }

    /// Processes all events due at or before `until`.
    pub fn run_until(&mut self, until: Time) {
        loop {
            let (now, part) = self.exchange.clock.earliest();
            let network = self.exchange.transit.network.next_wakeup();
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
            while self.exchange.clock.is_fixed(part) {
                let (at, next) = self.exchange.clock.earliest();
                if at > now || next < part || !self.exchange.clock.is_fixed(next) {
                    break;
                }
                part = next;
                self.run_part(now, part);
            }
        }
    }

    /// Lets the part with this number act.
    #[inline]
    fn run_part(&mut self, now: Time, number: usize) {
        let exchange = &mut self.exchange;
        match exchange.clock.part(number) {
            Part::Endpoint(index) => self.wake_endpoint(now, index),
            Part::Sampler => {
                let next = self.samples.take(now, &self.applications, exchange);
                exchange.clock.wake_sampler(next);
            }
            Part::Application(index) => self.applications.wake(now, index, exchange),
            Part::Process(index) => self.run_process(now, index),
        }
    }

    #[inline]
    fn wake_endpoint(&mut self, now: Time, index: usize) {
        let exchange = &mut self.exchange;
        if exchange.is_due(now, index)
            && (self.processes.is_empty() || !self.processes.wait(now, index, exchange))
        {
            exchange.act(now, index, &mut self.applications.flows);
        }
    }

    /// Lets an endpoint react to received packets, and its connection to completed transfers.
    #[inline]
    fn respond(&mut self, now: Time, index: usize) {
        let exchange = &mut self.exchange;
        let endpoint = &exchange.endpoints[index];
        let (closing, connection) = (endpoint.closing, endpoint.connection);
        let complete = endpoint.rcv_nxt() >= endpoint.awaited;
        exchange.act(now, index, &mut self.applications.flows);
        if complete {
            self.applications.on_awaited(now, index, exchange);
        }
        if closing {
            self.applications.retire_if_done(connection, exchange);
        }
    }

    /// Lets a process read a batch, and then all its endpoints act that have work to do.
    fn run_process(&mut self, now: Time, process: usize) {
        let flows = &mut self.applications.flows;
        let due = self.processes.begin(process, &mut self.exchange, flows);
        for &id in &due {
            if self.exchange.exists(id) {
                self.respond(now, id.index as usize);
            }
        }
        self.processes
            .end(now, process, due, &mut self.exchange.clock);
    }

    /// Advances the network and delivers the packets that have left it.
    #[inline]
    fn run_network(&mut self, now: Time) {
        let mut next = self.exchange.transit.advance(now);
        while let Some((at, packet)) = next {
            if self.exchange.transit.arrive(at, packet) {
                self.deliver(at, packet);
            }
            next = self.exchange.transit.pop();
        }
    }

    /// A packet has reached its host.
    #[inline]
    fn deliver(&mut self, at: Time, packet: SimPacket) {
        let flows = &mut self.applications.flows;
        if !self.processes.is_empty() {
            let clock = &mut self.exchange.clock;
            if self.processes.deliver(at, packet, flows, clock) {
                return;
            }
        }
        if let Some(id) = self.exchange.receive(at, packet, flows) {
            self.respond(at, id.index as usize);
        }
    }

    /// Ends the run and closes its log.
    pub fn finish(&mut self) {
        let flows = &mut self.applications.flows;
        self.processes.read_the_rest(&mut self.exchange, flows);
        for flow in &mut flows.all {
            let Some(sender) = flow.sender else { continue };
            let (mut sent, mut arrived) = (Vec::new(), Vec::new());
            for endpoint in &mut self.exchange.endpoints[sender as usize..][..2] {
                endpoint.machine.take_frames(&mut sent, &mut arrived);
            }
            flow.frames = merge_frames(flow.number, &sent, &arrived);
        }
        self.exchange.transit.finish(self.duration);
    }

    /// The frames of video of all flows, flow by flow, once the world is finished.
    pub fn frames(&self) -> Vec<FrameRow> {
        let flows = &self.applications.flows.all;
        let frames = flows.iter().flat_map(|flow| &flow.frames.0);
        frames.copied().collect()
    }

    /// Counters of all data pairs of a flow, including those that have ended.
    pub(crate) fn counters(&self, flow: &FlowState) -> ConnectionTotals {
        let mut totals = flow.past;
        for sender in self.applications.data_senders(flow) {
            for endpoint in self.exchange.endpoints.iter().skip(sender).take(2) {
                endpoint.machine.count(&mut totals);
            }
        }
        totals
    }

    /// Report of the sink of a flow of datagrams.
    pub(crate) fn datagrams(&self, flow: &FlowState) -> Option<DatagramReport> {
        match &self.exchange.endpoints[flow.sender? as usize + 1].machine {
            Machine::DatagramSink(sink) => Some(sink.report()),
            _ => None,
        }
    }
}
