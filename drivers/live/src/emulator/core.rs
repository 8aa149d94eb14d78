//! The emulator without sockets and clocks: frames with stamps go in, frames with the times at
//! which they are due come out.
//!
//! All decisions are made here in model time, so a script can stand in for the machine's clock in
//! tests. The thread around it only reads rings, sends what is due and sleeps.

use super::frame::{self, Kind};
use super::pool::Pool;
use narrows_cell::{Cell, CellError, RecordKind, element_counters, element_names};
use narrows_net::{Backlog, Direction, Ecn, Network, Outcomes, Packet};
use narrows_record::{
    BinLog, Direction as RecordDirection, ElementCounters, Histogram, Log, PacketLog, QueueRow,
};
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// What travels through the elements in place of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    uid: u64,
    slot: u32,
    size: u32,
    flow: u16,
    route: u16,
    ecn: Ecn,
    marked: bool,
    corrupt: bool,
}

impl Packet for Handle {
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
        self.marked = true;
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

/// Frames that could not be treated as packets of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// No memory was left for them.
    pub no_memory: u64,
    /// They were no IPv4 packets.
    pub foreign: u64,
    /// Their sender should have been silent already: its flow had stopped.
    pub after_stop: u64,
}

/// The network of a run together with everything that is recorded about it.
pub struct Core {
    network: Network<Handle>,
    outcomes: Outcomes<Handle>,
    pool: Pool,
    /// What is recorded of the packets.
    pub log: Log,
    /// How late packets left.
    pub lateness: Histogram,
    /// How late the latest of each tenth of the run left, to see whether lateness grows.
    pub late_by_tenth: [Histogram; 10],
    /// Samples of the queues.
    pub queues: Vec<QueueSample>,
    /// What was not let in.
    pub refused: Refused,
    /// By flow number: which way its data travels, and until when.
    flows: Vec<Option<(Direction, Time)>>,
    /// Packets delivered per flow, to notice silent ones.
    pub delivered: Vec<u64>,
    outbox: [VecDeque<(Time, Handle)>; 2],
    entered: [Time; 2],
    sample: Span,
    next_sample: Time,
    end: Time,
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
    /// Builds the network of `cell`.
    ///
    /// # Errors
    /// What the network's description lacks.
    pub fn new(cell: &Cell, pool: Pool) -> Result<Self, CellError> {
        let network: Network<Handle> = cell.network()?;
        let elements = element_names(&network);
        let queues = queues_of(&network).count();
        let samples = cell.duration.ns() / cell.sample.ns() + 2;
        let flows = cell.flows.last().map_or(0, |flow| usize::from(flow.flow)) + 1;
        let mut known = vec![None; flows];
        for flow in &cell.flows {
            known[usize::from(flow.flow)] = Some((flow.direction, flow.stop));
        }
        Ok(Core {
            network,
            outcomes: Outcomes::new(),
            pool,
            log: match cell.record {
                RecordKind::Packets => Log::Packets(PacketLog::new(elements)),
                RecordKind::Bins => Log::Bins(BinLog::new(cell.bin.ns())),
            },
            lateness: Histogram::new(),
            late_by_tenth: std::array::from_fn(|_| Histogram::new()),
            queues: Vec::with_capacity(samples as usize * queues),
            refused: Refused::default(),
            flows: known,
            delivered: vec![0; flows],
            outbox: [VecDeque::with_capacity(4096), VecDeque::with_capacity(4096)],
            entered: [Time::ZERO; 2],
            sample: cell.sample,
            next_sample: Time::ZERO,
            end: cell.duration,
            replaced_rates: cell.replaced_rates(),
            tenth: (cell.duration.ns() / 10).max(1),
        })
    }

    /// A frame left a host at `stamp` and enters the path of `direction`.
    #[inline]
    pub fn arrive(&mut self, direction: Direction, stamp: Time, bytes: &[u8]) {
        let (size, mut flow, ecn) = match frame::classify(bytes) {
            Kind::Packet { size, flow, ecn } => (size, flow, ecn),
            Kind::WarmUp => return,
            Kind::Foreign => {
                self.refused.foreign += 1;
                return;
            }
        };
        match self.flows.get(usize::from(flow)) {
            // A stopped sender is silent, as in the simulator, whatever the kernel still repeats.
            Some(&Some((data, stop))) if data == direction && stamp >= stop => {
                self.refused.after_stop += 1;
                return;
            }
            Some(Some(_)) => {}
            _ => flow = 0,
        }
        // Two processors of one host can stamp in one order and enqueue in the other, a
        // microsecond apart; the wire keeps the order of the queue.
        let entered = &mut self.entered[direction as usize];
        let stamp = stamp.max(*entered);
        *entered = stamp;
        let Some(slot) = self.pool.store(bytes) else {
            self.refused.no_memory += 1;
            return;
        };
        if stamp >= self.next_sample {
            self.sample_until(stamp);
        }
        // Copies that come into being before this packet are numbered before it.
        self.run_network(stamp);
        let uid = self.log.enter(flow, recorded(direction), size, stamp.ns());
        let handle = Handle {
            uid,
            slot,
            size,
            flow,
            route: direction as u16,
            ecn: Ecn::from_bits(ecn),
            marked: false,
            corrupt: false,
        };
        self.network.push(stamp, handle, &mut self.outcomes);
        self.collect();
    }

    /// Lets everything happen that is due at or before `now` (but nothing after the end).
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

    /// Moves what has come out of the network to the outboxes, reports what was dropped in it, and
    /// gives copies an identity.
    #[inline]
    fn collect(&mut self) {
        while let Some((due, mut handle)) = self.network.pop() {
            if handle.marked {
                frame::mark(self.pool.room_mut(handle.slot));
                handle.marked = false;
            }
            self.outbox[usize::from(handle.route)].push_back((due, handle));
        }
        for drop in self.outcomes.drops.drain(..) {
            self.log.drop(drop.packet.uid, drop.element, drop.reason.0);
            self.pool.release(drop.packet.slot);
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

    /// When `advance` will next have something to do.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.network.next_wakeup()
    }

    /// Frames that are due in `direction`, oldest first.
    #[inline]
    pub fn due(&self, direction: Direction) -> impl Iterator<Item = &[u8]> {
        self.outbox[direction as usize].iter().map(|(_, handle)| {
            self.pool
                .frame(handle.slot, frame::ETHERNET + handle.size as usize)
        })
    }

    /// Whether frames are due in `direction`.
    #[inline]
    pub fn has_due(&self, direction: Direction) -> bool {
        !self.outbox[direction as usize].is_empty()
    }

    /// The `count` oldest due frames were handed over one after the other between `first` and
    /// `last`.
    #[inline]
    pub fn released(&mut self, direction: Direction, count: usize, first: Time, last: Time) {
        let each = last.since(first).ns() / (count as u64).max(1);
        for index in 0..count {
            let Some((due, handle)) = self.outbox[direction as usize].pop_front() else {
                return;
            };
            let at = first + Span::from_ns(each * index as u64);
            let late = at.since(due).ns();
            self.log.arrive(handle.uid, due.ns() + late, late as i64);
            self.lateness.add(late);
            let tenth = ((due.ns() / self.tenth) as usize).min(9);
            self.late_by_tenth[tenth].add(late);
            self.delivered[usize::from(handle.flow)] += 1;
            self.pool.release(handle.slot);
        }
    }

    /// Ends the run: what is still inside is in flight, held by the element it is in. The thread
    /// comes here only when everything that was due has been sent.
    pub fn finish(&mut self) {
        self.advance(self.end);
        let log = &mut self.log;
        self.network
            .visit_held(&mut |element, handle| log.hold(handle.uid, element));
        self.log.finish();
    }

    /// What each element counted.
    pub fn counters(&self) -> Vec<ElementCounters> {
        element_counters(&self.network, self.end, &self.replaced_rates)
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

/// Every element with a queue, and what waits in it.
fn queues_of(network: &Network<Handle>) -> impl Iterator<Item = (u16, Backlog)> {
    network
        .stages()
        .filter(|stage| stage.element.server().is_some())
        .map(|stage| (stage.index, stage.element.queued()))
}

/// The record's word for a direction.
pub(crate) const fn recorded(direction: Direction) -> RecordDirection {
    match direction {
        Direction::Forward => RecordDirection::Forward,
        Direction::Backward => RecordDirection::Backward,
    }
}
