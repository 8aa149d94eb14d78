//! The emulator's thread: reads rings, sends batches, and sleeps until the next packet is due.
//!
//! Model time is the kernel's stamp of each frame less the start of the run, so that a delay of
//! this thread never enters the model: it only makes packets leave late, and how late each one
//! left is recorded.

use super::clock::{Clock, RunClock};
use super::control::Control;
use super::core::Core;
use super::frame::{self, Kind};
use super::hooks::{Hooks, Injection};
use super::report::Report;
use super::sleep::Sleep;
use super::writer::Writer;
use narrows_cell::judgement::EmulatorEffort;
use narrows_record::{Log, PacketLog};
use narrows_sys::mmsg::{SendBatch, is_busy};
use narrows_sys::poll::Waker;
use narrows_sys::ring::{Received, RxRing, TxPort};
use narrows_sys::{clock, cpu};
use narrows_units::{Span, Time};
use std::io;

/// Frames taken from the rings before due ones are released again.
const BURST: usize = 64;
/// Up to this many rings are all checked for each frame; with more, only those that had frames at the last check, which
/// is repeated after this many frames.
const FEW_RINGS: usize = 4;
const ROUND: usize = 16;
/// Packets stamped before the end of the run may become visible in the ring slightly later.
const LINGER: Span = Span::from_ms(5);
/// Maximum time for which the rows of one thread may delay those of the others.
const CUT: Span = Span::from_ms(100);

/// The ends of the hosts' wires that a thread works with.
#[derive(Debug)]
pub struct Wires {
    /// Frames that hosts send, with the numbers of these hosts.
    pub rings: Vec<(u16, RxRing)>,
    /// Frames for all hosts, in their order.
    pub ports: Vec<TxPort>,
}

/// The rings, and which of them have frames.
#[derive(Debug)]
struct Rings {
    all: Vec<(u16, RxRing)>,
    /// Stamp of the oldest frame and index of the ring, of those that have any.
    ready: Vec<(u64, usize)>,
    /// Frames that may be taken before the other rings are checked.
    left: usize,
}

impl Rings {
    fn new(rings: Vec<(u16, RxRing)>) -> Self {
        Rings {
            ready: Vec::with_capacity(rings.len()),
            all: rings,
            left: 0,
        }
    }

    /// The ring with the oldest frame.
    #[inline]
    fn oldest(&mut self) -> Option<usize> {
        if self.left == 0 {
            self.look();
        }
        let (mut at, &(mut oldest, _)) = (0, self.ready.first()?);
        for (index, &(stamp, _)) in self.ready.iter().enumerate().skip(1) {
            if stamp < oldest {
                (at, oldest) = (index, stamp);
            }
        }
        Some(at)
    }

    /// Stamp of the oldest frame of all rings.
    fn oldest_stamp(&mut self) -> Option<u64> {
        self.look();
        self.ready.iter().map(|&(stamp, _)| stamp).min()
    }

    /// Checks all rings.
    fn look(&mut self) {
        self.ready.clear();
        for (index, (_, ring)) in self.all.iter().enumerate() {
            if let Some(frame) = ring.peek() {
                self.ready.push((frame.stamp_ns, index));
            }
        }
        self.left = if self.all.len() <= FEW_RINGS {
            1
        } else {
            ROUND
        };
    }

    /// Passes the oldest frame of all rings to `visit`, with its host; `false` if there is none.
    #[inline]
    fn take(&mut self, visit: impl FnOnce(u16, &Received)) -> bool {
        let Some(at) = self.oldest() else {
            // The next call has to check for new frames.
            self.left = 0;
            return false;
        };
        let (host, ring) = &mut self.all[self.ready[at].1];
        if let Some(frame) = ring.peek() {
            visit(*host, &frame);
            ring.release();
        }
        self.left -= 1;
        match ring.peek() {
            Some(frame) => self.ready[at].0 = frame.stamp_ns,
            None => drop(self.ready.swap_remove(at)),
        }
        true
    }
}

/// The state of the thread.
pub struct Emulator<'a, H = ()> {
    core: Core<H>,
    rings: Rings,
    ports: Vec<TxPort>,
    /// Encodes the packets, if each is kept.
    writer: Option<&'a Writer>,
    /// Communication between threads.
    control: &'a Control,
    /// Number of this thread among those of the emulator.
    thread: usize,
    /// The time by which the rows in the log must go to the writer, if they are merged with those of other threads.
    cut: Time,
    /// Frames delivered to the hosts so far, per host.
    sent: Vec<u64>,
}

impl<'a, H: Hooks> Emulator<'a, H> {
    /// An emulator of `core` between `wires`; `writer` encodes the packets, if each is kept.
    pub fn new(
        core: Core<H>,
        wires: Wires,
        writer: Option<&'a Writer>,
        control: &'a Control,
    ) -> Self {
        Emulator {
            core,
            sent: vec![0; wires.ports.len()],
            rings: Rings::new(wires.rings),
            ports: wires.ports,
            writer,
            control,
            thread: 0,
            cut: Time::FAR,
        }
    }

    /// The same as one of several threads of an emulator, each with separate hosts.
    #[must_use]
    pub fn beside_others(mut self, thread: usize) -> Self {
        self.thread = thread;
        self.cut = Time::ZERO + CUT;
        self
    }

    /// Waits for the start of the run, and runs for `duration` or until it is aborted.
    ///
    /// # Errors
    /// A system call that cannot fail for reasons of load.
    pub fn run(mut self, duration: Span) -> io::Result<Report<H>> {
        let mut sleep = self.prepare()?;
        match self.wait_for_start(&mut sleep)? {
            Some(start_ns) => self.run_by(RunClock { start_ns, duration }, sleep),
            None => Ok(self.report(EmulatorEffort::default(), Time::ZERO, false)),
        }
    }

    /// Runs immediately, with another clock.
    ///
    /// # Errors
    /// A system call that cannot fail for reasons of load.
    pub fn run_now(self, clock: impl Clock) -> io::Result<Report<H>> {
        let sleep = self.prepare()?;
        self.run_by(clock, sleep)
    }

    fn prepare(&self) -> io::Result<Sleep> {
        cpu::precise_timers();
        // A small priority over other work on this machine, if allowed.
        cpu::prefer(-10);
        cpu::short_slices();
        let rings = self.rings.all.iter().map(|(_, ring)| ring);
        Sleep::new(rings, self.waker())
    }

    fn run_by(mut self, mut clock: impl Clock, mut sleep: Sleep) -> io::Result<Report<H>> {
        let starved_ns = || cpu::thread_run_and_wait_ns().map_or(0, |(_, wait)| wait);
        let before = (clock::thread_cpu_ns(), starved_ns());
        let (mut effort, ended, complete) = self.emulate(&mut sleep, &mut clock)?;
        effort.cpu_ns = clock::thread_cpu_ns() - before.0;
        effort.starved_ns = starved_ns().saturating_sub(before.1);
        self.core.end_at(ended);
        self.core.finish();
        if let Some(writer) = self.writer {
            writer.hand_over(self.thread, &mut self.core.log);
        }
        Ok(self.report(effort, ended, complete))
    }

    /// Takes frames until the start of the run is known; returns it.
    fn wait_for_start(&mut self, sleep: &mut Sleep) -> io::Result<Option<u64>> {
        loop {
            let control = self.control;
            while self.rings.take(|host, frame| {
                if let Kind::WarmUp(_) = frame::classify(frame.bytes) {
                    control.warmed_up(host);
                }
            }) {}
            self.waker().clear();
            if control.is_stopped() {
                return Ok(None);
            }
            match control.started_at() {
                None => sleep.until_woken()?,
                known => return Ok(known),
            }
        }
    }

    fn waker(&self) -> &'a Waker {
        self.control.waker(self.thread)
    }

    fn emulate(
        &mut self,
        sleep: &mut Sleep,
        clock: &mut impl Clock,
    ) -> io::Result<(EmulatorEffort, Time, bool)> {
        let over = clock.end() + LINGER;
        let mut effort = EmulatorEffort::default();
        // Start of the current period of idle polling, to account for the work correctly.
        let mut idle_since: Option<Time> = None;
        loop {
            let taken = self.take_frames(clock);
            let at = clock.now();
            // After a full burst the rings contain more frames, sent before now: model time must not pass them.
            let unread = if taken == BURST {
                self.rings.oldest_stamp()
            } else {
                None
            };
            let unread = unread.map_or(at, |stamp| clock.time_of(stamp));
            self.core.advance(at.min(unread));
            let sent = self.inject(clock)? + self.send_due(clock)?;
            if at >= self.cut {
                self.cut = at + CUT;
                if let Log::Packets(log) = &mut self.core.log {
                    log.cut();
                }
            }
            if let Log::Packets(log) = &mut self.core.log
                && log.has_chunk()
            {
                match self.writer {
                    Some(writer) => writer.exchange(self.thread, log),
                    None => discard(log),
                }
            }
            self.core.observe(at);
            if self.control.is_stopped() {
                return Ok((effort, at, false));
            }
            let stuck = self.core.pending(0).is_some();
            if taken + sent > 0 {
                effort.retries += u64::from(stuck);
                if let Some(since) = idle_since.take() {
                    effort.spin_ns += at.since(since).ns();
                }
                continue;
            }
            if at >= over && !stuck {
                return Ok((effort, at, true));
            }
            let wait = self.core.next_wakeup().min(over).since(at);
            if stuck || sleep.is_too_short(wait) {
                idle_since.get_or_insert(at);
                std::hint::spin_loop();
                continue;
            }
            if let Some(since) = idle_since.take() {
                effort.spin_ns += at.since(since).ns();
            }
            if sleep.until_due(wait, self.core.propagation())? {
                self.waker().clear();
            }
        }
    }

    /// Moves frames from the rings into the network, in the order of their stamps.
    #[inline]
    fn take_frames(&mut self, clock: &mut impl Clock) -> usize {
        let core = &mut self.core;
        for taken in 0..BURST {
            let one = self.rings.take(|host, frame| {
                // Frames sent before the start or after the end are not part of the run.
                if clock.covers(frame.stamp_ns) {
                    core.arrive(host, clock.time_of(frame.stamp_ns), frame.bytes);
                }
            });
            if !one {
                return taken;
            }
        }
        BURST
    }

    /// Takes the frames that the hooks inject; returns their number.
    #[inline]
    fn inject(&mut self, clock: &mut impl Clock) -> io::Result<usize> {
        let mut count = 0;
        while let Some(injection) = self.core.hooks.injection() {
            match injection {
                Injection::Deliver(port, frame) => {
                    match self.ports[usize::from(port)].send(std::iter::once(&*frame)) {
                        Ok(sent) => self.sent[usize::from(port)] += sent as u64,
                        // Lost, as on any full interface.
                        Err(error) if is_busy(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
                Injection::Arrive(port, frame) => self.core.arrive(port, clock.now(), &frame),
            }
            count += 1;
        }
        Ok(count)
    }

    /// Sends all due frames that the interfaces accept; returns their number.
    #[inline]
    fn send_due(&mut self, clock: &mut impl Clock) -> io::Result<usize> {
        let (mut sent, mut stuck) = (0, 0);
        while let Some(port) = self.core.pending(stuck) {
            let count = self.send_batch(port, clock)?;
            sent += count;
            if count < SendBatch::CAPACITY {
                if self.core.hold_back(port, || clock.now()) {
                    sent += 1;
                } else if self.core.has_due(port) {
                    stuck += 1;
                }
            }
        }
        Ok(sent)
    }

    /// Sends the oldest due frames of one port; returns the number accepted.
    #[inline]
    fn send_batch(&mut self, port: u16, clock: &mut impl Clock) -> io::Result<usize> {
        let first = clock.now();
        let count = match self.ports[usize::from(port)].send(self.core.due(port)) {
            Ok(count) => count,
            // The interface accepts no frame now: the frames leave later, and are late.
            Err(error) if is_busy(&error) => 0,
            Err(error) => return Err(error),
        };
        let last = if count > 1 { clock.now() } else { first };
        self.core.released(port, count, first, last);
        self.sent[usize::from(port)] += count as u64;
        Ok(count)
    }

    fn report(self, effort: EmulatorEffort, ended: Time, complete: bool) -> Report<H> {
        Report::new(
            self.core,
            self.rings.all,
            self.sent,
            effort,
            ended,
            complete,
        )
    }
}

/// Discards full chunks of a log that is not kept.
fn discard(log: &mut PacketLog) {
    while let Some(chunk) = log.take() {
        log.recycle(chunk);
    }
}
