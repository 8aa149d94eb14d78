//! The emulator's thread of a shell: frames from both wires through the path, and those that must
//! wait at the gateway to the relay.

use super::connections::Connections;
use super::counts::{DirectionCounts, Drops, Meter};
use super::network::Wire;
use super::packet::{self, Kind, Tuple};
use super::path::Path;
use super::stopwatch::Stopwatch;
use crate::emulator::{Sleep, Writer};
use crate::sys::mmsg::{SendBatch, is_busy};
use crate::sys::poll::Waker;
use crate::sys::ring::RxRing;
use crate::sys::{clock, cpu};
use narrows_net::PathDirection;
use narrows_record::{ElementCounters, Histogram, QueueRow};
use narrows_units::{Span, Time};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Frames taken from the rings before due ones are released again.
const BURST: usize = 64;
/// Distance of updates of the meters.
const METER: Span = Span::from_ms(20);

/// A frame that waits at the gateway for somebody to be there.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) kind: Kind,
    pub(super) tuple: Tuple,
    pub(super) frame: Vec<u8>,
}

/// What the relay tells the emulator.
#[derive(Debug)]
pub(super) enum Word {
    /// Hand a held frame to the gateway.
    Release(Held),
    /// Send an answer back through the path.
    Answer(Vec<u8>),
    /// Datagrams of these addresses must be held again.
    Forget(Tuple),
}

/// What emulator and main thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) waker: Waker,
    /// By direction.
    pub(super) meters: [Meter; 2],
}

/// The way to the relay, where there is one.
pub(super) struct Gate {
    pub(super) held: Sender<Held>,
    pub(super) relay: Arc<Waker>,
    pub(super) words: Receiver<Word>,
    /// Datagrams between these addresses may pass, except while earlier ones are still held.
    pub(super) datagrams: HashMap<Tuple, u32>,
}

/// What the thread leaves behind.
pub(super) struct Finished {
    /// By direction.
    pub(super) counts: [DirectionCounts; 2],
    pub(super) drops: Drops,
    pub(super) lateness: Histogram,
    /// Frames for which there was no memory.
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

/// Everything that the thread works with.
pub(super) struct Emulator<'a> {
    pub(super) path: Path,
    /// Towards the program, towards the outside.
    pub(super) wires: [Wire; 2],
    pub(super) gate: Option<Gate>,
    pub(super) writer: Option<&'a Writer>,
    /// Names of the elements whose rates the timeline replaces.
    pub(super) replaced_rates: Vec<String>,
    pub(super) shared: &'a Shared,
}

impl Emulator<'_> {
    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// A system call that cannot fail for reasons of load.
    pub(super) fn run(mut self) -> io::Result<Finished> {
        cpu::precise_timers();
        cpu::prefer(-10);
        cpu::short_slices();
        let mut sleep = Sleep::new(self.wires.iter().map(|wire| &wire.ring), &self.shared.waker)?;
        let start_real_ns = clock::real_ns();
        let cpu_ns = clock::thread_cpu_ns();
        let length = self.emulate(&mut sleep)?;
        self.path.finish(length);
        if let (Some(record), Some(writer)) = (&mut self.path.record, self.writer) {
            writer.exchange(&mut record.log);
        }
        let mut rings = [(0, 0); 2];
        for (counts, wire) in rings.iter_mut().zip(&self.wires) {
            *counts = wire.ring.statistics()?;
        }
        Ok(Finished {
            elements: self.path.elements(length, &self.replaced_rates),
            queues: self.path.queue_rows(),
            counts: self.path.counts,
            drops: self.path.drops,
            lateness: self.path.lateness,
            no_memory: self.path.no_memory,
            connections: self
                .path
                .record
                .map_or_else(Connections::default, |record| record.connections),
            length,
            rings,
            start_real_ns,
            cpu_ns: clock::thread_cpu_ns() - cpu_ns,
        })
    }

    fn emulate(&mut self, sleep: &mut Sleep) -> io::Result<Time> {
        let mut stopwatch = Stopwatch::start();
        let mut next_meter = Time::ZERO;
        loop {
            let taken = self.take_frames(&mut stopwatch);
            let at = stopwatch.now();
            // What waits in a ring comes before anything that is due after it.
            self.path.advance(at.min(self.next_stamp(&mut stopwatch)));
            let mut sent = self.hear_words(&stopwatch)?;
            for direction in PathDirection::BOTH {
                sent += self.send(direction, &stopwatch)?;
            }
            if let (Some(record), Some(writer)) = (&mut self.path.record, self.writer)
                && record.log.has_chunk()
            {
                writer.exchange(&mut record.log);
            }
            if at >= next_meter {
                next_meter = at + METER;
                stopwatch.look();
                for direction in PathDirection::BOTH {
                    let counts = &self.path.counts[direction as usize];
                    self.shared.meters[direction as usize]
                        .set(counts, self.path.backlog(direction));
                }
            }
            let stuck = PathDirection::BOTH.iter().any(|&d| self.path.has_due(d));
            if self.shared.stop.load(Ordering::Acquire) {
                return Ok(at);
            }
            if taken + sent > 0 {
                continue;
            }
            let wait = self.path.next_wakeup().since(at);
            if stuck || sleep.is_too_short(wait) {
                std::hint::spin_loop();
                continue;
            }
            // The meters show a queue that drains although nobody sends.
            if sleep.until_due(wait, self.path.propagation())? {
                self.shared.waker.clear();
            }
        }
    }

    /// When the oldest frame that is still in a ring was sent.
    #[inline]
    fn next_stamp(&self, stopwatch: &mut Stopwatch) -> Time {
        let stamps = self.wires.iter().filter_map(|wire| wire.ring.peek());
        let oldest = stamps.map(|frame| frame.stamp_ns).min();
        oldest.map_or(Time::FAR, |stamp_ns| stopwatch.time_of(stamp_ns))
    }

    /// Moves frames from the rings into the path, in the order of their stamps.
    #[inline]
    fn take_frames(&mut self, stopwatch: &mut Stopwatch) -> usize {
        let [inside, outside] = &mut self.wires;
        for taken in 0..BURST {
            let stamp = |ring: &RxRing| ring.peek().map_or(u64::MAX, |frame| frame.stamp_ns);
            let (forward, backward) = (stamp(&inside.ring), stamp(&outside.ring));
            let (ring, direction) = if forward <= backward {
                (&mut inside.ring, PathDirection::Forward)
            } else {
                (&mut outside.ring, PathDirection::Backward)
            };
            let Some(frame) = ring.peek() else {
                return taken;
            };
            let stamp = stopwatch.time_of(frame.stamp_ns);
            self.path.arrive(direction, stamp, frame.bytes);
            ring.release();
        }
        BURST
    }

    /// Sends what is due in one direction; returns how many frames went.
    fn send(&mut self, direction: PathDirection, stopwatch: &Stopwatch) -> io::Result<usize> {
        let mut sent = 0;
        while self.path.has_due(direction) {
            let wire = match direction {
                PathDirection::Forward => 1,
                PathDirection::Backward => 0,
            };
            let at = stopwatch.now();
            let gate = self
                .gate
                .as_ref()
                .filter(|_| direction == PathDirection::Forward);
            let pass = |kind, bytes: &[u8]| gate.is_none_or(|gate| gate.is_open(kind, bytes));
            let due = self.path.due(direction, pass);
            let count = match self.wires[wire].port.send(due) {
                Ok(count) => count,
                Err(error) if is_busy(&error) => return Ok(sent),
                Err(error) => return Err(error),
            };
            self.path.released(direction, count, at);
            sent += count;
            if count < SendBatch::CAPACITY {
                // Either the interface took no more, or the next frame must be held.
                if !self.hold_first(direction) {
                    break;
                }
                self.path.released(direction, 1, at);
                sent += 1;
            }
        }
        Ok(sent)
    }

    /// Hands the first frame that is due to the relay, if it must wait.
    fn hold_first(&mut self, direction: PathDirection) -> bool {
        let Some(gate) = &mut self.gate else {
            return false;
        };
        if direction != PathDirection::Forward {
            return false;
        }
        match self.path.first_due(direction) {
            Some((kind, frame)) if !gate.is_open(kind, frame) => gate.hold(kind, frame),
            _ => false,
        }
    }

    /// Does what the relay has asked for; returns how many frames went.
    fn hear_words(&mut self, stopwatch: &Stopwatch) -> io::Result<usize> {
        let mut sent = 0;
        while let Some(word) = self
            .gate
            .as_ref()
            .and_then(|gate| gate.words.try_recv().ok())
        {
            match word {
                Word::Release(held) => {
                    match self.wires[1].port.send(std::iter::once(&*held.frame)) {
                        Ok(count) => sent += count,
                        // Lost like on any full interface.
                        Err(error) if is_busy(&error) => {}
                        Err(error) => return Err(error),
                    }
                    self.settle(held.kind, held.tuple);
                }
                Word::Answer(frame) => {
                    let now = stopwatch.now();
                    self.path.arrive(PathDirection::Backward, now, &frame);
                    sent += 1;
                }
                Word::Forget(tuple) => {
                    if let Some(gate) = &mut self.gate {
                        gate.datagrams.remove(&tuple);
                    }
                }
            }
        }
        Ok(sent)
    }

    fn settle(&mut self, kind: Kind, tuple: Tuple) {
        if kind == Kind::Datagram
            && let Some(gate) = &mut self.gate
            && let Some(waiting) = gate.datagrams.get_mut(&tuple)
        {
            *waiting = waiting.saturating_sub(1);
        }
    }
}

impl Gate {
    /// Whether a frame may go to the gateway at once.
    #[inline]
    fn is_open(&self, kind: Kind, frame: &[u8]) -> bool {
        match kind {
            Kind::Other => true,
            Kind::Opening => false,
            Kind::Datagram => {
                packet::read(frame).is_some_and(|head| self.datagrams.get(&head.tuple) == Some(&0))
            }
        }
    }

    /// Gives a frame to the relay.
    fn hold(&mut self, kind: Kind, frame: &[u8]) -> bool {
        let Some(head) = packet::read(frame) else {
            return false;
        };
        if kind == Kind::Datagram {
            *self.datagrams.entry(head.tuple).or_insert(0) += 1;
        }
        let held = Held {
            kind,
            tuple: head.tuple,
            frame: frame.to_vec(),
        };
        // Without a relay nobody can be reached.
        let _ = self.held.send(held);
        self.relay.wake();
        true
    }
}
