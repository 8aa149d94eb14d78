//! A FIFO with a limit that applies the verdicts of a law.

use super::{AqmLaw, AqmVerdict, ArrivingPacket, Departure, Stamped, can_be_marked, mark, obey};
use crate::fifo::{QUEUE_FULL, QueueLimit};
use crate::{Backlog, Outcomes, Packet, Queue};
use narrows_units::{ParamError, Params, Time};

/// One queue under one law.
pub(crate) struct LawQueue<P, L> {
    store: Stamped<P>,
    limit: QueueLimit,
    law: L,
}

impl<P: Packet, L: AqmLaw> LawQueue<P, L> {
    pub(crate) fn new(limit: QueueLimit, law: L) -> Self {
        LawQueue {
            store: Stamped::new(),
            limit,
            law,
        }
    }
}

impl<P: Packet, L: AqmLaw> Queue<P> for LawQueue<P, L> {
    fn enqueue(&mut self, now: Time, mut packet: P, outcomes: &mut Outcomes<P>) {
        let backlog = self.store.backlog();
        let arrival = ArrivingPacket {
            size: packet.size(),
            ect: can_be_marked(&packet),
            backlog,
            room: self.limit.admits(backlog, packet.size()),
        };
        match self.law.arriving(now, &arrival) {
            AqmVerdict::Drop(reason) => return outcomes.drop(now, packet, reason),
            _ if !arrival.room => return outcomes.drop(now, packet, QUEUE_FULL),
            AqmVerdict::Mark => mark(&mut packet, outcomes),
            AqmVerdict::Pass => {}
        }
        self.store.push(now, packet);
    }

    fn dequeue(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        while let Some(entry) = self.store.pop() {
            let left = self.store.backlog();
            let law = |departure: &Departure| self.law.leaving(now, departure);
            if let Some(packet) = obey(now, entry, left, outcomes, law) {
                return Some(packet);
            }
        }
        self.law.drained(now);
        None
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.store.visit(visit);
    }

    fn change(
        &mut self,
        now: Time,
        params: &Params,
        _: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        let limit = QueueLimit::optional(params);
        self.law.change(now, params)?;
        self.limit = limit;
        Ok(())
    }
}
