//! FQ-CoDel: connections are hashed to queues with a CoDel law each; queues of connections that send
//! little are served first.
//!
//! Source: RFC 8290: hash, new and old queues and their credits (sections 4.1 and 4.2), CoDel for
//! each queue (aqm/codel.rs), and on overload half of the packets, at most `drop_batch`, from the
//! head of the queue with most bytes (4.1). Defaults: section 5.2.
//!
//! Reading of the text: a queue's turn ends when its credits are used up, that is when they are not
//! above zero ("has already dequeued at least a quantum of bytes"). Sizes are IP sizes, so one full
//! packet is 1500 bytes, where Linux counts an Ethernet header more (quantum 1514). `memory` counts
//! IP bytes, Linux the kernel's buffers.

use crate::aqm::{
    CODEL_PARAMS, CodelSettings, CodelState, Departure, Flows, FlowList, AqmVerdict, can_be_marked, mark,
    place,
};
use crate::fifo::QUEUE_FULL;
use crate::{Backlog, Entry, Example, Outcomes, Packet, Queue, QueueEffects};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "fqcodel",
    summary: "Flow queueing with controlled delay: connections are hashed to queues, sparse ones are \
              served first, each queue has its own CoDel law",
    source: "RFC 8290",
    params: &[
        ParamSpec::new("packets", Kind::Packets, "Most packets that may wait in all queues.")
            .default("10240")
            .range(1.0, 4e9)
            .source("RFC 8290, section 5.2.3"),
        ParamSpec::new("memory", Kind::Bytes, "Most bytes that may wait in all queues.")
            .default("33554432")
            .range(1.0, 1e15)
            .source("Linux tc-fq_codel(8): memory_limit, 32 MiB"),
        ParamSpec::new("flows", Kind::Count, "Number of queues.")
            .default("1024")
            .range(1.0, 65536.0)
            .source("RFC 8290, section 5.2.5"),
        ParamSpec::new("quantum", Kind::Bytes, "Bytes that a queue may send in its turn.")
            .default("1500")
            .range(64.0, 1e9)
            .source("RFC 8290, section 5.2.4: 1514 with the Ethernet header"),
        ParamSpec::new(
            "drop_batch",
            Kind::Packets,
            "Most packets dropped at once when there is no room.",
        )
        .default("64")
        .range(1.0, 1e6)
        .source("RFC 8290, section 4.1"),
        CODEL_PARAMS[0],
        CODEL_PARAMS[1],
        CODEL_PARAMS[2],
        CODEL_PARAMS[3],
        CODEL_PARAMS[4],
    ],
    shorthand: &["packets", "target"],
    example: Example::new(
        "{fqcodel: {packets: 100 packets}}",
        "Flow 1 has a queue of its own and keeps below 3 ms; flow 2 fills its own up to the limit of all, where half \
         of the longest queue is dropped at once.",
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

#[derive(Clone, Copy, Debug)]
struct FqCodelSettings {
    packets: u32,
    memory: u64,
    flows: u32,
    quantum: i64,
    drop_batch: u32,
    codel: CodelSettings,
}

impl FqCodelSettings {
    fn new(params: &Params) -> Self {
        let number = |name| params.integer(name).unwrap_or_default();
        let small = |name| u32::try_from(number(name)).unwrap_or(u32::MAX);
        FqCodelSettings {
            packets: small("packets"),
            memory: number("memory"),
            flows: small("flows").max(1),
            quantum: number("quantum") as i64,
            drop_batch: small("drop_batch"),
            codel: CodelSettings::new(params),
        }
    }
}

/// One of the queues.
#[derive(Clone, Copy, Debug)]
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
            self.queues.add(FqCodelFlowState {
                codel: CodelState::new(),
                credits: 0,
                active: false,
            });
        }
    }

    fn fits(&self) -> bool {
        let backlog = self.queues.backlog();
        backlog.packets <= self.set.packets && backlog.bytes <= self.set.memory
    }

    /// Drops a batch from the queue with most bytes.
    fn relieve(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        let bytes = |backlog: Backlog| backlog.bytes;
        let new = self.new.largest(&self.queues, bytes);
        let old = self.old.largest(&self.queues, bytes);
        // Among equals the queue whose turn comes first.
        let fattest = if old.map(|(most, _)| most) > new.map(|(most, _)| most) {
            old
        } else {
            new
        };
        let Some((_, queue)) = fattest else { return };
        let half = self.queues.of(queue).packets.div_ceil(2);
        for _ in 0..half.min(self.set.drop_batch) {
            if let Some((_, packet)) = self.queues.pop(queue) {
                outcomes.drop(now, packet, QUEUE_FULL);
            }
        }
    }

    /// Puts the first queue of the new (or old) ones behind all old ones.
    fn end_turn(&mut self, from_new: bool) {
        if from_new {
            if let Some(queue) = self.new.take(&self.queues) {
                self.old.append(&mut self.queues, queue);
            }
        } else {
            self.old.rotate(&mut self.queues);
        }
    }

    /// The next packet that the law of `queue` lets go; `None` when the queue is empty.
    fn serve(&mut self, queue: u32, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        while let Some((at, mut packet)) = self.queues.pop(queue) {
            let departure = Departure {
                size: packet.size(),
                ect: can_be_marked(&packet),
                sojourn: now.since(at),
                left: self.queues.of(queue),
            };
            let law = &mut self.queues.state(queue).codel;
            match law.leaving(&self.set.codel, now, &departure) {
                AqmVerdict::Drop(reason) => {
                    outcomes.drop(now, packet, reason);
                    continue;
                }
                AqmVerdict::Mark => mark(&mut packet, outcomes),
                AqmVerdict::Pass => {}
            }
            return Some(packet);
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
            // An empty new queue stays for one more round among the old ones, so that a queue
            // cannot come back as new by sending a packet whenever it is empty.
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
