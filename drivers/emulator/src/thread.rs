//! The emulator's thread: rings in, batches out, and sleep until the next packet is due.
//!
//! Model time is the kernel's stamp of each frame less the start of the run, so that a delay of
//! this thread never enters the model: it only makes packets leave late, and how late each one
//! left is recorded.

use super::clock::{Clock, RunClock};
use super::core::Core;
use super::frame::{self, Kind};
use super::hooks::{Hooks, Injection};
use super::sleep::Sleep;
use super::writer::Writer;
use narrows_cell::judgement::{EmulatorEffort, ProgramTraffic, RefusedFrames};
use narrows_record::{CapacityRow, ElementCounters, Histogram, Log, PacketLog, QueueRow};
use narrows_sys::mmsg::{SendBatch, is_busy};
use narrows_sys::poll::Waker;
use narrows_sys::ring::{Received, RxRing, TxPort};
use narrows_sys::{clock, cpu};
use narrows_units::{Span, Time};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Frames taken from the rings before due ones are released again.
const BURST: usize = 64;
/// Up to this many rings are all looked at for each frame; of more, only those that had frames when
/// they were last looked at, which is done again after this many frames.
const FEW_RINGS: usize = 4;
const ROUND: usize = 16;
/// Packets stamped before the end of the run may become visible in the ring a moment later.
const LINGER: Span = Span::from_ms(5);
/// State shared by the emulator and the rest of the agent while it runs.
#[derive(Debug)]
pub struct Control {
    /// Start of the run by `CLOCK_REALTIME`; 0 until it is known.
    start_ns: AtomicU64,
    stop: AtomicBool,
    /// Frames seen before the start, per host.
    warm: Vec<AtomicU64>,
    waker: Waker,
}

impl Control {
    /// Nothing has been said yet to an emulator of so many hosts.
    pub fn new(hosts: usize) -> io::Result<Self> {
        Ok(Control {
            start_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            warm: (0..hosts).map(|_| AtomicU64::new(0)).collect(),
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

    /// Lets the emulator look at what its hooks have for it.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// True if the run has been given up.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// True once frames of all hosts have reached the emulator.
    pub fn is_warm(&self) -> bool {
        self.cold().next().is_none()
    }

    /// Hosts of which no frame has reached the emulator yet.
    pub fn cold(&self) -> impl Iterator<Item = u16> + '_ {
        let hosts = (0..).zip(&self.warm);
        hosts.filter_map(|(host, count)| (count.load(Ordering::Acquire) == 0).then_some(host))
    }
}

/// Results of an emulator.
#[derive(Debug)]
pub struct Report<H = ()> {
    /// The hooks, which know what they have seen.
    pub hooks: H,
    /// Model time at which it ended.
    pub ended: Time,
    /// Log of the packets, complete.
    pub log: Log,
    /// Lateness of packets in ns: from the time at which each was due until it was sent.
    pub lateness: Histogram,
    /// The same per tenth of the run.
    pub late_by_tenth: [Histogram; 10],
    /// Capacity of servers over time, where the cell alone does not tell it.
    pub capacity: Vec<CapacityRow>,
    /// Counters of the elements.
    pub elements: Vec<ElementCounters>,
    /// Samples of the queues.
    pub queues: Vec<QueueRow>,
    /// Packets delivered per flow.
    pub delivered: Vec<u64>,
    /// Those among them that were damaged.
    pub damaged: Vec<u64>,
    /// Frames that were not let in.
    pub refused: RefusedFrames,
    /// Traffic of the flows that have hosts of their own, by flow number.
    pub programs: BTreeMap<u16, ProgramTraffic>,
    /// The rings and ports, whose counters are read when the hosts are silent.
    pub wires: Vec<Wire>,
    /// Frames handed to the hosts, per host.
    pub sent: Vec<u64>,
    /// Processor time and waits.
    pub effort: EmulatorEffort,
    /// True if the run lasted to its end.
    pub complete: bool,
}

/// One host's ring and port.
#[derive(Debug)]
pub struct Wire {
    /// Frames that the host sends.
    pub ring: RxRing,
    /// Frames for the host.
    pub port: TxPort,
}

/// The rings, in the order of the hosts, and which of them have frames.
#[derive(Debug)]
struct Rings {
    wires: Vec<Wire>,
    /// Stamp of the oldest frame and index of the ring, of those that have any.
    ready: Vec<(u64, u16)>,
    /// Frames that may be taken before the other rings are looked at.
    left: usize,
}

impl Rings {
    fn new(wires: Vec<Wire>) -> Self {
        Rings {
            ready: Vec::with_capacity(wires.len()),
            wires,
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

    /// Looks at all rings.
    fn look(&mut self) {
        self.ready.clear();
        for (index, wire) in (0..).zip(&self.wires) {
            if let Some(frame) = wire.ring.peek() {
                self.ready.push((frame.stamp_ns, index));
            }
        }
        self.left = if self.wires.len() <= FEW_RINGS {
            1
        } else {
            ROUND
        };
    }

    /// The oldest frame of all rings is shown to `visit`, with the index of its ring; `false` if
    /// there is none.
    #[inline]
    fn take(&mut self, visit: impl FnOnce(u16, &Received)) -> bool {
        let Some(at) = self.oldest() else {
            // Whoever comes again wants to know of new frames.
            self.left = 0;
            return false;
        };
        let index = self.ready[at].1;
        let ring = &mut self.wires[usize::from(index)].ring;
        if let Some(frame) = ring.peek() {
            visit(index, &frame);
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

/// Everything that the thread works with.
pub struct Emulator<'a, H = ()> {
    core: Core<H>,
    rings: Rings,
    /// Encodes the packets, if each is kept.
    writer: Option<&'a Writer>,
    /// Words between threads.
    control: &'a Control,
    /// Frames handed to the hosts so far, per host.
    sent: Vec<u64>,
}

impl<'a, H: Hooks> Emulator<'a, H> {
    /// An emulator of `core` between `wires`, in the order of the hosts; `writer` encodes the packets, if each is kept.
    pub fn new(
        core: Core<H>,
        wires: Vec<Wire>,
        writer: Option<&'a Writer>,
        control: &'a Control,
    ) -> Self {
        Emulator {
            core,
            sent: vec![0; wires.len()],
            rings: Rings::new(wires),
            writer,
            control,
        }
    }

    /// Waits for the start of the run, and runs for `duration` or until it is given up.
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

    /// Runs from now on by another clock.
    ///
    /// # Errors
    /// A system call that cannot fail for reasons of load.
    pub fn run_now(self, clock: impl Clock) -> io::Result<Report<H>> {
        let sleep = self.prepare()?;
        self.run_by(clock, sleep)
    }

    fn prepare(&self) -> io::Result<Sleep> {
        cpu::precise_timers();
        // A little priority over other work on this machine, where that is allowed.
        cpu::prefer(-10);
        cpu::short_slices();
        let rings = self.rings.wires.iter().map(|wire| &wire.ring);
        Sleep::new(rings, &self.control.waker)
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
            writer.hand_over(&mut self.core.log);
        }
        Ok(self.report(effort, ended, complete))
    }

    /// Takes frames until the start of the run is known; returns it.
    fn wait_for_start(&mut self, sleep: &mut Sleep) -> io::Result<Option<u64>> {
        loop {
            let warm = &self.control.warm;
            while self.rings.take(|host, frame| {
                if let Kind::WarmUp(_) = frame::classify(frame.bytes) {
                    warm[usize::from(host)].fetch_add(1, Ordering::Release);
                }
            }) {}
            self.control.waker.clear();
            if self.control.stop.load(Ordering::Acquire) {
                return Ok(None);
            }
            match self.control.start_ns.load(Ordering::Acquire) {
                0 => sleep.until_told()?,
                start_ns => return Ok(Some(start_ns)),
            }
        }
    }

    fn emulate(
        &mut self,
        sleep: &mut Sleep,
        clock: &mut impl Clock,
    ) -> io::Result<(EmulatorEffort, Time, bool)> {
        let over = clock.end() + LINGER;
        let mut effort = EmulatorEffort::default();
        // When the current stretch of idle reading began, for an honest account of the work.
        let mut idle_since: Option<Time> = None;
        loop {
            let taken = self.take_frames(clock);
            let at = clock.now();
            // After a full burst the rings hold more, sent before now: the model must not pass them.
            let unread = if taken == BURST {
                self.rings.oldest_stamp()
            } else {
                None
            };
            let unread = unread.map_or(at, |stamp| clock.time_of(stamp));
            self.core.advance(at.min(unread));
            let sent = self.inject(clock)? + self.send_due(clock)?;
            if let Log::Packets(log) = &mut self.core.log
                && log.has_chunk()
            {
                match self.writer {
                    Some(writer) => writer.exchange(log),
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
                self.control.waker.clear();
            }
        }
    }

    /// Moves frames from the rings into the network, in the order of their stamps.
    #[inline]
    fn take_frames(&mut self, clock: &mut impl Clock) -> usize {
        let core = &mut self.core;
        for taken in 0..BURST {
            let one = self.rings.take(|host, frame| {
                // What was sent before the start or after the end is no part of the run.
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

    /// Takes the frames that the hooks bring in; returns how many.
    #[inline]
    fn inject(&mut self, clock: &mut impl Clock) -> io::Result<usize> {
        let mut count = 0;
        while let Some(injection) = self.core.hooks.injection() {
            match injection {
                Injection::Deliver(port, frame) => {
                    let wire = &mut self.rings.wires[usize::from(port)];
                    match wire.port.send(std::iter::once(&*frame)) {
                        Ok(sent) => self.sent[usize::from(port)] += sent as u64,
                        // Lost like on any full interface.
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

    /// Sends everything that is due, as far as the interfaces take it; returns how many frames
    /// that were.
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

    /// Sends the oldest due frames of one port; returns how many were taken.
    #[inline]
    fn send_batch(&mut self, port: u16, clock: &mut impl Clock) -> io::Result<usize> {
        let first = clock.now();
        let wire = &mut self.rings.wires[usize::from(port)];
        let count = match wire.port.send(self.core.due(port)) {
            Ok(count) => count,
            // The interface takes nothing right now: the frames leave later, and are late.
            Err(error) if is_busy(&error) => 0,
            Err(error) => return Err(error),
        };
        let last = if count > 1 { clock.now() } else { first };
        self.core.released(port, count, first, last);
        self.sent[usize::from(port)] += count as u64;
        Ok(count)
    }

    fn report(self, effort: EmulatorEffort, ended: Time, complete: bool) -> Report<H> {
        Report {
            ended,
            elements: self.core.counters(),
            capacity: self.core.capacity_rows(),
            queues: self.core.queue_rows().collect(),
            hooks: self.core.hooks,
            log: self.core.log,
            lateness: self.core.lateness,
            late_by_tenth: self.core.late_by_tenth,
            delivered: self.core.delivered,
            damaged: self.core.damaged,
            refused: self.core.admission.refused,
            programs: self.core.admission.traffic(),
            wires: self.rings.wires,
            sent: self.sent,
            effort,
            complete,
        }
    }
}

/// Forgets full chunks of a log that nobody keeps.
fn discard(log: &mut PacketLog) {
    while let Some(chunk) = log.take() {
        log.recycle(chunk);
    }
}
