//! Changes that are decided while a run is under way: the timeline of a running network is replaced from a time on by
//! that of another network of the same cell, so that the run continues as if it had been planned that way.

use super::{DueChange, Network, TIMELINE};
use crate::Packet;
use narrows_units::{Span, Time};
use std::collections::VecDeque;
use std::fmt;

/// The timeline of a network from a time on.
pub struct PendingChanges {
    from: Time,
    due: VecDeque<DueChange>,
}

impl PendingChanges {
    /// The time from which it replaces another timeline.
    pub fn from(&self) -> Time {
        self.from
    }
}

impl fmt::Debug for PendingChanges {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} changes from {}", self.due.len(), self.from)
    }
}

impl<P: Packet + 'static> Network<P> {
    /// The changes of this network at or after `from`, for [`Network::continue_with`].
    pub fn into_changes(self, from: Time) -> PendingChanges {
        let due = self.timeline.into_iter().filter(|due| due.at >= from);
        PendingChanges {
            from,
            due: due.collect(),
        }
    }

    /// Replaces the timeline by `changes` from their time on, which this network must not have reached.
    pub fn continue_with(&mut self, changes: PendingChanges) {
        self.timeline.retain(|due| due.at < changes.from);
        self.timeline.extend(changes.due);
        let first = self.timeline.front().map_or(Time::FAR, |due| due.at);
        self.wakeups.set(TIMELINE, first);
    }

    /// The minimum time of a packet on a route, for the current state of the elements.
    pub fn route_propagation(&self, route: u16) -> Span {
        let links = self.routes.get(usize::from(route)).map(|it| &it.links);
        let links = links.into_iter().flatten();
        links.fold(Span::ZERO, |sum, &link| {
            sum + self.links[usize::from(link)].path.propagation()
        })
    }
}
