//! Queue + rate server = the element that makes packets wait.

use crate::{Backlog, Element, Outcomes, Packet, Queue, RateServer};
use narrows_units::Time;

/// A queue in front of a rate server.
///
/// A packet that finds the server idle and the queue empty passes through the queue (so that the
/// discipline sees it) straight into service. The packet in service is no longer in the queue.
pub struct Bottleneck<P> {
    queue: Box<dyn Queue<P>>,
    server: Box<dyn RateServer>,
    in_service: Option<P>,
    leaves: Time,
    /// Time of the last departure: what a late driver pushes afterwards with an earlier stamp
    /// cannot have met the queue as it was before.
    departed: Time,
}

impl<P: Packet> Bottleneck<P> {
    /// A bottleneck of `queue` and `server`.
    pub fn new(queue: Box<dyn Queue<P>>, server: Box<dyn RateServer>) -> Self {
        Bottleneck {
            queue,
            server,
            in_service: None,
            leaves: Time::FAR,
            departed: Time::ZERO,
        }
    }

    #[inline]
    fn start_service(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        self.in_service = self.queue.dequeue(now, outcomes);
        self.leaves = match &self.in_service {
            Some(packet) => self.server.serve(now, packet.size()),
            None => Time::FAR,
        };
    }
}

impl<P: Packet> Element<P> for Bottleneck<P> {
    #[inline]
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let now = now.max(self.departed);
        self.queue.enqueue(now, packet, outcomes);
        if self.in_service.is_none() {
            self.server.rest();
            self.start_service(now, outcomes);
        }
    }

    #[inline]
    fn pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        if self.leaves > now {
            return None;
        }
        let packet = self.in_service.take();
        self.departed = now;
        self.start_service(now, outcomes);
        packet
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        self.leaves
    }

    fn queued(&self) -> Backlog {
        self.queue.backlog()
    }

    fn held(&self) -> Backlog {
        let mut held = self.queue.backlog();
        if let Some(packet) = &self.in_service {
            held.add(packet.size());
        }
        held
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.in_service.iter().for_each(&mut *visit);
        self.queue.visit(visit);
    }

    fn server(&self) -> Option<&dyn RateServer> {
        Some(&*self.server)
    }
}
