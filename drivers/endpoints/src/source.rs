//! The application of a flow on the machine's clock.

use narrows_cell::RunError;
use narrows_cell::{Cell, Flow};
use narrows_cell::{OfferedLoad, TransferReport};
use narrows_traffic::{Application, Class, Offered, TrafficAction, TrafficEvent};
use narrows_units::Time;
use std::collections::VecDeque;

/// An application, its pending actions, and the transfers that it has begun.
pub(super) struct Source {
    application: Box<dyn Application>,
    actions: Vec<TrafficAction>,
    /// Actions to be carried out, with the times at which they were requested.
    due: VecDeque<(Time, TrafficAction)>,
    offered: Offered,
    transfers: Vec<TransferReport>,
    /// Determines which direction of a transfer counts.
    class: Class,
    /// Time after which the application is not called any more.
    stop: Time,
    latest: Time,
}

impl Source {
    /// The application of `flow`.
    pub(super) fn new(cell: &Cell, flow: &Flow) -> Result<Self, RunError> {
        Ok(Source {
            application: flow.application(cell.seed)?,
            actions: Vec::new(),
            due: VecDeque::new(),
            offered: Offered::default(),
            transfers: Vec::new(),
            class: flow.traffic.kind.class,
            stop: flow.stop.min(cell.duration),
            latest: Time::ZERO,
        })
    }

    /// The flow stops at another time.
    pub(super) fn stop_at(&mut self, stop: Time) {
        self.stop = stop;
    }

    /// True if the application is not called any more at `now`.
    pub(super) fn has_stopped(&self, now: Time) -> bool {
        now >= self.stop
    }

    /// Notifies the application of an event at `at` (or at the time of the last event, if that was
    /// later).
    pub(super) fn notify(&mut self, at: Time, event: TrafficEvent) {
        let at = at.max(self.latest);
        if at >= self.stop {
            return;
        }
        self.latest = at;
        self.application.on(at, event, &mut self.actions);
        for action in self.actions.drain(..) {
            self.offered.note(&action);
            if let TrafficAction::Transfer(transfer) = &action
                && !transfer.is_open()
            {
                self.transfers.push(TransferReport {
                    connection: transfer.connection,
                    transfer: transfer.transfer,
                    bytes: match self.class {
                        Class::Pull => transfer.down,
                        Class::Push | Class::Datagrams => transfer.up,
                    },
                    started_ns: at.ns(),
                    ended_ns: None,
                });
            }
            self.due.push_back((at, action));
        }
    }

    /// Lets the application act at the requested times that have been reached, with exactly those
    /// times: lateness does not shift later actions.
    pub(super) fn wake(&mut self, now: Time) {
        loop {
            let at = self.application.next_wakeup();
            if at > now || at >= self.stop {
                return;
            }
            self.notify(at, TrafficEvent::Wakeup);
        }
    }

    /// When [`Source::wake`] is needed next; never after the flow has stopped.
    pub(super) fn next_wakeup(&self) -> Time {
        let at = self.application.next_wakeup();
        if at < self.stop { at } else { Time::FAR }
    }

    /// The next action, and when it was requested.
    pub(super) fn next(&mut self) -> Option<(Time, TrafficAction)> {
        self.due.pop_front()
    }

    /// The answer to a transfer has arrived.
    pub(super) fn completed(&mut self, now: Time, connection: u32, transfer: u32) {
        let found = self
            .transfers
            .iter_mut()
            .rev()
            .find(|noted| noted.transfer == transfer);
        if let Some(noted) = found {
            noted.ended_ns = Some(now.ns());
        }
        self.notify(
            now,
            TrafficEvent::Completed {
                connection,
                transfer,
            },
        );
    }

    /// The load that it has offered, for the record.
    pub(super) fn report(self) -> OfferedLoad {
        let offered = self.offered;
        OfferedLoad {
            bytes: offered.bytes,
            transfers: offered.transfers,
            connections: offered.connections,
            datagrams: offered.datagrams,
            unlimited: offered.unlimited,
            facts: self
                .application
                .facts()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            noted: self.transfers,
        }
    }
}
