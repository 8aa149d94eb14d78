//! Many FIFO queues in one store, and lists of them: the basis of fair queueing.
//!
//! Packets are in one slab and linked by index, and so are the queues that wait for their turn.
//! Memory grows to the maximum number of packets that ever waited, and no further.

use crate::{Backlog, Packet};
use narrows_units::Time;

/// The null index.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node<P> {
    packet: P,
    at: Time,
    /// The next younger packet of the queue, or the next free node.
    next: u32,
    /// The next older packet of the queue.
    previous: u32,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
struct FlowQueue<S> {
    oldest: u32,
    youngest: u32,
    backlog: Backlog,
    /// The next queue in its list.
    next: u32,
    state: S,
}

/// Packets in many queues, each with a state `S`.
#[derive(Clone, Debug)]
pub(crate) struct Flows<P, S> {
    nodes: Vec<Node<P>>,
    free: u32,
    queues: Vec<FlowQueue<S>>,
    backlog: Backlog,
}

impl<P: Packet, S> Flows<P, S> {
    pub(crate) fn new() -> Self {
        Flows {
            nodes: Vec::new(),
            free: NONE,
            queues: Vec::new(),
            backlog: Backlog::default(),
        }
    }

    /// Adds an empty queue and returns its number; numbers count from zero.
    pub(crate) fn add(&mut self, state: S) -> u32 {
        let number = self.queues.len() as u32;
        self.queues.push(FlowQueue {
            oldest: NONE,
            youngest: NONE,
            backlog: Backlog::default(),
            next: NONE,
            state,
        });
        number
    }

    /// Number of queues.
    pub(crate) fn len(&self) -> u32 {
        self.queues.len() as u32
    }

    #[inline]
    pub(crate) fn state(&mut self, flow: u32) -> &mut S {
        &mut self.queues[flow as usize].state
    }

    /// Backlog of one queue.
    #[inline]
    pub(crate) fn backlog_of(&self, flow: u32) -> Backlog {
        self.queues[flow as usize].backlog
    }

    /// Backlog of all queues.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Size of the oldest packet of a queue.
    #[inline]
    pub(crate) fn next_size(&self, flow: u32) -> Option<u32> {
        let oldest = self.queues[flow as usize].oldest;
        self.nodes
            .get(oldest as usize)
            .map(|node| node.packet.size())
    }

    pub(crate) fn push(&mut self, flow: u32, now: Time, packet: P) {
        let owner = &mut self.queues[flow as usize];
        let node = Node {
            packet,
            at: now,
            next: NONE,
            previous: owner.youngest,
        };
        let place = self.free;
        let place = if place == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            self.free = self.nodes[place as usize].next;
            self.nodes[place as usize] = node;
            place
        };
        match self.nodes.get_mut(owner.youngest as usize) {
            Some(before) => before.next = place,
            None => owner.oldest = place,
        }
        owner.youngest = place;
        owner.backlog.add(packet.size());
        self.backlog.add(packet.size());
    }

    /// Takes the oldest packet of a queue, with the time of its arrival.
    pub(crate) fn pop(&mut self, flow: u32) -> Option<(Time, P)> {
        let owner = &mut self.queues[flow as usize];
        let place = owner.oldest;
        let node = *self.nodes.get(place as usize)?;
        owner.oldest = node.next;
        match self.nodes.get_mut(node.next as usize) {
            Some(after) => after.previous = NONE,
            None => owner.youngest = NONE,
        }
        self.release(flow, place);
        Some((node.at, node.packet))
    }

    /// Takes the youngest packet of a queue, with the time of its arrival.
    pub(crate) fn pop_youngest(&mut self, flow: u32) -> Option<(Time, P)> {
        let owner = &mut self.queues[flow as usize];
        let place = owner.youngest;
        let node = *self.nodes.get(place as usize)?;
        owner.youngest = node.previous;
        match self.nodes.get_mut(node.previous as usize) {
            Some(before) => before.next = NONE,
            None => owner.oldest = NONE,
        }
        self.release(flow, place);
        Some((node.at, node.packet))
    }

    fn release(&mut self, flow: u32, place: u32) {
        let node = &mut self.nodes[place as usize];
        let size = node.packet.size();
        node.next = self.free;
        self.free = place;
        self.queues[flow as usize].backlog.remove(size);
        self.backlog.remove(size);
    }

    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&P)) {
        for flow in &self.queues {
            let mut place = flow.oldest;
            while let Some(node) = self.nodes.get(place as usize) {
                visit(&node.packet);
                place = node.next;
            }
        }
    }
}

/// A list of queues that wait for their turn. A queue is in one list at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowList {
    first: u32,
    last: u32,
}

impl FlowList {
    pub(crate) const fn new() -> Self {
        FlowList {
            first: NONE,
            last: NONE,
        }
    }

    #[inline]
    pub(crate) fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Puts a queue at the end.
    pub(crate) fn append<P: Packet, S>(&mut self, flows: &mut Flows<P, S>, flow: u32) {
        flows.queues[flow as usize].next = NONE;
        match flows.queues.get_mut(self.last as usize) {
            Some(last) => last.next = flow,
            None => self.first = flow,
        }
        self.last = flow;
    }

    /// Removes the first queue.
    pub(crate) fn take<P: Packet, S>(&mut self, flows: &Flows<P, S>) -> Option<u32> {
        let first = self.first()?;
        self.first = flows.queues[first as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(first)
    }

    /// Puts the first queue at the end.
    pub(crate) fn rotate<P: Packet, S>(&mut self, flows: &mut Flows<P, S>) {
        if let Some(first) = self.take(flows) {
            self.append(flows, first);
        }
    }

    /// The queue of the list for which `measure` is largest; among equals, the one nearest to its
    /// turn.
    pub(crate) fn largest<P: Packet, S>(
        self,
        flows: &Flows<P, S>,
        measure: impl Fn(Backlog) -> u64,
    ) -> Option<(u64, u32)> {
        let mut best: Option<(u64, u32)> = None;
        let mut place = self.first;
        while let Some(flow) = flows.queues.get(place as usize) {
            let much = measure(flow.backlog);
            if best.is_none_or(|(maximum, _)| much > maximum) {
                best = Some((much, place));
            }
            place = flow.next;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestPacket;
    use narrows_units::Stream;
    use std::collections::VecDeque;

    #[test]
    fn queues_keep_their_order_at_both_ends_and_reuse_their_places() {
        let mut flows: Flows<TestPacket, ()> = Flows::new();
        let mut plain: Vec<VecDeque<u64>> = vec![VecDeque::new(); 5];
        for _ in 0..5 {
            flows.add(());
        }
        let mut stream = Stream::new(1, "flows");
        let (mut waiting, mut maximum) = (0usize, 0usize);
        for uid in 0..50_000 {
            let flow = stream.below(5) as usize;
            match stream.below(4) {
                0 | 1 if waiting < 200 => {
                    let packet = TestPacket {
                        uid,
                        size: 100,
                        ..TestPacket::default()
                    };
                    flows.push(flow as u32, Time::from_ns(uid), packet);
                    plain[flow].push_back(uid);
                    waiting += 1;
                }
                2 => {
                    let got = flows.pop_youngest(flow as u32);
                    let expected = plain[flow].pop_back();
                    waiting -= usize::from(expected.is_some());
                    assert_eq!(got.map(|(_, packet)| packet.uid), expected);
                }
                _ => {
                    let got = flows.pop(flow as u32);
                    let expected = plain[flow].pop_front();
                    waiting -= usize::from(expected.is_some());
                    assert_eq!(
                        got.map(|(at, packet)| (at.ns(), packet.uid)),
                        expected.map(|uid| (uid, uid))
                    );
                }
            }
            maximum = maximum.max(waiting);
            assert_eq!(flows.backlog().packets as usize, waiting);
            assert_eq!(
                flows.backlog_of(flow as u32).packets as usize,
                plain[flow].len()
            );
        }
        let mut seen = Vec::new();
        flows.visit(&mut |packet| seen.push(packet.uid));
        assert_eq!(seen, plain.concat_all());
        assert_eq!(
            flows.nodes.len(),
            maximum,
            "no more nodes than packets ever waited"
        );
    }

    trait ConcatAll {
        fn concat_all(&self) -> Vec<u64>;
    }

    impl ConcatAll for Vec<VecDeque<u64>> {
        fn concat_all(&self) -> Vec<u64> {
            self.iter().flatten().copied().collect()
        }
    }

    #[test]
    fn lists_turn() {
        let mut flows: Flows<TestPacket, ()> = Flows::new();
        let mut list = FlowList::new();
        for _ in 0..3 {
            let flow = flows.add(());
            list.append(&mut flows, flow);
        }
        list.rotate(&mut flows);
        let order: Vec<u32> = std::iter::from_fn(|| list.take(&flows)).collect();
        assert_eq!(order, [1, 2, 0]);
        assert_eq!(list.first(), None);
    }
}
