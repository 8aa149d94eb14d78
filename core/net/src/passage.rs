//! What most link elements are: whether and when a packet leaves is settled when it arrives.

use crate::{Backlog, Change, Element, Outcomes, Packet, Reason};
use narrows_units::{ParamError, Params, Span, Time};
use std::collections::VecDeque;

/// Packets with the times at which they leave, earliest first.
#[derive(Clone, Debug)]
pub(crate) struct Line<P> {
    packets: VecDeque<(Time, P)>,
    held: Backlog,
}

impl<P: Packet> Line<P> {
    pub(crate) fn new() -> Self {
        Line {
            packets: VecDeque::new(),
            held: Backlog::default(),
        }
    }

    /// Appends a packet that leaves at `due`, but not before the one ahead of it.
    #[inline]
    pub(crate) fn push(&mut self, due: Time, packet: P) {
        self.held.add(packet.size());
        let due = self.packets.back().map_or(due, |(last, _)| due.max(*last));
        self.packets.push_back((due, packet));
    }

    /// Puts a packet where its time belongs; it may overtake others. Of those that leave at the
    /// same time the one that came first is first.
    pub(crate) fn insert(&mut self, due: Time, packet: P) {
        self.held.add(packet.size());
        let place = self.packets.partition_point(|(other, _)| *other <= due);
        self.packets.insert(place, (due, packet));
    }

    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        if self.packets.front()?.0 > now {
            return None;
        }
        let (_, packet) = self.packets.pop_front()?;
        self.held.remove(packet.size());
        Some(packet)
    }

    #[inline]
    pub(crate) fn next_wakeup(&self) -> Time {
        self.packets.front().map_or(Time::FAR, |(due, _)| *due)
    }

    pub(crate) fn held(&self) -> Backlog {
        self.held
    }

    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.iter().for_each(|(_, packet)| visit(packet));
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves at this time, which is not before its arrival.
    Leaves(Time),
    /// It is dropped.
    Dropped(Reason),
}

/// Why an element that holds all that it may hold drops.
pub(crate) const LINE_FULL: Reason = Reason("line_full");

/// Decides about each packet when it arrives.
pub(crate) trait Law<P: Packet> {
    /// The fate of `packet`, which arrives at `now`; may change the packet and report copies.
    fn fate(&mut self, now: Time, packet: &mut P, outcomes: &mut Outcomes<P>) -> Fate;
    /// Whether a packet may leave before one that came earlier.
    fn reorders(&self) -> bool {
        false
    }
    /// See [`Element::propagation`].
    fn propagation(&self) -> Span {
        Span::ZERO
    }
    /// Whether packets inside wait, as in a queue, and do not just travel.
    fn queues(&self) -> bool {
        false
    }
    /// Most packets that may be inside; what comes beyond is dropped without being decided about.
    fn most(&self) -> u32 {
        u32::MAX
    }
    /// All parameters have these values from `now` on; what is inside stays as decided.
    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError>;
}

/// The element of a law.
#[derive(Clone, Debug)]
pub(crate) struct Passage<P, L> {
    law: L,
    line: Line<P>,
}

impl<P: Packet, L: Law<P>> Passage<P, L> {
    pub(crate) fn new(law: L) -> Self {
        Passage {
            law,
            line: Line::new(),
        }
    }
}

impl<P: Packet, L: Law<P>> Element<P> for Passage<P, L> {
    #[inline]
    fn push(&mut self, now: Time, mut packet: P, outcomes: &mut Outcomes<P>) {
        if self.line.held.packets >= self.law.most() {
            return outcomes.drop(now, packet, LINE_FULL);
        }
        match self.law.fate(now, &mut packet, outcomes) {
            Fate::Leaves(due) if self.law.reorders() => self.line.insert(due, packet),
            Fate::Leaves(due) => self.line.push(due, packet),
            Fate::Dropped(reason) => outcomes.drop(now, packet, reason),
        }
    }

    #[inline]
    fn pop(&mut self, now: Time, _: &mut Outcomes<P>) -> Option<P> {
        self.line.pop(now)
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        self.line.next_wakeup()
    }

    fn queued(&self) -> Backlog {
        if self.law.queues() {
            self.line.held()
        } else {
            Backlog::default()
        }
    }

    fn held(&self) -> Backlog {
        self.line.held()
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.line.visit(visit);
    }

    fn propagation(&self) -> Span {
        self.law.propagation()
    }

    fn change(&mut self, now: Time, change: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.law.change(now, &change.into_params()?)
    }
}
