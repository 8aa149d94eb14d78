//! Random drop: a full queue drops any of its packets, each with the same probability.
//!
//! Provenance: Mankin, Random Drop Congestion Control, SIGCOMM 1990; RFC 1254, section 2.1. Deviations: none.

use narrows_net::{
    Backlog, ElementSetup, Entry, Example, Outcomes, Packet, QUEUE_FULL, Queue, QueueDrops,
    QueueEffects, QueueLimit,
};
use narrows_units::{ParamError, Params, Stream, Time, params};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "randomdrop",
    summary: "First in, first out; a full queue drops any of its packets, chosen at random",
    source: "Mankin, SIGCOMM 1990; RFC 1254, section 2.1",
    params: RandomDropParams::PARAMS,
    shorthand: &["bytes", "packets"],
    example: Example::new(
        "{randomdrop: 60 kB}",
        "The queue fills to 60 kB = 48 ms, then a random packet makes room for each newcomer.",
    ),
};

/// Effects on packets, for metrics and verifier: it may drop packets that have waited.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::Any);

params! {
    /// Parameters; scenarios give at least one of them.
    struct RandomDropParams {
        /// Maximum number of waiting bytes (IP sizes).
        bytes: Option<Bytes>(1.0..=1e15);
        /// Maximum number of waiting packets.
        packets: Option<PacketCount>(1.0..=4e9);
    }
}

/// Builds the queue from parameters that were checked one by one.
///
/// # Errors
/// There is no limit.
pub fn build<P: Packet + 'static>(
    params: &Params,
    setup: &ElementSetup,
) -> Result<Box<dyn Queue<P>>, ParamError> {
    Ok(Box::new(RandomDrop {
        waiting: VecDeque::new(),
        backlog: Backlog::default(),
        limit: QueueLimit::new(params)?,
        stream: setup.stream(),
    }))
}

struct RandomDrop<P> {
    waiting: VecDeque<P>,
    backlog: Backlog,
    limit: QueueLimit,
    stream: Stream,
}

impl<P: Packet> Queue<P> for RandomDrop<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        self.backlog.add(packet.size());
        self.waiting.push_back(packet);
        // The newcomer may be the victim, too.
        while !self.limit.holds(self.backlog) {
            let victim = self.stream.below(self.waiting.len() as u64) as usize;
            if let Some(packet) = self.waiting.remove(victim) {
                self.backlog.remove(packet.size());
                outcomes.drop(now, packet, QUEUE_FULL);
            }
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        let packet = self.waiting.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.waiting.iter().for_each(visit);
    }

    fn change(&mut self, _: Time, params: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.limit = QueueLimit::new(params)?;
        Ok(())
    }
}
