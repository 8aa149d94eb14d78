//! A fixed propagation delay. Order is kept and nothing is ever queued.

use crate::{Backlog, Change, Element, Entry, Outcomes, Packet, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Span, Time};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delay",
    summary: "Delivers each packet a fixed time after it arrived",
    source: "",
    params: &[ParamSpec::new("delay", Kind::Span, "One-way propagation delay.")
        .range(0.0, 3.6e12)
        .required()],
    shorthand: &["delay"],
};

/// Builds the element.
pub fn build<P: Packet + 'static>(
    params: &Params,
    _: &Setup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    Ok(Box::new(Delay::new(params.span("delay").unwrap_or_default())))
}

/// The delay element; also used by the network for access delays of single flows.
#[derive(Debug)]
pub struct Delay<P> {
    span: Span,
    flying: VecDeque<(Time, P)>,
    held: Backlog,
}

impl<P: Packet> Delay<P> {
    /// A delay of `delay`.
    pub fn new(delay: Span) -> Self {
        Delay { span: delay, flying: VecDeque::new(), held: Backlog::default() }
    }
}

impl<P: Packet> Element<P> for Delay<P> {
    #[inline]
    fn push(&mut self, now: Time, packet: P, _: &mut Outcomes<P>) {
        self.held.add(packet.size());
        let due = now + self.span;
        let due = self.flying.back().map_or(due, |(last, _)| due.max(*last));
        self.flying.push_back((due, packet));
    }

    #[inline]
    fn pop(&mut self, now: Time, _: &mut Outcomes<P>) -> Option<P> {
        if self.flying.front()?.0 > now {
            return None;
        }
        let (_, packet) = self.flying.pop_front()?;
        self.held.remove(packet.size());
        Some(packet)
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        self.flying.front().map_or(Time::FAR, |(due, _)| *due)
    }

    fn held(&self) -> Backlog {
        self.held
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.flying.iter().for_each(|(_, packet)| visit(packet));
    }

    fn propagation(&self) -> Span {
        self.span
    }

    fn change(&mut self, _: Time, change: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        // Packets under way keep their delay; when it shrinks, later ones wait for them.
        self.span = change.into_params()?.span("delay").unwrap_or_default();
        Ok(())
    }
}
