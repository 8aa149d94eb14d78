//! The emulated path of a shell without sockets and clocks: frames with stamps go in, frames that
//! are due come out, and everything that happens to them is counted.

use super::connections::Connections;
use super::counts::{DirectionCounts, Drops};
use super::packet::{self, Head, Kind, Tuple};
use crate::emulator::{Pool, frame};
use narrows_cell::{element_counters, element_names};
use narrows_net::{Ecn, Network, Outcomes, Packet, PathDirection};
use narrows_record::{ElementCounters, Histogram, PacketLog, QueueRow};
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// What travels through the elements in place of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    uid: u64,
    entered: Time,
    connection: u32,
    slot: u32,
    size: u32,
    flow: u16,
    tos: u8,
    direction: PathDirection,
    kind: Kind,
    acknowledgement: bool,
    changed: bool,
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
        Ecn::from_bits(self.tos & 3)
    }
    #[inline]
    fn mark(&mut self) {
        self.tos |= 3;
        self.changed = true;
    }
    #[inline]
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.tos >> 2
    }
    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.tos = dscp << 2 | (self.tos & 3);
        self.changed = true;
    }
    #[inline]
    fn connection(&self) -> u32 {
        self.connection
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.acknowledgement
    }
    #[inline]
    fn route(&self) -> u16 {
        self.direction as u16
    }
}

/// What is kept for a record.
pub(super) struct Record {
    /// Every packet.
    pub(super) log: PacketLog,
    /// Samples of the queues.
    pub(super) queues: Vec<(u16, Time, u64, u32)>,
    /// Number of each connection.
    pub(super) connections: Connections,
    pub(super) sample: Span,
    pub(super) next_sample: Time,
}

/// The path with everything that is known about it.
pub(super) struct Path {
    network: Network<Handle>,
    outcomes: Outcomes<Handle>,
    pool: Pool,
    outbox: [VecDeque<(Time, Handle)>; 2],
    last_stamp: [Time; 2],
    next_uid: u64,
    /// By direction.
    pub(super) counts: [DirectionCounts; 2],
    /// What was dropped, by element and reason.
    pub(super) drops: Drops,
    /// How late packets left.
    pub(super) lateness: Histogram,
    /// Frames for which there was no memory.
    pub(super) no_memory: u64,
    /// Frames that are no IPv4 packets.
    pub(super) foreign: u64,
    /// Present if a record is wanted.
    pub(super) record: Option<Record>,
}

impl Path {
    pub(super) fn new(network: Network<Handle>, pool: Pool, record: Option<Record>) -> Self {
        Path {
            network,
            outcomes: Outcomes::new(),
            pool,
            outbox: [VecDeque::with_capacity(4096), VecDeque::with_capacity(4096)],
            last_stamp: [Time::ZERO; 2],
            next_uid: 1,
            counts: [DirectionCounts::new(), DirectionCounts::new()],
            drops: Drops::default(),
            lateness: Histogram::new(),
            no_memory: 0,
            foreign: 0,
            record,
        }
    }

    /// A frame left one end at `stamp` and enters the path of `direction`.
    #[inline]
    pub(super) fn arrive(&mut self, direction: PathDirection, stamp: Time, bytes: &[u8]) {
        let Some(head) = packet::read(bytes) else {
            self.foreign += 1;
            return;
        };
        // The wire keeps the order in which frames were queued, whatever the processors stamped.
        let last = &mut self.last_stamp[direction as usize];
        let stamp = stamp.max(*last);
        *last = stamp;
        let Some(slot) = self.pool.store(bytes) else {
            self.no_memory += 1;
            return;
        };
        self.sample_until(stamp);
        self.run_network(stamp);
        let handle = self.identify(direction, stamp, &head, slot);
        self.counts[direction as usize].enter(head.size);
        self.network.push(stamp, handle, &mut self.outcomes);
        self.collect();
    }

    #[inline]
    fn identify(
        &mut self,
        direction: PathDirection,
        stamp: Time,
        head: &Head,
        slot: u32,
    ) -> Handle {
        let (mut flow, mut uid) = (0, self.next_uid);
        if let Some(record) = &mut self.record {
            let tuple = match direction {
                PathDirection::Forward => head.tuple,
                PathDirection::Backward => head.tuple.reversed(),
            };
            flow = record.connections.note(tuple, direction, stamp, head.size);
            let direction = narrows_cell::recorded(direction);
            uid = record.log.enter(flow, direction, head.size, stamp.ns());
        } else {
            self.next_uid += 1;
        }
        Handle {
            uid,
            entered: stamp,
            connection: hash(&head.tuple),
            slot,
            size: head.size,
            flow,
            tos: head.tos,
            direction,
            kind: head.kind,
            acknowledgement: head.acknowledgement,
            changed: false,
            corrupt: false,
        }
    }

    /// Lets everything happen that is due at or before `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        self.sample_until(now);
        self.run_network(now);
    }

    #[inline]
    fn run_network(&mut self, now: Time) {
        while self.network.next_wakeup() <= now || !self.outcomes.copies.is_empty() {
            self.network.advance(now, &mut self.outcomes);
            self.collect();
        }
    }

    #[inline]
    fn collect(&mut self) {
        if !self.outcomes.copies.is_empty() {
            self.place_copies();
        }
        while let Some((due, mut handle)) = self.network.pop() {
            let room = self.pool.room_mut(handle.slot);
            if handle.changed {
                frame::set_tos(room, handle.tos);
                handle.changed = false;
            }
            if handle.corrupt {
                frame::damage(room);
            }
            let counts = &mut self.counts[handle.direction as usize];
            let stay = due.since(handle.entered);
            let queueing = stay.saturating_sub(self.network.propagation(handle.direction));
            counts.leave(handle.size, due, queueing);
            self.outbox[handle.direction as usize].push_back((due, handle));
        }
        for drop in self.outcomes.drops.drain(..) {
            let handle = drop.packet;
            self.counts[handle.direction as usize].drop();
            self.drops
                .add(drop.element, handle.direction, drop.reason.0, handle.size);
            if let Some(record) = &mut self.record {
                record.log.drop(handle.uid, drop.element, drop.reason.0);
            }
            self.pool.release(handle.slot);
        }
    }

    #[cold]
    fn place_copies(&mut self) {
        for copied in std::mem::take(&mut self.outcomes.copies) {
            let mut handle = copied.packet;
            let length = frame::ETHERNET + handle.size as usize;
            let Some(slot) = self.pool.copy(handle.slot, length) else {
                self.no_memory += 1;
                continue;
            };
            handle.slot = slot;
            handle.uid = if let Some(record) = &mut self.record {
                record.log.copy(
                    handle.uid,
                    handle.flow,
                    narrows_cell::recorded(handle.direction),
                    handle.size,
                    copied.at.ns(),
                )
            } else {
                self.next_uid += 1;
                self.next_uid - 1
            };
            self.network
                .inject(copied.element, copied.at, handle, &mut self.outcomes);
        }
    }

    #[inline]
    fn sample_until(&mut self, now: Time) {
        if self.record.as_ref().is_some_and(|r| now >= r.next_sample) {
            self.take_samples(now);
        }
    }

    #[cold]
    fn take_samples(&mut self, now: Time) {
        while let Some(at) = self.record.as_ref().map(|record| record.next_sample)
            && at <= now
        {
            self.run_network(at);
            if let Some(record) = &mut self.record {
                for stage in self.network.stages() {
                    if stage.element.server().is_some() {
                        let queued = stage.element.queued();
                        record
                            .queues
                            .push((stage.index, at, queued.bytes, queued.packets));
                    }
                }
                record.next_sample = at + record.sample;
            }
        }
    }

    /// When `advance` will next have something to do.
    #[inline]
    pub(super) fn next_wakeup(&self) -> Time {
        let sample = self.record.as_ref().map_or(Time::FAR, |r| r.next_sample);
        self.network.next_wakeup().min(sample)
    }

    /// What enters now is due no earlier than after this.
    #[inline]
    pub(super) fn propagation(&self) -> Span {
        self.network.least_propagation()
    }

    /// The oldest frame that is due in `direction`, with what it is.
    #[inline]
    pub(super) fn first_due(&self, direction: PathDirection) -> Option<(Kind, &[u8])> {
        let (_, handle) = self.outbox[direction as usize].front()?;
        Some((handle.kind, self.bytes(handle)))
    }

    /// Frames that are due in `direction`, oldest first, as long as `pass` lets them.
    #[inline]
    pub(super) fn due<'a>(
        &'a self,
        direction: PathDirection,
        pass: impl Fn(Kind, &[u8]) -> bool + 'a,
    ) -> impl Iterator<Item = &'a [u8]> {
        self.outbox[direction as usize]
            .iter()
            .map(|(_, handle)| (handle.kind, self.bytes(handle)))
            .take_while(move |(kind, bytes)| pass(*kind, bytes))
            .map(|(_, bytes)| bytes)
    }

    #[inline]
    fn bytes(&self, handle: &Handle) -> &[u8] {
        self.pool
            .frame(handle.slot, frame::ETHERNET + handle.size as usize)
    }

    /// Whether frames are due in `direction`.
    #[inline]
    pub(super) fn has_due(&self, direction: PathDirection) -> bool {
        !self.outbox[direction as usize].is_empty()
    }

    /// The `count` oldest due frames have left at `now`.
    #[inline]
    pub(super) fn released(&mut self, direction: PathDirection, count: usize, now: Time) {
        for _ in 0..count {
            let Some((due, handle)) = self.outbox[direction as usize].pop_front() else {
                return;
            };
            let late = now.since(due).ns();
            self.lateness.add(late);
            if let Some(record) = &mut self.record {
                if handle.corrupt {
                    record
                        .log
                        .arrive_corrupt(handle.uid, due.ns() + late, late as i64);
                } else {
                    record.log.arrive(handle.uid, due.ns() + late, late as i64);
                }
            }
            self.pool.release(handle.slot);
        }
    }

    /// What waits in the queues of `direction`.
    pub(super) fn backlog(&self, direction: PathDirection) -> u64 {
        self.network
            .stages()
            .filter(|stage| stage.direction == direction)
            .map(|stage| stage.element.queued().bytes)
            .sum()
    }

    /// Ends the record: what is still inside is in flight.
    pub(super) fn finish(&mut self, end: Time) {
        self.advance(end);
        if let Some(record) = &mut self.record {
            let log = &mut record.log;
            self.network
                .visit_held(&mut |element, handle| log.hold(handle.uid, element));
            log.finish();
        }
    }

    /// What each element counted until `end`; the timeline has replaced the rates of some.
    pub(super) fn elements(&self, end: Time, replaced: &[String]) -> Vec<ElementCounters> {
        element_counters(&self.network, end, replaced)
    }

    /// The samples of the queues as rows of the record.
    pub(super) fn queue_rows(&self) -> Vec<QueueRow> {
        let names = element_names(&self.network);
        let samples = self.record.iter().flat_map(|record| &record.queues);
        samples
            .map(|&(element, time, bytes, packets)| QueueRow {
                element: names[usize::from(element)].clone(),
                time_ns: time.ns(),
                backlog_bytes: bytes,
                backlog_packets: packets,
            })
            .collect()
    }
}

/// A number that packets of one connection and direction share (FNV-1a over addresses and ports).
#[inline]
fn hash(tuple: &Tuple) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    let mut mix = |value: u32| {
        for byte in value.to_be_bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    };
    mix(tuple.from.ip().to_bits());
    mix(tuple.to.ip().to_bits());
    mix(u32::from(tuple.from.port()) << 16 | u32::from(tuple.to.port()));
    mix(u32::from(tuple.protocol));
    hash
}
