//! Endpoints and paths under a virtual clock.

use crate::applications::Applications;
use crate::decisions::{Interrupted, Pause};
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
    pub(crate) paused: Option<Pause>,
    /// Decisions of one instant, which the caller makes together.
    pub(crate) gathered: Vec<Pause>,
}

impl World {
    /// Builds the world of `cell` at time zero.
    ///
    /// # Errors
    /// Schemes of the kernel, which a simulator cannot run, and errors of the network.
    pub fn new(cell: &Cell) -> Result<Self, CellError> {
        World::build(cell, |_| false, true)
    }

    /// Builds a world in which the caller makes the decisions of the flows that `decided_outside` returns true for, by
    /// their index. Without `recorded`, packets and samples are not kept.
    pub(crate) fn build(
        cell: &Cell,
        decided_outside: impl Fn(usize) -> bool,
        recorded: bool,
    ) -> Result<Self, CellError> {
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
            _ if !recorded => Log::Nothing(0),
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
            paused: None,
            gathered: Vec::new(),
        };
        for (index, flow) in world.applications.flows.all.iter_mut().enumerate() {
            flow.set_decided_outside(decided_outside(index))?;
        }
        world.start();
        let first_sample = if recorded {
            Time::ZERO + cell.sample
        } else {
            Time::FAR
        };
        world.exchange.clock.wake_sampler(first_sample);
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
        self.run::<false>(until);
    }

    /// Processes all events due at or before `until`. With `PAUSES` it stops at the next decision that is left to the
    /// caller, and returns true if there is one.
    #[inline]
    pub(crate) fn run<const PAUSES: bool>(&mut self, until: Time) -> bool {
        loop {
            let (now, part) = self.exchange.clock.earliest();
            let network = self.exchange.transit.network.next_wakeup();
            // Timers of an instant see the arrivals of that instant.
            if network <= now {
                if network > until {
                    return false;
                }
                let arrival = self.exchange.transit.advance(network);
                if self.run_arrivals::<PAUSES>(arrival) {
                    return true;
                }
                continue;
            }
            if now > until {
                return false;
            }
            if self.run_part::<PAUSES>(now, part) || self.run_hosts::<PAUSES>(now, part) {
                return true;
            }
        }
    }

    /// Lets the parts after `part` act that are due at `now`, too: hosts act at an instant before the network moves any
    /// of their packets.
    #[inline]
    pub(crate) fn run_hosts<const PAUSES: bool>(&mut self, now: Time, mut part: usize) -> bool {
        while self.exchange.clock.is_fixed(part) {
            let (at, next) = self.exchange.clock.earliest();
            if at > now || next < part || !self.exchange.clock.is_fixed(next) {
                break;
            }
            part = next;
            if self.run_part::<PAUSES>(now, part) {
                return true;
            }
        }
        false
    }

    /// Lets the part with this number act.
    #[inline]
    fn run_part<const PAUSES: bool>(&mut self, now: Time, number: usize) -> bool {
        let exchange = &mut self.exchange;
        let paused = match exchange.clock.part(number) {
            Part::Endpoint(index) => self.wake_endpoint::<PAUSES>(now, index),
            Part::Sampler => {
                let next = self.samples.take(now, &self.applications, exchange);
                exchange.clock.wake_sampler(next);
                false
            }
            Part::Application(index) => {
                self.applications.wake(now, index, exchange);
                false
            }
            Part::Process(index) => {
                self.processes.begin(index, &mut exchange.clock);
                self.run_process::<PAUSES>(now, index)
            }
        };
        if PAUSES && paused {
            self.remember_part(number);
        }
        paused
    }

    #[inline]
    fn wake_endpoint<const PAUSES: bool>(&mut self, now: Time, index: usize) -> bool {
        let exchange = &mut self.exchange;
        if exchange.is_due(now, index)
            && (self.processes.is_empty() || !self.processes.wait(now, index, exchange))
        {
            return self.act::<PAUSES>(now, index);
        }
        false
    }

    /// Lets an endpoint send all it may, unless a decision is due first.
    #[inline]
    pub(crate) fn act<const PAUSES: bool>(&mut self, now: Time, index: usize) -> bool {
        let exchange = &mut self.exchange;
        exchange.act(now, index, &mut self.applications.flows);
        if PAUSES && exchange.awaits_decision(index) {
            self.pause(now, index, Interrupted::Act);
            return true;
        }
        false
    }

    /// Lets an endpoint react to received packets, and its connection to completed transfers.
    #[inline]
    pub(crate) fn respond<const PAUSES: bool>(&mut self, now: Time, index: usize) -> bool {
        if PAUSES && self.exchange.awaits_decision(index) {
            self.pause(now, index, Interrupted::Response);
            return true;
        }
        let exchange = &mut self.exchange;
        let endpoint = &exchange.endpoints[index];
        let (closing, connection) = (endpoint.closing, endpoint.connection);
        let complete = endpoint.rcv_nxt() >= endpoint.awaited;
        exchange.act(now, index, &mut self.applications.flows);
        if PAUSES && exchange.awaits_decision(index) {
            self.pause(now, index, Interrupted::Response);
            return true;
        }
        if complete {
            self.applications.on_awaited(now, index, exchange);
        }
        if closing {
            self.applications.retire_if_done(connection, exchange);
        }
        false
    }

    /// Lets a process whose turn has begun read a batch, and then all its endpoints act that have work to do.
    pub(crate) fn run_process<const PAUSES: bool>(&mut self, now: Time, process: usize) -> bool {
        loop {
            let flows = &mut self.applications.flows;
            let Some(id) = self
                .processes
                .read_packet(process, &mut self.exchange, flows)
            else {
                break;
            };
            let index = id.index as usize;
            if PAUSES && self.exchange.awaits_decision(index) {
                self.pause(now, index, Interrupted::Process(process));
                return true;
            }
        }
        while let Some(id) = self.processes.due(process) {
            if self.exchange.exists(id) && self.respond::<PAUSES>(now, id.index as usize) {
                self.pause(now, id.index as usize, Interrupted::Process(process));
                return true;
            }
            self.processes.advance(process);
        }
        self.processes.end(now, process, &mut self.exchange.clock);
        false
    }

    /// Delivers a packet that has left the network, and those after it.
    #[inline]
    pub(crate) fn run_arrivals<const PAUSES: bool>(
        &mut self,
        mut arrival: Option<(Time, SimPacket)>,
    ) -> bool {
        while let Some((at, packet)) = arrival {
            if self.exchange.transit.arrive(at, packet) && self.deliver::<PAUSES>(at, packet) {
                return true;
            }
            arrival = self.exchange.transit.pop();
        }
        false
    }

    /// A packet has reached its host.
    #[inline]
    fn deliver<const PAUSES: bool>(&mut self, at: Time, packet: SimPacket) -> bool {
        let flows = &mut self.applications.flows;
        if !self.processes.is_empty() {
            let clock = &mut self.exchange.clock;
            if self.processes.deliver(at, packet, flows, clock) {
                return false;
            }
        }
        match self.exchange.receive(at, packet, flows) {
            Some(id) => self.respond::<PAUSES>(at, id.index as usize),
            None => false,
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
