//! Link elements that decide about each packet when it arrives.

use crate::{Backlog, Change, DropReason, Element, Outcomes, Packet};
use narrows_units::{ParamError, Params, Span, Time};
use std::collections::VecDeque;

/// Packets with the times at which they leave, earliest first.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine<P> {
    packets: VecDeque<(Time, P)>,
    backlog: Backlog,
}

impl<P: Packet> DelayLine<P> {
    pub(crate) fn new() -> Self {
        DelayLine {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// Appends a packet that leaves at `due`, but not before the one ahead of it.
    #[inline]
    pub(crate) fn push(&mut self, due: Time, packet: P) {
        self.backlog.add(packet.size());
        let due = self.packets.back().map_or(due, |(last, _)| due.max(*last));
        self.packets.push_back((due, packet));
    }

    /// Inserts a packet by its time; it may overtake others. Among packets that leave at the same
    /// time the one that arrived first is first.
    pub(crate) fn insert(&mut self, due: Time, packet: P) {
        self.backlog.add(packet.size());
        let place = self.packets.partition_point(|(other, _)| *other <= due);
        self.packets.insert(place, (due, packet));
    }

    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        if self.packets.front()?.0 > now {
            return None;
        }
        let (_, packet) = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    #[inline]
    pub(crate) fn next_wakeup(&self) -> Time {
        self.packets.front().map_or(Time::FAR, |(due, _)| *due)
    }

    pub(crate) fn held(&self) -> Backlog {
        self.backlog
    }

    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.iter().for_each(|(_, packet)| visit(packet));
    }
}

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDecision {
    /// It leaves at this time, which is not before its arrival.
    Forward(Time),
    /// It is dropped.
    Drop(DropReason),
}

/// Reason of drops by a full element.
pub(crate) const DELAY_LINE_FULL: DropReason = DropReason("line_full");

/// Decides about each packet when it arrives.
pub trait PacketRule<P: Packet>: Send {
    /// Decides about `packet`, which arrives at `now`; may change the packet and report copies.
    fn decide(&mut self, now: Time, packet: &mut P, outcomes: &mut Outcomes<P>) -> PacketDecision;
    /// True if a packet may leave before one that arrived earlier.
    fn reorders(&self) -> bool {
        false
    }
    /// See [`Element::propagation`].
    fn propagation(&self) -> Span {
        Span::ZERO
    }
    /// True if packets inside are queued rather than propagating.
    fn queues(&self) -> bool {
        false
    }
    /// Maximum number of packets inside; further packets are dropped without a decision.
    fn max_packets(&self) -> u32 {
        u32::MAX
    }
    /// All parameters have these values from `now`; earlier decisions stay.
    ///
    /// # Errors
    /// Values that contradict each other; nothing has changed then.
    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError>;
}

/// The element of a rule.
#[derive(Clone, Debug)]
pub struct PerPacket<P, L> {
    rule: L,
    delay_line: DelayLine<P>,
}

impl<P: Packet, L: PacketRule<P>> PerPacket<P, L> {
    /// The element that follows this rule.
    pub fn new(law: L) -> Self {
        PerPacket {
            rule: law,
            delay_line: DelayLine::new(),
        }
    }
}

impl<P: Packet, L: PacketRule<P>> Element<P> for PerPacket<P, L> {
    #[inline]
    fn push(&mut self, now: Time, mut packet: P, outcomes: &mut Outcomes<P>) {
        if self.delay_line.backlog.packets >= self.rule.max_packets() {
            return outcomes.drop(now, packet, DELAY_LINE_FULL);
        }
        match self.rule.decide(now, &mut packet, outcomes) {
            PacketDecision::Forward(due) if self.rule.reorders() => {
                self.delay_line.insert(due, packet);
            }
            PacketDecision::Forward(due) => self.delay_line.push(due, packet),
            PacketDecision::Drop(reason) => outcomes.drop(now, packet, reason),
        }
    }

    #[inline]
    fn pop(&mut self, now: Time, _: &mut Outcomes<P>) -> Option<P> {
        self.delay_line.pop(now)
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        self.delay_line.next_wakeup()
    }

    fn queued(&self) -> Backlog {
        if self.rule.queues() {
            self.delay_line.held()
        } else {
            Backlog::default()
        }
    }

    fn held(&self) -> Backlog {
        self.delay_line.held()
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.delay_line.visit(visit);
    }

    fn propagation(&self) -> Span {
        self.rule.propagation()
    }

    fn change(&mut self, now: Time, change: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.rule.change(now, &change.into_params()?)
    }
}
