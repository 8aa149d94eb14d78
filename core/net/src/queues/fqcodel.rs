//! FQ-CoDel: connections are hashed to queues with a CoDel law each; queues of connections that send
//! little are served first.
//!
//! Source: RFC 8290: hash, new and old queues and their credits (sections 4.1 and 4.2), CoDel for each queue
//! (aqm/codel.rs), and on overload drops of half of the packets, at most `drop_batch`, from the head of the queue with
//! the most bytes (4.1). Defaults: section 5.2.
//!
//! Reading of the text: a queue's turn ends when its credits are used up, that is when they are not above zero ("has
//! already dequeued at least a quantum of bytes"). Sizes are IP sizes, so that a full packet has 1500 bytes, while
//! Linux includes the Ethernet header (quantum 1514). `memory` counts IP bytes, Linux the kernel's buffers.

use crate::aqm::{CodelParams, CodelState, Departure, FlowList, Flows, obey, place};
use crate::fifo::{QUEUE_FULL, QueueLimit};
use crate::{Backlog, Entry, Example, Outcomes, Packet, Queue, QueueEffects};
use narrows_units::{ParamError, ParamSpec, Params, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "fqcodel",
    summary: "Flow queueing with controlled delay: connections are hashed to queues, sparse ones are \
              served first, each queue has its own CoDel law",
    source: "RFC 8290",
    params: &ParamSpec::join::<10>(&[FqCodelParams::PARAMS, CodelParams::PARAMS]),
    shorthand: &["packets", "target"],
    example: Example::new(
        "{fqcodel: {packets: 100 packets}}",
        "Flow 1 has a separate queue and stays below 3 ms; flow 2 fills its queue up to the common limit, where half of the longest queue is dropped at once.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::ANY;

crate::registry::build!(dyn Queue<P>: |params, setup| {
    let mut queue = FqCodel {
        queues: Flows::new(),
        new: FlowList::new(),
        old: FlowList::new(),
        salt: setup.stream().bits(),
        set: FqCodelSettings::new(params),
    };
    queue.grow();
    queue
});

params! {
    /// Parameters besides those of the law.
    struct FqCodelParams {
        /// Maximum number of packets that may wait in all queues.
        packets: PacketCount(1.0..=4e9) = 10240, "RFC 8290, section 5.2.3";
        /// Maximum number of bytes that may wait in all queues.
        memory: Bytes(1.0..=1e15) = "32 MiB", "Linux tc-fq_codel(8): memory_limit, 32 MiB";
        /// Number of queues.
        flows: Count(1.0..=65536.0) = 1024, "RFC 8290, section 5.2.5";
        /// Bytes that a queue may send per turn.
        quantum: Bytes(64.0..=1e9) = 1500, "RFC 8290, section 5.2.4: 1514 with the Ethernet header";
        /// Maximum number of packets dropped at once without room.
        drop_batch: PacketCount(1.0..=1e6) = 64, "RFC 8290, section 4.1";
    }
}

struct FqCodelSettings {
    limit: QueueLimit,
    flows: u32,
    quantum: i64,
    drop_batch: u32,
    codel: CodelParams,
}

impl FqCodelSettings {
    fn new(params: &Params) -> Self {
        let codel = CodelParams::read(params);
        let params = FqCodelParams::read(params);
        FqCodelSettings {
            limit: QueueLimit::from_counts(params.memory.get(), params.packets),
            flows: params.flows as u32,
            quantum: params.quantum.get() as i64,
            drop_batch: params.drop_batch as u32,
            codel,
        }
    }
}

/// One of the queues.
#[derive(Clone, Copy, Debug, Default)]
struct FqCodelFlowState {
    codel: CodelState,
    credits: i64,
    /// True if it is in one of the lists.
    active: bool,
}

struct FqCodel<P> {
    queues: Flows<P, FqCodelFlowState>,
    new: FlowList,
    old: FlowList,
    salt: u64,
    set: FqCodelSettings,
}

impl<P: Packet> FqCodel<P> {
    fn grow(&mut self) {
        while self.queues.len() < self.set.flows {
            self.queues.add(FqCodelFlowState::default());
        }
    }

    fn fits(&self) -> bool {
        self.set.limit.holds(self.queues.backlog())
    }

    /// Drops a batch from the queue with the most bytes.
    fn relieve(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        let bytes = |backlog: Backlog| backlog.bytes;
        let new = self.new.largest(&self.queues, bytes);
        let old = self.old.largest(&self.queues, bytes);
        // Among equals, the queue whose turn comes first.
        let fattest = if old.map(|(maximum, _)| maximum) > new.map(|(maximum, _)| maximum) {
            old
        } else {
            new
        };
        let Some((_, queue)) = fattest else { return };
        let half = self.queues.backlog_of(queue).packets.div_ceil(2);
        for _ in 0..half.min(self.set.drop_batch) {
            if let Some((_, packet)) = self.queues.pop(queue) {
                outcomes.drop(now, packet, QUEUE_FULL);
            }
        }
    }

    /// Moves the first queue of the new (or old) ones behind all old ones.
    fn end_turn(&mut self, from_new: bool) {
        if from_new {
            if let Some(queue) = self.new.take(&self.queues) {
                self.old.append(&mut self.queues, queue);
            }
        } else {
            self.old.rotate(&mut self.queues);
        }
    }

    /// The next packet that the law of `queue` passes; `None` if the queue is empty.
    fn serve(&mut self, queue: u32, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        while let Some(entry) = self.queues.pop(queue) {
            let left = self.queues.backlog_of(queue);
            let state = &mut self.queues.state(queue).codel;
            let law = |departure: &Departure| state.leaving(&self.set.codel, now, departure);
            if let Some(packet) = obey(now, entry, left, outcomes, law) {
                return Some(packet);
            }
        }
        None
    }
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let queue = place(packet.connection(), self.salt, self.set.flows);
        self.queues.push(queue, now, packet);
        let quantum = self.set.quantum;
        let state = self.queues.state(queue);
        if !state.active {
            state.active = true;
            state.credits = quantum;
            self.new.append(&mut self.queues, queue);
        }
        while !self.fits() {
            self.relieve(now, outcomes);
        }
    }

    fn dequeue(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        loop {
            let (queue, is_new) = match (self.new.first(), self.old.first()) {
                (Some(queue), _) => (queue, true),
                (None, Some(queue)) => (queue, false),
                (None, None) => return None,
            };
            let quantum = self.set.quantum;
            let state = self.queues.state(queue);
            if state.credits <= 0 {
                state.credits += quantum;
                self.end_turn(is_new);
                continue;
            }
            if let Some(packet) = self.serve(queue, now, outcomes) {
                self.queues.state(queue).credits -= i64::from(packet.size());
                return Some(packet);
            }
            // An empty new queue stays for one more round among the old ones, so that a queue cannot return as new by
            // sending a packet whenever it is empty.
            if is_new {
                self.end_turn(true);
            } else {
                self.old.take(&self.queues);
                self.queues.state(queue).active = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.queues.visit(visit);
    }

    fn change(
        &mut self,
        now: Time,
        params: &Params,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        // Queues beyond a smaller number stay until they are empty.
        self.set = FqCodelSettings::new(params);
        self.grow();
        while !self.fits() {
            self.relieve(now, outcomes);
        }
        Ok(())
    }
}
