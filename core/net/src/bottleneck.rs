//! The bottleneck: a queue in front of a rate server.

use crate::{Backlog, Change, Element, Outcomes, Packet, Queue, RateServer};
use narrows_units::{ParamError, ParamSpec, Params, Time, params};
use std::collections::VecDeque;

/// Parameters of a bottleneck besides its rate and its queue.
pub const PARAMS: &[ParamSpec] = Framing::PARAMS;

params! {
    /// Bytes of a packet on the wire.
    pub(crate) struct Framing {
        /// Link-layer bytes added to each packet.
        overhead: Bytes(0.0..=1000.0) = 0,
            "rates are IP bits by default; Ethernet with preamble and gap: 38 bytes";
        /// Whether packets are split into ATM cells, which carry 48 bytes in 53.
        atm: Flag = false, "ITU-T I.363.5 (AAL5); add its 8-byte trailer to the overhead";
    }
}

impl Framing {
    #[inline]
    pub(crate) fn wire_bytes(&self, size: u32) -> u32 {
        let bytes = size + self.overhead.get() as u32;
        if self.atm {
            bytes.div_ceil(48) * 53
        } else {
            bytes
        }
    }
}

/// A queue in front of a rate server.
///
/// A packet that finds the server idle and the queue empty passes through the queue (so that the
/// discipline sees it) straight into service. The packet in service is no longer in the queue.
///
/// In front of a slotted server (traces of opportunities, Poisson) packets stay in the queue until
/// the slot in which their first byte leaves: they count for its limits, and a discipline based on
/// sojourn times sees the entire wait.
///
/// An aggregating server (frames of one transmission) takes as many packets as fit when it begins.
/// A packet that turns out not to fit has already left the queue and goes first in the next group.
pub struct Bottleneck<P> {
    queue: Box<dyn Queue<P>>,
    server: Box<dyn RateServer>,
    framing: Framing,
    /// Value of [`RateServer::is_slotted`] of the server.
    slotted: bool,
    /// Value of [`RateServer::is_aggregating`] of the server.
    aggregating: bool,
    in_service: Option<P>,
    /// The other packets that leave with it.
    aggregate: VecDeque<P>,
    /// The packet that did not fit into the group.
    did_not_fit: Option<P>,
    /// When the packet in service began, or the rate last changed since.
    service_began: Time,
    /// Bytes on the wire that remained of it then.
    wire_bytes_left: u32,
    /// When it leaves; while none is in service, the next slot of the server.
    wakeup: Time,
    /// Time of the last departure or slot: a packet that a late driver pushes afterwards with an
    /// earlier stamp cannot meet the earlier state of the queue.
    last_departure: Time,
}

impl<P: Packet> Bottleneck<P> {
    /// A bottleneck of `queue` and `server`, with [`PARAMS`].
    pub fn new(queue: Box<dyn Queue<P>>, server: Box<dyn RateServer>, params: &Params) -> Self {
        Bottleneck {
            queue,
            slotted: server.is_slotted(),
            aggregating: server.is_aggregating(),
            server,
            framing: Framing::read(params),
            in_service: None,
            aggregate: VecDeque::new(),
            did_not_fit: None,
            service_began: Time::ZERO,
            wire_bytes_left: 0,
            wakeup: Time::FAR,
            last_departure: Time::ZERO,
        }
    }

    /// The server is free at `now`: serves the next packet, immediately or in the server's next
    /// slot.
    #[inline]
    fn start_service(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        if self.slotted {
            self.wakeup = if self.waits() {
                self.server.next_slot(now)
            } else {
                Time::FAR
            };
            if self.wakeup > now {
                return;
            }
        }
        self.serve_next(now, outcomes);
    }

    #[inline]
    fn serve_next(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        self.in_service = match self.did_not_fit.take() {
            None => self.queue.dequeue(now, outcomes),
            spare => spare,
        };
        self.wakeup = match &self.in_service {
            Some(packet) => {
                self.service_began = now;
                self.wire_bytes_left = self.framing.wire_bytes(packet.size());
                self.server.serve(now, self.wire_bytes_left)
            }
            None => Time::FAR,
        };
        if self.aggregating && self.in_service.is_some() {
            self.fill_aggregate(now, outcomes);
        }
    }

    /// Dequeues the packets that are served with the one in service.
    fn fill_aggregate(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        while self.server.has_room()
            && let Some(packet) = self.queue.dequeue(now, outcomes)
        {
            let Some(end) = self.server.join(self.framing.wire_bytes(packet.size())) else {
                self.did_not_fit = Some(packet);
                return;
            };
            self.aggregate.push_back(packet);
            self.wakeup = end;
        }
    }

    /// Packets that have left the queue but not the element.
    fn out_of_queue(&self) -> impl Iterator<Item = &P> {
        self.in_service
            .iter()
            .chain(&self.aggregate)
            .chain(&self.did_not_fit)
    }

    /// True if a packet waits for service.
    fn waits(&self) -> bool {
        self.did_not_fit.is_some() || self.queue.backlog().packets > 0
    }
}

impl<P: Packet> Element<P> for Bottleneck<P> {
    #[inline]
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let now = now.max(self.last_departure);
        self.queue.enqueue(now, packet, outcomes);
        // A server that waits for its next slot is not idle.
        if self.in_service.is_none() && self.wakeup == Time::FAR {
            self.server.rest();
            self.start_service(now, outcomes);
        }
    }

    #[inline]
    fn pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        if self.wakeup > now {
            return None;
        }
        self.last_departure = now;
        if self.in_service.is_none() {
            self.serve_next(now, outcomes);
            if self.wakeup > now {
                return None;
            }
        }
        let packet = self.in_service.take();
        self.in_service = self.aggregate.pop_front();
        if self.in_service.is_none() {
            self.start_service(now, outcomes);
        }
        packet
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        self.wakeup
    }

    fn queued(&self) -> Backlog {
        self.queue.backlog()
    }

    fn held(&self) -> Backlog {
        let mut held = self.queue.backlog();
        for packet in self.out_of_queue() {
            held.add(packet.size());
        }
        held
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.out_of_queue().for_each(&mut *visit);
        self.queue.visit(visit);
    }

    fn server(&self) -> Option<&dyn RateServer> {
        Some(&*self.server)
    }

    fn change(
        &mut self,
        now: Time,
        change: Change,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        match change {
            Change::Queue(params) => return self.queue.change(now, &params, outcomes),
            Change::Params(params) => self.framing = Framing::read(&params),
            Change::Rate(server) => {
                let old = std::mem::replace(&mut self.server, server);
                self.slotted = self.server.is_slotted();
                self.aggregating = self.server.is_aggregating();
                if self.in_service.is_some() && old.is_aggregating() {
                    // The transmission in progress ends as it began.
                } else if self.in_service.is_some() {
                    let served = old.served(self.service_began, now).get();
                    self.wire_bytes_left -= served.min(u64::from(self.wire_bytes_left)) as u32;
                    self.service_began = now;
                    self.wakeup = self.server.serve(now, self.wire_bytes_left);
                } else if self.waits() {
                    self.start_service(now, outcomes);
                }
            }
        }
        Ok(())
    }
}
