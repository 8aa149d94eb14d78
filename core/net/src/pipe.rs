//! A drop-tail bottleneck of constant rate and the fixed delay behind it, or either alone, as one element.
//!
//! When such a bottleneck accepts a packet, it is known when that packet will leave and, with the delay, when it will
//! arrive: no later event can change it. A pipe therefore keeps its packets in one line with the times of their
//! arrival, and has no event when one leaves the bottleneck. Departures are computed when they matter: when the next
//! packet needs room, and when the queue is inspected.
//!
//! The driver of a pipe must not be late. A late driver assigns a packet a stamp before departures that have already
//! happened ([`Bottleneck`](crate::Bottleneck) moves it behind them), and a pipe has no departure events. Its elements
//! cannot be changed either. [`Network::fused`](crate::Network::fused) satisfies both conditions.

use crate::bottleneck::Framing;
use crate::fifo::{QUEUE_FULL, QueueLimit};
use crate::rates::constant::Constant;
use crate::{Backlog, Outcomes, Packet, RateServer};
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// An element that can be part of a pipe.
pub(crate) enum PipePart {
    /// A first-in-first-out queue before a constant rate.
    Bottleneck {
        limit: QueueLimit,
        server: Constant,
        framing: Framing,
    },
    /// A propagation delay of any number of packets.
    Delay(Span),
}

/// The bottleneck of a pipe.
struct PipeBottleneck {
    limit: QueueLimit,
    server: Constant,
    framing: Framing,
    /// Waiting packets at the last update, without the packet in service.
    backlog: Backlog,
    /// Packets at the head of the line that have left it by then.
    propagating: usize,
    /// When the next packet leaves it; [`Time::FAR`] while it is idle.
    next_departure: Time,
    /// When the last packet that it has accepted leaves it.
    last_departure: Time,
    /// Traffic that has left it since the start of the run.
    departed: Departures,
}

/// Packets and bytes that have left.
#[derive(Clone, Copy, Default)]
pub(crate) struct Departures {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// See the [module](self).
pub(crate) struct Pipe<P> {
    /// Packets and the times at which they leave the pipe, in the order of their arrival and of these times.
    line: VecDeque<(Time, P)>,
    /// When the first packet leaves.
    next_exit: Time,
    bottleneck: Option<PipeBottleneck>,
    delay: Span,
    /// True if the delay is an element, even if it is zero.
    has_delay: bool,
}

impl<P: Packet> Pipe<P> {
    pub(crate) fn new(part: PipePart) -> Self {
        let (bottleneck, delay) = match part {
            PipePart::Bottleneck {
                limit,
                server,
                framing,
            } => {
                let bottleneck = PipeBottleneck {
                    limit,
                    server,
                    framing,
                    backlog: Backlog::default(),
                    propagating: 0,
                    next_departure: Time::FAR,
                    last_departure: Time::ZERO,
                    departed: Departures::default(),
                };
                (Some(bottleneck), None)
            }
            PipePart::Delay(delay) => (None, Some(delay)),
        };
        Pipe {
            line: VecDeque::new(),
            next_exit: Time::FAR,
            bottleneck,
            delay: delay.unwrap_or_default(),
            has_delay: delay.is_some(),
        }
    }

    /// Appends `part`; returned if a pipe cannot have it there.
    pub(crate) fn append(&mut self, part: PipePart) -> Option<PipePart> {
        match part {
            PipePart::Delay(delay) if !self.has_delay => {
                self.delay = delay;
                self.has_delay = true;
                None
            }
            part => Some(part),
        }
    }

    /// Number of elements that it replaces.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.bottleneck.is_some()) + usize::from(self.has_delay)
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let mut due = now;
        if let Some(bottleneck) = &mut self.bottleneck {
            if bottleneck.next_departure <= now {
                bottleneck.catch_up(now, &self.line, self.delay);
            }
            let size = packet.size();
            if !bottleneck.limit.admits(bottleneck.backlog, size) {
                outcomes.drop(now, packet, QUEUE_FULL);
                return;
            }
            let is_idle = bottleneck.propagating == self.line.len();
            if is_idle {
                bottleneck.server.rest();
            } else {
                bottleneck.backlog.add(size);
                due = bottleneck.last_departure;
            }
            let wire_bytes = bottleneck.framing.wire_bytes(size);
            due = bottleneck.server.serve(due, wire_bytes);
            bottleneck.last_departure = due;
            if is_idle {
                bottleneck.next_departure = due;
            }
        }
        let exit = due + self.delay;
        if self.line.is_empty() {
            self.next_exit = exit;
        }
        self.line.push_back((exit, packet));
    }

    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        if self.next_exit > now {
            return None;
        }
        if let Some(bottleneck) = &mut self.bottleneck {
            if bottleneck.propagating == 0 {
                bottleneck.catch_up(now, &self.line, self.delay);
            }
            bottleneck.propagating -= 1;
        }
        let (_, packet) = self.line.pop_front()?;
        self.next_exit = self.line.front().map_or(Time::FAR, |(exit, _)| *exit);
        Some(packet)
    }

    #[inline]
    pub(crate) fn next_wakeup(&self) -> Time {
        self.next_exit
    }

    /// Updates the visible state to `now`.
    pub(crate) fn catch_up(&mut self, now: Time) {
        if let Some(bottleneck) = &mut self.bottleneck {
            bottleneck.catch_up(now, &self.line, self.delay);
        }
    }

    /// The least time that every packet takes.
    pub(crate) fn propagation(&self) -> Span {
        self.delay
    }

    /// Traffic that has passed from its bottleneck into its delay, if it has both.
    pub(crate) fn departed(&self) -> Option<Departures> {
        let bottleneck = self.bottleneck.as_ref().filter(|_| self.has_delay);
        bottleneck.map(|bottleneck| bottleneck.departed)
    }

    /// The queue of its element `index`.
    pub(crate) fn queued(&self, index: usize) -> Backlog {
        let bottleneck = self.bottleneck.as_ref().filter(|_| index == 0);
        bottleneck.map_or_else(Backlog::default, |bottleneck| bottleneck.backlog)
    }

    /// Everything inside its element `index`.
    pub(crate) fn held(&self, index: usize) -> Backlog {
        let mut held = Backlog::default();
        self.visit_held(&mut |element, packet| {
            if element == index {
                held.add(packet.size());
            }
        });
        held
    }

    /// The server of its element `index`, if it has one.
    pub(crate) fn server(&self, index: usize) -> Option<&dyn RateServer> {
        let bottleneck = self.bottleneck.as_ref().filter(|_| index == 0)?;
        Some(&bottleneck.server)
    }

    /// Calls `visit` with each packet inside and the element that holds it.
    pub(crate) fn visit_held(&self, visit: &mut dyn FnMut(usize, &P)) {
        let bottleneck = self.bottleneck.as_ref();
        let propagating = bottleneck.map_or(self.line.len(), |bottleneck| bottleneck.propagating);
        let last = self.len() - 1;
        for (place, (_, packet)) in self.line.iter().enumerate() {
            visit(if place < propagating { last } else { 0 }, packet);
        }
    }
}

impl PipeBottleneck {
    /// Removes packets that leave by `now`, and takes the next ones into service.
    #[inline]
    fn catch_up<P: Packet>(&mut self, now: Time, line: &VecDeque<(Time, P)>, delay: Span) {
        let mut waiting = line.range(self.propagating..).peekable();
        while self.next_departure <= now
            && let Some((_, leaving)) = waiting.next()
        {
            self.departed.packets += 1;
            self.departed.bytes += u64::from(leaving.size());
            self.propagating += 1;
            self.next_departure = match waiting.peek() {
                Some((exit, next)) => {
                    self.backlog.remove(next.size());
                    *exit - delay
                }
                None => Time::FAR,
            };
        }
    }
}
