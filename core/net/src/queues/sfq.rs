//! SFQ: a fixed number of queues, to which connections are hashed, served in turn.
//!
//! Source: McKenney, Stochastic Fairness Queueing, IEEE INFOCOM 1990: connections are hashed to queues, queues are
//! served round robin, a full buffer drops at the tail of the longest queue, and the hash may change from time to time.
//!
//! Deviations: turns are of `quantum` bytes rather than of one packet, so that small packets receive their share
//! (Deficit round robin, Shreedhar and Varghese 1995); a connection may use any of `ways` neighbouring queues and takes
//! one that no other connection uses, so that a few connections do not share a queue by chance (`ways: 1` is McKenney's
//! hash, where 11 connections in 1024 queues collide in one run of twenty). A connection shares a queue only if all its
//! `ways` are taken. When the hash changes, waiting packets move to their new queues, so that none overtakes another of
//! its connection.

use crate::aqm::{Flows, FlowList, mix, place};
use crate::fifo::{QueueLimit, QUEUE_FULL};
use crate::{Backlog, Entry, Example, Outcomes, Packet, Queue, QueueEffects};
use narrows_units::{Bytes, ParamError, Params, Span, Stream, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "sfq",
    summary: "Stochastic fairness queueing: connections are hashed to queues that are served in turn",
    source: "McKenney 1990",
    params: SfqParams::PARAMS,
    shorthand: &["packets", "bytes"],
    example: Example::new(
        "{sfq: {packets: 60 packets}}",
        "Each flow has its share, so that flow 1 hardly waits; drops come from the longest queue, that of flow 2.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::ANY;

crate::registry::build!(dyn Queue<P>: |params, setup| {
    let mut stream = setup.stream();
    let set = SfqSettings::new(params);
    let mut queue = Sfq {
        flows: Flows::new(),
        active: FlowList::new(),
        salt: stream.bits(),
        stream,
        next_perturbation: set.perturb.map(|period| Time::ZERO + period),
        set,
    };
    queue.grow();
    queue
});

params! {
    /// Parameters.
    struct SfqParams {
        /// Maximum number of bytes that may wait; absent: no limit.
        bytes: Option<Bytes>(1.0..=1e15);
        /// Maximum number of packets that may wait.
        packets: PacketCount(1.0..=4e9) = 127, "Linux tc-sfq(8): 127";
        /// Maximum number of packets that may wait in one queue.
        depth: PacketCount(1.0..=4e9) = 127, "Linux tc-sfq(8): 127";
        /// Number of queues.
        buckets: Count(1.0..=65536.0) = 1024, "Linux tc-sfq(8): 1024";
        /// Number of queues that a connection may choose from.
        ways: Count(1.0..=64.0) = 8, "as in CAKE (Hoeiland-Joergensen, Taht and Morton 2018); McKenney: 1";
        /// Bytes that a queue may send per turn.
        quantum: Bytes(64.0..=1e9) = 1500, "one packet, McKenney 1990; in bytes as Linux tc-sfq(8)";
        /// Time between changes of the hash; absent: never.
        perturb: Option<Span>(1e6..=1e15);
    }
}

struct SfqSettings {
    limit: QueueLimit,
    depth: u32,
    buckets: u32,
    ways: u32,
    quantum: i64,
    perturb: Option<Span>,
}

impl SfqSettings {
    fn new(params: &Params) -> Self {
        let params = SfqParams::read(params);
        let buckets = params.buckets as u32;
        SfqSettings {
            limit: QueueLimit::from_counts(params.bytes.map_or(u64::MAX, Bytes::get), params.packets),
            depth: params.depth as u32,
            buckets,
            ways: (params.ways as u32).min(buckets),
            quantum: params.quantum.get() as i64,
            perturb: params.perturb,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct SfqBucket {
    /// The connection that took it; others use it only if no queue is free.
    owner: u32,
    /// Bytes that it may still send in its turn.
    credit: i64,
    /// True if it is in the list of active queues.
    active: bool,
}

struct Sfq<P> {
    flows: Flows<P, SfqBucket>,
    active: FlowList,
    stream: Stream,
    salt: u64,
    next_perturbation: Option<Time>,
    set: SfqSettings,
}

impl<P: Packet> Sfq<P> {
    fn grow(&mut self) {
        while self.flows.len() < self.set.buckets {
            self.flows.add(SfqBucket::default());
        }
    }

    /// The queue of `connection`.
    fn bucket(&mut self, connection: u32) -> u32 {
        let first = place(connection, self.salt, self.set.buckets);
        let mut free = None;
        for way in 0..self.set.ways {
            let bucket = (first + way) % self.set.buckets;
            if self.flows.backlog_of(bucket).packets == 0 {
                free = free.or(Some(bucket));
            } else if self.flows.state(bucket).owner == connection {
                return bucket;
            }
        }
        if let Some(bucket) = free {
            self.flows.state(bucket).owner = connection;
        }
        free.unwrap_or(first)
    }

    fn store(&mut self, bucket: u32, at: Time, packet: P) {
        self.flows.push(bucket, at, packet);
        let quantum = self.set.quantum;
        let state = self.flows.state(bucket);
        if !state.active {
            state.active = true;
            state.credit = quantum;
            self.active.append(&mut self.flows, bucket);
        }
    }

    /// Changes the hash, if due.
    fn perturb(&mut self, now: Time) {
        let (Some(due), Some(period)) = (self.next_perturbation, self.set.perturb) else {
            return;
        };
        if now < due {
            return;
        }
        self.next_perturbation = Some(due + period * (now.since(due).ns() / period.ns() + 1));
        self.salt = mix(self.stream.bits());
        self.rehash();
    }

    /// Moves every packet to the new queue of its connection. Each old queue is emptied first in, first out, so that
    /// connections keep their order.
    fn rehash(&mut self) {
        let mut waiting = Vec::with_capacity(self.flows.backlog().packets as usize);
        while let Some(bucket) = self.active.take(&self.flows) {
            *self.flows.state(bucket) = SfqBucket::default();
            while let Some(entry) = self.flows.pop(bucket) {
                waiting.push(entry);
            }
        }
        for (at, packet) in waiting {
            let bucket = self.bucket(packet.connection());
            self.store(bucket, at, packet);
        }
    }
}

impl<P: Packet> Queue<P> for Sfq<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        self.perturb(now);
        let bucket = self.bucket(packet.connection());
        if self.flows.backlog_of(bucket).packets >= self.set.depth {
            return outcomes.drop(now, packet, QUEUE_FULL);
        }
        self.store(bucket, now, packet);
        while !self.set.limit.holds(self.flows.backlog()) {
            let longest = self
                .active
                .largest(&self.flows, |backlog| u64::from(backlog.packets));
            let Some((_, longest)) = longest else { break };
            let Some((_, last)) = self.flows.pop_youngest(longest) else {
                break;
            };
            outcomes.drop(now, last, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        while let Some(bucket) = self.active.first() {
            let empty = self.flows.backlog_of(bucket).packets == 0;
            let quantum = self.set.quantum;
            let state = self.flows.state(bucket);
            if empty {
                state.active = false;
                self.active.take(&self.flows);
            } else if state.credit <= 0 {
                state.credit += quantum;
                self.active.rotate(&mut self.flows);
            } else {
                let (_, packet) = self.flows.pop(bucket)?;
                self.flows.state(bucket).credit -= i64::from(packet.size());
                return Some(packet);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.flows.visit(visit);
    }

    fn change(
        &mut self,
        now: Time,
        params: &Params,
        _: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        let set = SfqSettings::new(params);
        if set.perturb != self.set.perturb {
            self.next_perturbation = set.perturb.map(|period| now + period);
        }
        let moved = (set.buckets, set.ways) != (self.set.buckets, self.set.ways);
        self.set = set;
        self.grow();
        if moved {
            self.rehash();
        }
        Ok(())
    }
}
