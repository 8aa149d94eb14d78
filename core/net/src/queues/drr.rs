//! DRR: a queue for each connection, served in turn with a quantum of bytes.
//!
//! Source: Shreedhar and Varghese, Efficient Fair Queueing using Deficit Round Robin, ACM SIGCOMM 1995, section 3: the
//! part of its quantum that a queue cannot use, because its next packet is larger, is kept for its next turn; an empty
//! queue keeps nothing. A full buffer drops at the tail of the longest queue (McKenney 1990), whose length is counted
//! in bytes.
//!
//! Deviation: connections are distinguished exactly instead of by a hash, as if there were a queue for every
//! connection: collisions do not exist.

use crate::aqm::{Flows, FlowList, AqmTable};
use crate::fifo::{QueueLimit, OPTIONAL_LIMIT, QUEUE_FULL};
use crate::{Backlog, Entry, Example, Outcomes, Packet, Queue, QueueEffects};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "drr",
    summary: "Deficit round robin: one queue for each connection, equal shares of bytes",
    source: "Shreedhar and Varghese 1995",
    params: &[
        OPTIONAL_LIMIT[0],
        OPTIONAL_LIMIT[1],
        ParamSpec::new("quantum", Kind::Bytes, "Bytes that each turn adds to the allowance of a queue.")
            .default("1500")
            .range(64.0, 1e9)
            .source("Shreedhar and Varghese 1995: not below the maximum packet size, or turns pass unused"),
    ],
    shorthand: &["packets", "bytes"],
    example: Example::new(
        "{drr: {packets: 60 packets}}",
        "Each flow has its share of the bytes; drops come from the longest queue, that of flow 2.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::ANY;

crate::registry::build!(dyn Queue<P>: |params, _| Drr {
    flows: Flows::new(),
    active: FlowList::new(),
    idle: FlowList::new(),
    table: AqmTable::new(),
    limit: QueueLimit::optional(params),
    quantum: quantum(params),
});

fn quantum(params: &Params) -> u64 {
    params.integer("quantum").unwrap_or(1500)
}

#[derive(Clone, Copy, Debug, Default)]
struct DrrFlowState {
    connection: u32,
    deficit: u64,
    /// True if its turn has begun and its deficit has been increased.
    served: bool,
}

struct Drr<P> {
    flows: Flows<P, DrrFlowState>,
    /// Queues that take turns, and queues that no connection uses.
    active: FlowList,
    idle: FlowList,
    table: AqmTable,
    limit: QueueLimit,
    quantum: u64,
}

impl<P: Packet> Drr<P> {
    fn flow(&mut self, connection: u32) -> u32 {
        if let Some(flow) = self.table.get(connection) {
            return flow;
        }
        let state = DrrFlowState {
            connection,
            ..DrrFlowState::default()
        };
        let flow = if let Some(flow) = self.idle.take(&self.flows) {
            *self.flows.state(flow) = state;
            flow
        } else {
            self.flows.add(state)
        };
        self.table.insert(connection, flow);
        self.active.append(&mut self.flows, flow);
        flow
    }

    /// Removes the first queue, which is empty, from the turns.
    fn retire(&mut self) {
        if let Some(flow) = self.active.take(&self.flows) {
            self.table.remove(self.flows.state(flow).connection);
            self.idle.append(&mut self.flows, flow);
        }
    }
}

impl<P: Packet> Queue<P> for Drr<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let flow = self.flow(packet.connection());
        self.flows.push(flow, now, packet);
        while !self.limit.holds(self.flows.backlog()) {
            let longest = self.active.largest(&self.flows, |backlog| backlog.bytes);
            let Some((_, longest)) = longest else { break };
            let Some((_, last)) = self.flows.pop_youngest(longest) else {
                break;
            };
            outcomes.drop(now, last, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        while let Some(flow) = self.active.first() {
            let Some(size) = self.flows.next_size(flow).map(u64::from) else {
                // The longest queue lost all its packets: overflow drops from the tail.
                self.retire();
                continue;
            };
            let quantum = self.quantum;
            let state = self.flows.state(flow);
            if !state.served {
                state.served = true;
                state.deficit += quantum;
            }
            if size > state.deficit {
                state.served = false;
                self.active.rotate(&mut self.flows);
                continue;
            }
            state.deficit -= size;
            let (_, packet) = self.flows.pop(flow)?;
            if self.flows.backlog_of(flow).packets == 0 {
                self.retire();
            }
            return Some(packet);
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.flows.visit(visit);
    }

    fn change(&mut self, _: Time, params: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.limit = QueueLimit::optional(params);
        self.quantum = quantum(params);
        Ok(())
    }
}
