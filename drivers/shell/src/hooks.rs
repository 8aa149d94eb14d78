//! Hooks of a shell into the data plane: packets are counted, connections are numbered, and frames towards the gateway
//! wait until the relay has a socket for them.

use super::connections::Connections;
use super::counts::{DirectionCounts, DroppedPackets, Meter};
use super::packet::{self, Admission, Tuple};
use narrows_emulator::{Control, Handle, Hooks, Injection, Report, Transit};
use narrows_net::{Direction, Network};
use narrows_record::{ElementCounters, Histogram, QueueRow};
use narrows_sys::poll::Waker;
use narrows_units::{Span, Time};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// Port of the wire to the outside; that to the program is 0.
const OUTSIDE: u16 = 1;
/// Time between updates of the meters.
const METER: Span = Span::from_ms(20);

/// A frame that waits at the gateway for a socket.
#[derive(Debug)]
pub(super) struct PendingFrame {
    pub(super) kind: Admission,
    pub(super) tuple: Tuple,
    pub(super) frame: Vec<u8>,
}

/// Commands from the relay to the emulator.
#[derive(Debug)]
pub(super) enum RelayCommand {
    /// Deliver a pending frame to the gateway.
    Release(PendingFrame),
    /// Send an answer back through the path.
    Answer(Vec<u8>),
    /// Datagrams of these addresses must wait again.
    Forget(Tuple),
}

/// State that emulator, relay and main thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) control: Control,
    /// By direction.
    pub(super) meters: [Meter; 2],
}

/// The connection to the relay, if there is one.
pub(super) struct Gate {
    pub(super) pending: Sender<PendingFrame>,
    pub(super) relay: Arc<Waker>,
    pub(super) commands: Receiver<RelayCommand>,
    /// Datagrams between these addresses may pass, except while earlier ones still wait.
    pub(super) datagrams: HashMap<Tuple, u32>,
}

/// Counters of a session, and the gate to its relay.
pub(super) struct ShellHooks<'a> {
    gate: Option<Gate>,
    /// Present if a record is wanted.
    connections: Option<Connections>,
    /// By direction.
    counts: [DirectionCounts; 2],
    drops: DroppedPackets,
    /// When each packet in the network entered, by slot.
    entered: Vec<Time>,
    meters: &'a [Meter; 2],
    next_meter: Time,
}

impl<'a> ShellHooks<'a> {
    pub(super) fn new(gate: Option<Gate>, is_recorded: bool, meters: &'a [Meter; 2]) -> Self {
        ShellHooks {
            gate,
            connections: is_recorded.then(Connections::default),
            counts: Default::default(),
            drops: DroppedPackets::default(),
            entered: Vec::new(),
            meters,
            next_meter: Time::ZERO,
        }
    }

    fn note(&mut self, slot: u32, at: Time) {
        let slot = slot as usize;
        if self.entered.len() <= slot {
            self.entered.resize(slot + 1, Time::ZERO);
        }
        self.entered[slot] = at;
    }
}

impl Hooks for ShellHooks<'_> {
    fn enter(&mut self, packet: &Transit, frame: &[u8]) -> Option<u16> {
        let &Transit {
            slot,
            direction,
            size,
            at,
            ..
        } = packet;
        self.note(slot, at);
        self.counts[direction as usize].enter(size);
        let connections = self.connections.as_mut()?;
        let tuple = packet::read(frame)?.tuple;
        let tuple = match direction {
            Direction::Forward => tuple,
            Direction::Backward => tuple.reversed(),
        };
        Some(connections.note(tuple, direction, at, size))
    }

    fn copy(&mut self, original: u32, copy: u32) {
        self.note(copy, self.entered[original as usize]);
    }

    fn leave(&mut self, packet: &Transit, network: &Network<Handle>) {
        let stay = packet.at.since(self.entered[packet.slot as usize]);
        let queueing = stay.saturating_sub(network.propagation(packet.direction));
        self.counts[packet.direction as usize].leave(packet.size, packet.at, queueing);
    }

    fn dropped(&mut self, packet: &Transit, element: u16, reason: &'static str) {
        self.counts[packet.direction as usize].drop();
        self.drops
            .add(element, packet.direction, reason, packet.size);
    }

    #[inline]
    fn admits(&self, port: u16, frame: &[u8]) -> bool {
        let gate = self.gate.as_ref().filter(|_| port == OUTSIDE);
        gate.is_none_or(|gate| gate.is_open(frame))
    }

    fn hold(&mut self, _port: u16, frame: &[u8]) {
        if let Some(gate) = &mut self.gate {
            gate.hold(frame);
        }
    }

    fn injection(&mut self) -> Option<Injection> {
        let gate = self.gate.as_mut()?;
        loop {
            match gate.commands.try_recv().ok()? {
                RelayCommand::Release(pending) => {
                    gate.settle(&pending);
                    return Some(Injection::Deliver(OUTSIDE, pending.frame));
                }
                RelayCommand::Answer(frame) => return Some(Injection::Arrive(OUTSIDE, frame)),
                RelayCommand::Forget(tuple) => drop(gate.datagrams.remove(&tuple)),
            }
        }
    }

    #[inline]
    fn observe(&mut self, now: Time, network: &Network<Handle>) {
        if now < self.next_meter {
            return;
        }
        self.next_meter = now + METER;
        for direction in Direction::BOTH {
            let stages = network.stages().filter(|at| at.direction == direction);
            let backlog = stages.map(|stage| stage.element.queued().bytes).sum();
            self.meters[direction as usize].set(&self.counts[direction as usize], backlog);
        }
    }
}

impl Gate {
    /// True if a frame may go to the gateway immediately.
    #[inline]
    fn is_open(&self, frame: &[u8]) -> bool {
        packet::read(frame).is_none_or(|head| match head.kind {
            Admission::Other => true,
            Admission::Opening => false,
            Admission::Datagram => self.datagrams.get(&head.tuple) == Some(&0),
        })
    }

    /// Passes a frame to the relay.
    fn hold(&mut self, frame: &[u8]) {
        let Some(head) = packet::read(frame) else {
            return;
        };
        if head.kind == Admission::Datagram {
            *self.datagrams.entry(head.tuple).or_insert(0) += 1;
        }
        let pending = PendingFrame {
            kind: head.kind,
            tuple: head.tuple,
            frame: frame.to_vec(),
        };
        // Without a relay no destination is reachable.
        let _ = self.pending.send(pending);
        self.relay.wake();
    }

    fn settle(&mut self, pending: &PendingFrame) {
        if pending.kind == Admission::Datagram
            && let Some(waiting) = self.datagrams.get_mut(&pending.tuple)
        {
            *waiting = waiting.saturating_sub(1);
        }
    }
}

/// Results of the emulator's thread.
pub(super) struct ShellResult {
    /// By direction.
    pub(super) counts: [DirectionCounts; 2],
    pub(super) drops: DroppedPackets,
    pub(super) lateness: Histogram,
    /// Number of frames for which memory was lacking.
    pub(super) no_memory: u64,
    pub(super) elements: Vec<ElementCounters>,
    /// Samples of the queues, if a record is kept.
    pub(super) queues: Vec<QueueRow>,
    pub(super) connections: Connections,
    /// Length of the session.
    pub(super) length: Time,
    /// Frames received and dropped by each ring.
    pub(super) rings: [(u32, u32); 2],
    pub(super) start_real_ns: u64,
    pub(super) cpu_ns: u64,
}

impl ShellResult {
    pub(super) fn from_report(report: Report<ShellHooks>, start_real_ns: u64) -> io::Result<Self> {
        let mut rings = [(0, 0); 2];
        for (counts, (_, ring)) in rings.iter_mut().zip(&report.rings) {
            *counts = ring.statistics()?;
        }
        Ok(ShellResult {
            counts: report.hooks.counts,
            drops: report.hooks.drops,
            lateness: report.lateness,
            no_memory: report.refused.no_memory,
            elements: report.elements,
            queues: report.queues,
            connections: report.hooks.connections.unwrap_or_default(),
            length: report.ended,
            rings,
            start_real_ns,
            cpu_ns: report.effort.cpu_ns,
        })
    }
}
