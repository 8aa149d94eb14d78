//! The emulator without sockets and clocks: its input are frames with stamps, its output frames with the times at which
//! they are due.
//!
//! All decisions are made here in model time, so that a script can replace the machine's clock in tests. The thread
//! around it only reads rings, sends due frames and sleeps.

use super::admission::{Admission, Admitted};
use super::core_config::{CoreConfig, FlowEntry, Forwarding, OwnHosts};
use super::frame;
use super::handle::{ACK, BACKWARD, CORRUPT, Handle, REMARKED};
use super::hooks::{Hooks, Transit};
use super::pool::Pool;
use super::steering::{Course, Steering};
use narrows_cell::{Cell, RecordKind, Role, SchemeRef, element_counters, element_names};
use narrows_net::{Backlog, Direction, Network, Outcomes};
use narrows_record::{CapacityRow, ElementCounters, Histogram, Log, PacketLog, QueueRow};
use narrows_units::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The network of a run together with its recorded data.
pub struct Core<H = ()> {
    /// Hooks called for each packet.
    pub hooks: H,
    network: Network<Handle>,
    outcomes: Outcomes<Handle>,
    pool: Pool,
    /// Log of the packets.
    pub log: Log,
    /// Lateness of packets in ns: from the time at which each was due until it was sent.
    pub lateness: Histogram,
    /// Lateness in ns by tenth of the run, to see whether it grows.
    pub late_by_tenth: [Histogram; 10],
    /// Samples of the queues.
    pub queues: Vec<QueueSample>,
    pub(crate) admission: Admission,
    /// Packets delivered per flow, to detect silent flows.
    pub delivered: Vec<u64>,
    /// Damaged packets among them, which the receiving kernel discards.
    pub damaged: Vec<u64>,
    /// By port: due packets, oldest first.
    outboxes: Vec<VecDeque<(Time, Handle)>>,
    /// Ports with due packets.
    pending: Vec<u16>,
    sample: Span,
    next_sample: Time,
    end: Time,
    unknown_rates: (Span, Vec<String>),
    /// Bottlenecks whose server the timeline replaces.
    replaced_rates: Vec<String>,
    tenth: u64,
}

/// A sample of one queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueSample {
    element: u16,
    time: Time,
    bytes: u64,
    packets: u32,
}

impl Core {
    /// A core for `cell`, whose network is `network`.
    pub fn new(cell: &Cell, network: Network<Handle>, pool: Pool) -> Self {
        Core::for_cell(cell, network, pool, ())
    }
}

impl<H: Hooks> Core<H> {
    /// A core for `cell`, whose network is `network`.
    pub fn for_cell(cell: &Cell, network: Network<Handle>, pool: Pool, hooks: H) -> Self {
        let maximum = cell.flows.last().map_or(0, |flow| usize::from(flow.flow)) + 1;
        let mut flows = vec![None; maximum];
        for flow in &cell.flows {
            flows[usize::from(flow.flow)] = Some(FlowEntry {
                from: cell.host_at(flow, Role::Sender),
                direction: flow.direction,
                stop: flow.stop,
                native: matches!(flow.scheme, SchemeRef::Native(..) | SchemeRef::Media(..)),
                own: cell.own_hosts(flow.flow).map(|ports| OwnHosts {
                    ports,
                    places: [flow.from, flow.to],
                    start: flow.start,
                }),
            });
        }
        let log = match cell.record {
            RecordKind::Packets => Log::Packets(PacketLog::new(element_names(&network))),
            RecordKind::Bins => Log::Bins(cell.bin_log()),
        };
        let config = CoreConfig {
            flows,
            log,
            sample: cell.sample,
            end: cell.duration,
            forwarding: Forwarding::ByAddress,
            unknown_rates: (cell.bin, cell.unknown_rates()),
            replaced_rates: cell.replaced_rates(),
        };
        Core::with(network, config, pool, hooks)
    }

    /// A core for any `network`.
    pub fn with(network: Network<Handle>, config: CoreConfig, pool: Pool, hooks: H) -> Self {
        let admission = Admission::new(&network, &config);
        let ports = admission.ports();
        let queues = queues_of(&network).count();
        let samples = match config.sample.ns() {
            0 => 0,
            // Memory for the samples of a run without end grows with it.
            distance => (config.end.ns() / distance + 2).min(1 << 20),
        };
        Core {
            admission,
            hooks,
            outcomes: Outcomes::new(),
            pool,
            log: config.log,
            lateness: Histogram::new(),
            late_by_tenth: std::array::from_fn(|_| Histogram::new()),
            queues: Vec::with_capacity(samples as usize * queues),
            delivered: vec![0; config.flows.len().max(1)],
            damaged: vec![0; config.flows.len().max(1)],
            outboxes: vec![VecDeque::with_capacity(1024); ports],
            pending: Vec::with_capacity(ports),
            sample: config.sample,
            next_sample: if config.sample.is_zero() {
                Time::FAR
            } else {
                Time::ZERO
            },
            end: config.end,
            unknown_rates: config.unknown_rates,
            replaced_rates: config.replaced_rates,
            tenth: (config.end.ns() / 10).max(1),
            network,
        }
    }

    /// For one of several cores of a run, which share the sequence of packet numbers: `last` is the last number
    /// assigned.
    pub fn number_with(&mut self, last: Arc<AtomicU64>) {
        if let Log::Packets(log) = &mut self.log {
            let single = std::mem::replace(log, PacketLog::new(Vec::new()));
            *log = single.sharing(last);
        }
    }

    /// A frame left the host at `port` at `stamp` and enters the network, if admitted.
    #[inline]
    pub fn arrive(&mut self, port: u16, stamp: Time, bytes: &[u8]) {
        let Some(packet) = self.admission.admit(port, stamp, bytes) else {
            return;
        };
        let Some(slot) = self.pool.store(bytes) else {
            self.admission.refused.no_memory += 1;
            return;
        };
        let Admitted {
            header,
            direction,
            at,
            ..
        } = packet;
        if at >= self.next_sample {
            self.sample_until(at);
        }
        // Copies made before this packet are numbered before it.
        self.run_network(at);
        let size = u32::from(header.size);
        let transit = Transit {
            slot,
            flow: packet.flow,
            route: packet.route,
            direction,
            size,
            at,
        };
        let flow = self.hooks.enter(&transit, bytes).unwrap_or(packet.flow);
        let key = self.log.enter(flow, direction, size, at.ns()).key;
        let backward = match direction {
            Direction::Forward => 0,
            Direction::Backward => BACKWARD,
        };
        let handle = Handle {
            key,
            slot,
            connection: header.connection,
            size: header.size,
            flow,
            route: packet.route,
            tos: header.tos,
            state: backward | if packet.is_ack { ACK } else { 0 },
        };
        self.network.push(at, handle, &mut self.outcomes);
        self.collect();
    }

    /// Processes all events due at or before `now` (but none after the end).
    #[inline]
    pub fn advance(&mut self, now: Time) {
        let now = now.min(self.end);
        if now >= self.next_sample {
            self.sample_until(now);
        }
        self.run_network(now);
    }

    #[inline]
    fn run_network(&mut self, now: Time) {
        while self.network.next_wakeup() <= now {
            self.network.advance(now, &mut self.outcomes);
            self.collect();
        }
    }

    /// Moves packets that have left the network to the outboxes, reports drops, and assigns identities to copies.
    #[inline]
    fn collect(&mut self) {
        loop {
            // Before their originals, whose frames are rewritten when they leave.
            if !self.outcomes.copies.is_empty() {
                self.settle_copies();
            }
            while let Some((due, mut handle)) = self.network.pop() {
                if handle.state & (REMARKED | CORRUPT) != 0 {
                    self.rewrite(&mut handle);
                }
                let transit = self.admission.transit(&handle, due);
                self.hooks.leave(&transit, &self.network);
                let route = self.admission.routes[usize::from(handle.route)];
                let port = self.admission.exit(handle.flow, route);
                let outbox = &mut self.outboxes[usize::from(port)];
                if outbox.is_empty() {
                    self.pending.push(port);
                }
                outbox.push_back((due, handle));
            }
            for drop in self.outcomes.drops.drain(..) {
                let transit = self.admission.transit(&drop.packet, drop.at);
                self.hooks.dropped(&transit, drop.element, drop.reason.0);
                let packet = drop.packet.entered();
                self.log.drop(packet, drop.element, drop.reason.0);
                self.pool.release(drop.packet.slot);
            }
            if self.outcomes.copies.is_empty() {
                return;
            }
        }
    }

    /// Applies the changes of a handle to its frame. A damaged packet keeps its flag for the record.
    #[cold]
    fn rewrite(&mut self, handle: &mut Handle) {
        let frame = self.pool.room_mut(handle.slot);
        if handle.state & REMARKED != 0 {
            frame::set_tos(frame, handle.tos);
            handle.state &= !REMARKED;
        }
        if handle.state & CORRUPT != 0 {
            frame::damage(frame);
        }
    }

    /// Gives copies separate frames and numbers and inserts them behind the elements that made them. The network has
    /// paused since.
    #[cold]
    fn settle_copies(&mut self) {
        // This may lead to further copies.
        let mut copies = std::mem::take(&mut self.outcomes.copies);
        for copied in copies.drain(..) {
            let mut copy = copied.packet;
            let length = frame::ETHERNET + usize::from(copy.size);
            copy.key = self.log.copy(copy.entered(), copied.at.ns()).key;
            let Some(slot) = self.pool.copy(copy.slot, length) else {
                // This makes the run invalid, but the record stays complete.
                self.admission.refused.no_memory += 1;
                self.log.drop(copy.entered(), copied.element, "no_memory");
                continue;
            };
            self.hooks.copy(copy.slot, slot);
            copy.slot = slot;
            let (element, at) = (copied.element, copied.at);
            self.network.inject(element, at, copy, &mut self.outcomes);
        }
        if self.outcomes.copies.is_empty() {
            self.outcomes.copies = copies;
        }
    }

    /// Samples all queues at the instants that have been reached, in model time.
    #[cold]
    fn sample_until(&mut self, now: Time) {
        while self.next_sample <= now && self.next_sample <= self.end {
            let at = self.next_sample;
            self.run_network(at);
            for (element, queued) in queues_of(&self.network) {
                let (bytes, packets) = (queued.bytes, queued.packets);
                self.queues.push(QueueSample {
                    element,
                    time: at,
                    bytes,
                    packets,
                });
            }
            self.next_sample = at + self.sample;
        }
        if self.next_sample > self.end {
            self.next_sample = Time::FAR;
        }
    }

    /// When `advance` has to be called next.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.network.next_wakeup()
    }

    /// A packet that enters now is due no earlier than after this.
    #[inline]
    pub fn propagation(&self) -> Span {
        self.network.least_propagation()
    }

    /// A port with due frames, if there is one: the `skip`th of them.
    #[inline]
    pub fn pending(&self, skip: usize) -> Option<u16> {
        self.pending.get(skip).copied()
    }

    /// Frames that are due at `port`, oldest first, up to the first that the hooks do not admit.
    #[inline]
    pub fn due(&self, port: u16) -> impl Iterator<Item = &[u8]> {
        let outbox = self.outboxes[usize::from(port)].iter();
        outbox
            .map(|(_, handle)| self.bytes(handle))
            .take_while(move |frame| self.hooks.admits(port, frame))
    }

    #[inline]
    fn bytes(&self, handle: &Handle) -> &[u8] {
        self.pool
            .frame(handle.slot, frame::ETHERNET + usize::from(handle.size))
    }

    /// Passes the oldest frame that is due at `port` to the hooks if they do not admit it, and returns whether that was
    /// the case. The frame leaves the core as if it had been sent.
    #[inline]
    pub fn hold_back(&mut self, port: u16, now: impl FnOnce() -> Time) -> bool {
        let Some((_, handle)) = self.outboxes[usize::from(port)].front() else {
            return false;
        };
        let frame = self
            .pool
            .frame(handle.slot, frame::ETHERNET + usize::from(handle.size));
        if self.hooks.admits(port, frame) {
            return false;
        }
        self.hooks.hold(port, frame);
        let now = now();
        self.released(port, 1, now, now);
        true
    }

    /// Notifies the hooks of the time, and carries out their decisions.
    #[inline]
    pub(crate) fn observe(&mut self, now: Time) {
        self.hooks.observe(now, &self.network);
        if let Some(steering) = self.hooks.steering() {
            self.steer(now, steering);
        }
    }

    /// Takes another course, if model time has not passed its beginning.
    #[cold]
    fn steer(&mut self, now: Time, steering: Steering) {
        let in_time = now < steering.course.from();
        match steering.course {
            _ if !in_time => {}
            Course::Timeline {
                changes,
                replaced_rates,
                unknown_rates,
            } => {
                self.network.continue_with(changes);
                self.replaced_rates = replaced_rates;
                self.unknown_rates.1 = unknown_rates;
            }
            Course::Stop { flow, at } => self.admission.stop(flow, at),
        }
        steering.settled.settle(in_time);
    }

    /// Ends the run at `end`, unless it ends earlier.
    pub(crate) fn end_at(&mut self, end: Time) {
        self.end = self.end.min(end);
    }

    /// True if frames are due at `port`.
    #[inline]
    pub fn has_due(&self, port: u16) -> bool {
        !self.outboxes[usize::from(port)].is_empty()
    }

    /// The `count` oldest due frames of `port` were handed over one after the other between
    /// `first` and `last`.
    #[inline]
    pub fn released(&mut self, port: u16, count: usize, first: Time, last: Time) {
        let each = last.since(first).ns() / (count as u64).max(1);
        let outbox = &mut self.outboxes[usize::from(port)];
        for (index, (due, handle)) in outbox.drain(..count.min(outbox.len())).enumerate() {
            let at = first + Span::from_ns(each * index as u64);
            let late = at.since(due).ns();
            if handle.state & CORRUPT == 0 {
                self.log
                    .arrive(handle.entered(), due.ns() + late, late as i64);
            } else {
                self.damaged[usize::from(handle.flow)] += 1;
                self.log
                    .arrive_corrupt(handle.entered(), due.ns() + late, late as i64);
            }
            self.lateness.add(late);
            let tenth = ((due.ns() / self.tenth) as usize).min(9);
            self.late_by_tenth[tenth].add(late);
            self.delivered[usize::from(handle.flow)] += 1;
            self.pool.release(handle.slot);
        }
        if outbox.is_empty() {
            self.pending.retain(|&other| other != port);
        }
    }

    /// Ends the run: packets still inside are in flight, held by their elements. The thread calls this only after all
    /// due frames have been sent.
    pub fn finish(&mut self) {
        self.advance(self.end);
        let log = &mut self.log;
        self.network
            .visit_held(&mut |element, handle| log.hold(handle.entered(), element));
        self.log.finish();
    }

    /// Counters of the elements.
    pub fn counters(&self) -> Vec<ElementCounters> {
        element_counters(&self.network, self.end, &self.replaced_rates)
    }

    /// By element: whether it can contain packets of this core.
    pub(crate) fn kept(&self) -> Vec<bool> {
        let stages = self.network.stages();
        stages
            .map(|stage| self.network.keeps(stage.link_index))
            .collect()
    }

    /// Capacity of servers over time, if it does not follow from the cell alone.
    pub fn capacity_rows(&self) -> Vec<CapacityRow> {
        let (bin, names) = &self.unknown_rates;
        narrows_cell::capacity_rows(&self.network, self.end, *bin, names)
    }

    /// The samples of the queues as rows of the record.
    pub fn queue_rows(&self) -> impl Iterator<Item = QueueRow> {
        let names = element_names(&self.network);
        self.queues.iter().map(move |sample| QueueRow {
            element: names[usize::from(sample.element)].clone(),
            time_ns: sample.time.ns(),
            backlog_bytes: sample.bytes,
            backlog_packets: sample.packets,
        })
    }
}

/// Every element with a queue, and its backlog.
fn queues_of(network: &Network<Handle>) -> impl Iterator<Item = (u16, Backlog)> {
    network
        .stages()
        .filter(|stage| stage.element.server().is_some() && network.keeps(stage.link_index))
        .map(|stage| (stage.index, stage.element.queued()))
}
