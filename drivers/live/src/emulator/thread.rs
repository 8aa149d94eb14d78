//! The emulator's thread: rings in, batches out, and sleep until the next packet is due.
//!
//! Model time is the kernel's stamp of each frame less the start of the run, so that a delay of
//! this thread never enters the model: it only makes packets leave late, and how late each one
//! left is recorded.

use super::core::{Core, Refused};
use super::frame::{self, Kind};
use super::writer::Writer;
use crate::hosts::Side;
use crate::sys::mmsg::SendBatch;
use crate::sys::poll::{Epoll, Events, Waker};
use crate::sys::ring::{RxRing, TxPort};
use crate::sys::{clock, cpu};
use narrows_net::Direction;
use narrows_record::{ElementCounters, Histogram, Log, QueueRow};
use narrows_units::{Span, Time};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Frames taken from the rings before due ones are released again.
const BURST: usize = 64;
/// Waits shorter than this are spent reading the clock and the rings: going to sleep and being
/// woken takes longer, and wakes up late.
const SPIN: Span = Span::from_us(20);
/// Packets stamped before the end of the run may become visible in the ring a moment later.
const LINGER: Span = Span::from_ms(5);
/// Longest sleep, so that the thread notices a lost wake-up.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// What the rest of the agent tells the emulator, and sees of it, while it runs.
#[derive(Debug)]
pub struct Control {
    /// Start of the run by `CLOCK_REALTIME`; 0 until it is known.
    start_ns: AtomicU64,
    stop: AtomicBool,
    /// Frames seen before the start, per side.
    warm: [AtomicU64; 2],
    waker: Waker,
}

impl Control {
    /// Nothing has been said yet.
    pub fn new() -> io::Result<Self> {
        Ok(Control {
            start_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            warm: [AtomicU64::new(0), AtomicU64::new(0)],
            waker: Waker::new()?,
        })
    }

    /// The run starts at `real_ns`.
    pub fn start(&self, real_ns: u64) {
        self.start_ns.store(real_ns, Ordering::Release);
        self.waker.wake();
    }

    /// The run is given up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether frames of both hosts have reached the emulator.
    pub fn is_warm(&self) -> bool {
        self.warm
            .iter()
            .all(|count| count.load(Ordering::Acquire) > 0)
    }
}

/// What the emulator leaves behind.
#[derive(Debug)]
pub struct Report {
    /// What is recorded of the packets, complete.
    pub log: Log,
    /// How late packets left.
    pub lateness: Histogram,
    /// The same per tenth of the run.
    pub late_by_tenth: [Histogram; 10],
    /// Counters of the elements.
    pub elements: Vec<ElementCounters>,
    /// Samples of the queues.
    pub queues: Vec<QueueRow>,
    /// Packets delivered per flow.
    pub delivered: Vec<u64>,
    /// What was not let in.
    pub refused: Refused,
    /// The rings and ports, whose counters are read when the hosts are silent.
    pub wires: [Wire; 2],
    /// Frames handed to the hosts, per side.
    pub sent: [u64; 2],
    /// What it cost.
    pub effort: Effort,
    /// Whether the run lasted to its end.
    pub complete: bool,
}

/// What the emulation cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// Batches that an interface did not take in full at once.
    pub retries: u64,
    /// Processor time used during the run, waiting included.
    pub cpu_ns: u64,
    /// Time spent ready to run but without a processor.
    pub starved_ns: u64,
    /// Processor time spent waiting.
    pub spin_ns: u64,
}

/// One side's ring and port.
#[derive(Debug)]
pub struct Wire {
    /// What the host sends.
    pub ring: RxRing,
    /// What the host receives.
    pub port: TxPort,
}

/// Everything that the thread works with.
pub struct Emulator<'a> {
    /// The network.
    pub core: Core,
    /// By side.
    pub wires: [Wire; 2],
    /// Length of the run.
    pub duration: Span,
    /// Encodes the packets, if each is kept.
    pub writer: Option<&'a Writer>,
    /// Words between threads.
    pub control: &'a Control,
    /// Frames handed to the hosts so far, per side.
    pub sent: [u64; 2],
}

impl Emulator<'_> {
    /// Runs to the end of the run, or until it is given up.
    ///
    /// # Errors
    /// A system call that cannot fail for reasons of load.
    pub fn run(mut self) -> io::Result<Report> {
        cpu::precise_timers();
        // A little priority over other work on this machine, where that is allowed.
        cpu::prefer(-10);
        cpu::short_slices();
        let epoll = Epoll::new()?;
        for side in Side::BOTH {
            epoll.add(self.wires[side as usize].ring.as_fd(), side as u64)?;
        }
        epoll.add(self.control.waker.as_fd(), 2)?;
        let Some(start_ns) = self.wait_for_start(&epoll)? else {
            return Ok(self.report(Effort::default(), false));
        };
        let starved_ns = || cpu::thread_run_and_wait_ns().map_or(0, |(_, wait)| wait);
        let before = (clock::thread_cpu_ns(), starved_ns());
        let (mut effort, complete) = self.emulate(&epoll, start_ns)?;
        effort.cpu_ns = clock::thread_cpu_ns() - before.0;
        effort.starved_ns = starved_ns().saturating_sub(before.1);
        self.core.finish();
        if let Some(writer) = self.writer {
            writer.hand_over(&mut self.core.log);
        }
        Ok(self.report(effort, complete))
    }

    /// Takes frames until the start of the run is known; returns it.
    fn wait_for_start(&mut self, epoll: &Epoll) -> io::Result<Option<u64>> {
        let mut events = Events::default();
        loop {
            for (wire, warm) in self.wires.iter_mut().zip(&self.control.warm) {
                while let Some(frame) = wire.ring.peek() {
                    if frame::classify(frame.bytes) == Kind::WarmUp {
                        warm.fetch_add(1, Ordering::Release);
                    }
                    wire.ring.release();
                }
            }
            self.control.waker.clear();
            if self.control.stop.load(Ordering::Acquire) {
                return Ok(None);
            }
            match self.control.start_ns.load(Ordering::Acquire) {
                0 => epoll.wait(&mut events, Some(LONGEST_SLEEP))?,
                start_ns => return Ok(Some(start_ns)),
            }
        }
    }

    fn emulate(&mut self, epoll: &Epoll, start_ns: u64) -> io::Result<(Effort, bool)> {
        let now = || Time::from_ns(clock::real_ns().saturating_sub(start_ns));
        let over = Time::ZERO + self.duration + LINGER;
        let mut events = Events::default();
        let mut effort = Effort::default();
        // When the current stretch of idle reading began, for an honest account of the work.
        let mut idle_since: Option<Time> = None;
        loop {
            let taken = self.take_frames(start_ns);
            let at = now();
            self.core.advance(at);
            let mut sent = 0;
            for direction in Direction::BOTH {
                while self.core.has_due(direction) {
                    let count = self.send_batch(direction, &now)?;
                    sent += count;
                    if count < SendBatch::CAPACITY {
                        break;
                    }
                }
            }
            if let (Log::Packets(log), Some(writer)) = (&mut self.core.log, self.writer)
                && log.has_chunk()
            {
                writer.exchange(log);
            }
            let stuck = Direction::BOTH
                .iter()
                .any(|&direction| self.core.has_due(direction));
            if taken + sent > 0 {
                effort.retries += u64::from(stuck);
                if let Some(since) = idle_since.take() {
                    effort.spin_ns += at.since(since).ns();
                }
                continue;
            }
            if at >= over && !stuck {
                return Ok((effort, true));
            }
            let wait = self.core.next_wakeup().min(over).since(at);
            if stuck || wait <= SPIN {
                idle_since.get_or_insert(at);
                std::hint::spin_loop();
                continue;
            }
            if let Some(since) = idle_since.take() {
                effort.spin_ns += at.since(since).ns();
            }
            let sleep = Duration::from_nanos(wait.saturating_sub(SPIN).ns().max(1));
            epoll.wait(&mut events, Some(sleep.min(LONGEST_SLEEP)))?;
            if events.keys().any(|key| key == 2) {
                self.control.waker.clear();
                if self.control.stop.load(Ordering::Acquire) {
                    return Ok((effort, false));
                }
            }
        }
    }

    /// Moves frames from the rings into the network, in the order of their stamps.
    #[inline]
    fn take_frames(&mut self, start_ns: u64) -> usize {
        let [sender, receiver] = &mut self.wires;
        let end_ns = start_ns + self.duration.ns();
        for taken in 0..BURST {
            let stamp = |ring: &RxRing| ring.peek().map_or(u64::MAX, |frame| frame.stamp_ns);
            let (forward, backward) = (stamp(&sender.ring), stamp(&receiver.ring));
            let (ring, direction) = if forward <= backward {
                (&mut sender.ring, Direction::Forward)
            } else {
                (&mut receiver.ring, Direction::Backward)
            };
            let Some(frame) = ring.peek() else {
                return taken;
            };
            // What was sent before the start or after the end is no part of the run.
            if (start_ns..end_ns).contains(&frame.stamp_ns) {
                self.core.arrive(
                    direction,
                    Time::from_ns(frame.stamp_ns - start_ns),
                    frame.bytes,
                );
            }
            ring.release();
        }
        BURST
    }

    /// Sends the oldest due frames of one direction; returns how many were taken.
    #[inline]
    fn send_batch(&mut self, direction: Direction, now: &impl Fn() -> Time) -> io::Result<usize> {
        let side = match direction {
            Direction::Forward => Side::Receiver,
            Direction::Backward => Side::Sender,
        };
        let first = now();
        let count = match self.wires[side as usize]
            .port
            .send(self.core.due(direction))
        {
            Ok(count) => count,
            // The interface takes nothing right now: the frames leave later, and are late.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)
                ) =>
            {
                0
            }
            Err(error) => return Err(error),
        };
        let last = if count > 1 { now() } else { first };
        self.core.released(direction, count, first, last);
        self.sent[side as usize] += count as u64;
        Ok(count)
    }

    fn report(self, effort: Effort, complete: bool) -> Report {
        Report {
            elements: self.core.counters(),
            queues: self.core.queue_rows().collect(),
            log: self.core.log,
            lateness: self.core.lateness,
            late_by_tenth: self.core.late_by_tenth,
            delivered: self.core.delivered,
            refused: self.core.refused,
            wires: self.wires,
            sent: self.sent,
            effort,
            complete,
        }
    }
}
