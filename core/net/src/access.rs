//! Per-flow round-trip times: a delay per flow in front of a shared link.

use crate::links::delay::{self, Delay};
use crate::{Backlog, Change, Direction, Element, FlowSetup, Outcomes, Packet};
use narrows_units::{ParamError, Span, Time};

/// Access links: a delay per flow in front of the shared path.
pub(crate) struct Access<P> {
    /// By flow number; flows without extra delay pass at once.
    lines: Vec<Option<Delay<P>>>,
    /// Earliest wake-up of all lines and its line.
    next: (Time, usize),
}

impl<P: Packet> Access<P> {
    /// The access links of a direction, if any flow has an extra round-trip time: half of it, with the odd nanosecond
    /// in the backward direction.
    pub(crate) fn from_flows(flows: &[FlowSetup], direction: Direction) -> Option<Self> {
        let half = |flow: &FlowSetup| match direction {
            Direction::Forward => Span::from_ns(flow.extra_rtt.ns() / 2),
            Direction::Backward => Span::from_ns(flow.extra_rtt.ns().div_ceil(2)),
        };
        let wanted = flows.iter().any(|flow| !flow.extra_rtt.is_zero());
        wanted.then(|| Access::new(flows.iter().map(|flow| (flow.flow, half(flow)))))
    }

    fn new(delays: impl Iterator<Item = (u16, Span)>) -> Self {
        let mut lines = vec![Some(delay::new(Span::ZERO))];
        for (flow, delay) in delays {
            let flow = usize::from(flow);
            if lines.len() <= flow {
                lines.resize_with(flow + 1, || None);
            }
            lines[flow] = Some(delay::new(delay));
        }
        Access {
            lines,
            next: (Time::FAR, 0),
        }
    }

    /// On ties the lower flow number goes first.
    fn find_next(&mut self) {
        let wakeups = self
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| line.as_ref().map(|line| (line.next_wakeup(), index)));
        self.next = wakeups.min().unwrap_or((Time::FAR, 0));
    }
}

impl<P: Packet> Element<P> for Access<P> {
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let flow = usize::from(packet.flow());
        // Packets of no flow, or of a flow without a separate line, take line 0 (no delay).
        let index = if self.lines.get(flow).is_some_and(Option::is_some) {
            flow
        } else {
            0
        };
        if let Some(line) = &mut self.lines[index] {
            line.push(now, packet, outcomes);
            self.next = self.next.min((line.next_wakeup(), index));
        }
    }

    fn pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        let packet = self.lines[self.next.1].as_mut()?.pop(now, outcomes);
        self.find_next();
        packet
    }

    fn next_wakeup(&self) -> Time {
        self.next.0
    }

    fn held(&self) -> Backlog {
        self.lines
            .iter()
            .flatten()
            .fold(Backlog::default(), |sum, line| sum + line.held())
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.lines
            .iter()
            .flatten()
            .for_each(|line| line.visit_held(visit));
    }

    fn change(&mut self, _: Time, _: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        Err(ParamError::Conflict(
            "the extra round-trip times of flows cannot change".to_owned(),
        ))
    }
}
