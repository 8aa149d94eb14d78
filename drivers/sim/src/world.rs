//! Endpoints and paths under a virtual clock.

use crate::flow::{FlowState, SimPipe};
use crate::packet::SimPacket;
use crate::payloads::Payloads;
use crate::scheduling_noise::DelayedProcesses;
use narrows_cell::{Cell, CellError, RecordKind, recorded, state_row, trace_rows};
use narrows_net::{Copied, Network, Outcomes, PathDirection};
use narrows_record::{FrameRow, Log, PacketLog, QueueRow, StateRow, TraceRow, TransferRow};
use narrows_traffic::{Class, TrafficAction, TrafficEvent};
use narrows_transport::{Body, ConnectionTotals as FlowTotals, Endpoint};
use narrows_units::{Time, Wakeups};

/// Totals of a world so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    /// Data packets that reached their receiver.
    pub data_delivered: u64,
}

// Numbers of the parts in the wake-up tree.
/// The sampler, and the applications, real-time schemes and late processes that wait for a time.
const SAMPLER: usize = 0;
/// Sender and receiver of each pipe.
pub(crate) const ENDPOINTS: usize = 1;

/// A network with flows over it, at a moment of virtual time.
pub struct World {
    pub(crate) network: Network<SimPacket>,
    pub(crate) flows: Vec<FlowState>,
    /// Senders and receivers; places of ended ones are used again.
    pub(crate) pipes: Vec<SimPipe>,
    pub(crate) free_pipes: Vec<u32>,
    pub(crate) connections: Vec<crate::flow::SimConnection>,
    pub(crate) free_connections: Vec<u32>,
    /// Pipes and datagram flows begun so far.
    pub(crate) serials: u32,
    /// When each flow's application wants to act.
    pub(crate) applications: Wakeups,
    /// When the sender and the receiver of each flow of a real-time scheme want to act.
    pub(crate) media: Wakeups,
    /// Processes that run late, where hosts have scheduling noise.
    pub(crate) delayed_processes: Option<Box<DelayedProcesses>>,
    pub(crate) actions: Vec<TrafficAction>,
    /// By flow number: index into `flows`.
    pub(crate) index: Vec<u16>,
    pub(crate) log: Log,
    pub(crate) states: Vec<StateRow>,
    pub(crate) traces: Vec<TraceRow>,
    pub(crate) queues: Vec<QueueRow>,
    pub(crate) wakeups: Wakeups,
    pub(crate) contents: Payloads,
    outcomes: Outcomes<SimPacket>,
    /// Copies that have a share of what their originals carry, and no identity yet.
    copies: Vec<Copied<SimPacket>>,
    pub(crate) body: Body,
    pub(crate) empty: Body,
    sample: narrows_units::Span,
    next_sample: Time,
    duration: Time,
    pub(crate) totals: RunTotals,
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
            let routes = [route(flow.from, flow.to), route(flow.to, flow.from)];
            flows.push(FlowState::new(cell, flow, routes)?);
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
        let wakeups = Wakeups::new(ENDPOINTS + 2 * flows.len());
        let real_time = flows.iter().any(|flow| flow.media.is_some());
        let media = Wakeups::new(if real_time { 2 * flows.len() } else { 0 });
        let next_sample = Time::ZERO + cell.sample;
        let mut world = World {
            network,
            applications: Wakeups::new(flows.len()),
            media,
            delayed_processes: DelayedProcesses::of(cell),
            flows,
            pipes: Vec::new(),
            free_pipes: Vec::new(),
            connections: Vec::new(),
            free_connections: Vec::new(),
            serials: 0,
            actions: Vec::new(),
            index,
            log,
            states: Vec::new(),
            traces: Vec::new(),
            queues: Vec::new(),
            wakeups,
            contents: Payloads::default(),
            outcomes: Outcomes::new(),
            copies: Vec::new(),
            body: Body::default(),
            empty: Body::default(),
            sample: cell.sample,
            next_sample,
            duration: cell.duration,
            totals: RunTotals::default(),
        };
        for index in 0..world.flows.len() {
            let start = world.flows[index].start;
            if world.flows[index].media.is_some() {
                world.begin_media(index);
            } else if world.flows[index].class == Class::Datagrams {
                world.applications.set(index, start);
            } else {
                // Connections that are open from the start exist from the start: what they do begins
                // at the time of the flow.
                world.tell(start, index, TrafficEvent::Start);
            }
        }
        world.schedule_sampler();
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
                SAMPLER => {
                    if now >= self.next_sample {
                        self.take_samples(now);
                    }
                    self.run_applications(now);
                    self.run_media(now);
                    self.run_delayed_processes(now);
                    self.schedule_sampler();
                }
                endpoint => {
                    let pipe = (endpoint - ENDPOINTS) / 2;
                    let sends = (endpoint - ENDPOINTS).is_multiple_of(2);
                    let wanted = if sends {
                        if std::mem::take(&mut self.pipes[pipe].poked) {
                            now
                        } else {
                            self.sender_wakeup(pipe)
                        }
                    } else {
                        self.pipes[pipe].receiver.next_wakeup()
                    };
                    if wanted > now {
                        // It has put its plan off since: see `Wakeups::bring_forward`.
                        self.wakeups.set(endpoint, wanted);
                    } else {
                        self.run_end(now, pipe, sends);
                    }
                }
            }
        }
    }

    /// Closes the books: what is still in the network is in flight.
    pub fn finish(&mut self) {
        self.read_the_rest();
        self.end_media();
        let log = &mut self.log;
        self.network
            .visit_held(&mut |element, packet| log.hold(packet.uid, element));
        self.log.finish();
    }

    /// Asks the sampler, the applications and the real-time schemes anew when they want to act.
    pub(crate) fn schedule_sampler(&mut self) {
        let (application, _) = self.applications.earliest();
        let (media, _) = self.media.earliest();
        let next = self.next_sample.min(application).min(media);
        let next = match &self.delayed_processes {
            Some(late) => next.min(late.wakeups.earliest().0),
            None => next,
        };
        self.wakeups.set(SAMPLER, next);
    }

    /// All transfers that applications have begun, flow by flow.
    pub(crate) fn take_transfers(&mut self) -> impl Iterator<Item = TransferRow> {
        self.flows
            .iter_mut()
            .flat_map(|flow| std::mem::take(&mut flow.transfers))
    }

    /// The frames of video of all flows, flow by flow.
    pub fn frames(&self) -> Vec<FrameRow> {
        let media = self.flows.iter().filter_map(|flow| {
            let ends = flow.media.as_ref()?;
            Some(ends.frames(flow.number).0)
        });
        media.flatten().collect()
    }

    /// Counters of all data pipes of a flow, those that are gone included.
    pub(crate) fn counters(&self, flow: &FlowState) -> FlowTotals {
        let mut totals = flow.past;
        for &slot in flow.connections.values() {
            let connection = &self.connections[slot as usize];
            for index in [connection.up, connection.down] {
                if let Some(pipe) = self.pipes.get(index as usize).filter(|pipe| pipe.is_data) {
                    totals.add_sender(&pipe.sender);
                    totals.add_receiver(&pipe.receiver);
                }
            }
        }
        totals
    }

    /// Advances the network and hands over what has come out.
    #[inline]
    fn run_network(&mut self, now: Time) {
        self.network.advance(now, &mut self.outcomes);
        self.collect_results();
        while let Some((at, packet)) = self.network.pop() {
            if packet.corrupt {
                self.log.arrive_corrupt(packet.uid, at.ns(), 0);
                self.contents.free(&packet);
                continue;
            }
            self.log.arrive(packet.uid, at.ns(), 0);
            if self.delayed_processes.is_some() && self.deliver_to_socket(at, packet) {
                continue;
            }
            if let Some(whose) = self.on_packet(at, packet) {
                self.run_endpoint(at, whose);
            }
        }
    }

    /// Puts a packet into the network.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, direction: PathDirection, mut packet: SimPacket) {
        packet.uid = self.log.enter(
            packet.flow,
            recorded(direction),
            u32::from(packet.size),
            now.ns(),
        );
        self.network.push(now, packet, &mut self.outcomes);
        self.collect_results();
    }

    /// Writes down what elements have dropped, and gives copies an identity.
    #[inline]
    fn collect_results(&mut self) {
        if !self.outcomes.drops.is_empty() || !self.outcomes.copies.is_empty() {
            self.collect_outcomes();
        }
    }

    #[cold]
    fn collect_outcomes(&mut self) {
        // Before what was dropped is freed: an original may be lost at the instant at which it is copied.
        for copied in self.outcomes.copies.drain(..) {
            self.contents.share(&copied.packet);
            self.copies.push(copied);
        }
        for drop in self.outcomes.drops.drain(..) {
            self.log.drop(drop.packet.uid, drop.element, drop.reason.0);
            self.contents.free(&drop.packet);
        }
        self.collect_copies();
    }

    fn collect_copies(&mut self) {
        while let Some(copied) = self.copies.pop() {
            let mut packet = copied.packet;
            let flow = &self.flows[usize::from(self.index[usize::from(packet.flow)])];
            let direction = flow.direction_of(packet.route);
            let (direction, at) = (recorded(direction), copied.at.ns());
            packet.uid = self.log.copy(
                packet.uid,
                packet.flow,
                direction,
                u32::from(packet.size),
                at,
            );
            self.network
                .inject(copied.element, copied.at, packet, &mut self.outcomes);
            self.network.advance(copied.at, &mut self.outcomes);
            self.collect_results();
        }
    }

    fn take_samples(&mut self, now: Time) {
        for flow in &mut self.flows {
            if now < flow.start || now > flow.stop || flow.class == Class::Datagrams {
                continue;
            }
            if let Some(ends) = &mut flow.media {
                let (snapshot, number, time) = (ends.sample(), flow.number, now.ns());
                self.states.push(state_row(number, time, &snapshot));
                self.traces.extend(trace_rows(number, time, &snapshot));
                continue;
            }
            let (pipes, connections) = (&self.pipes, &self.connections);
            let data_pipes = flow.connections.values().filter_map(|&slot| {
                let connection = &connections[slot as usize];
                let index = match flow.class {
                    Class::Pull => connection.down,
                    Class::Push | Class::Datagrams => connection.up,
                };
                pipes.get(index as usize)
            });
            let mut snapshots = data_pipes.map(|pipe| pipe.sender.snapshot());
            let (number, time) = (flow.number, now.ns());
            if flow.opened == 1
                && let Some(snapshot) = snapshots.next()
            {
                self.states.push(state_row(number, time, &snapshot));
                self.traces.extend(trace_rows(number, time, &snapshot));
            } else {
                let snapshot = flow.past.together(snapshots);
                self.states.push(state_row(number, time, &snapshot));
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
    }
}
