//! The course of a run, from the point of view of one peer: preparations, the order to start, the run, the reports,
//! the end of the tunnel.

use super::PeerContext;
use super::clock_reading::{ClockReading, mono_minus_raw_ns};
use super::commands::{Command, StartTime};
use super::tunnel_thread::{TunnelEvent, TunnelThread};
use crate::tunnel::TunnelClock;
use narrows_cell::Cell;
use narrows_cell::{Context, RunError};
use narrows_endpoints::supervisor::{
    FIRST_ENDPOINT, HEAD_START_NS, READY_LIMIT, REPORT_LIMIT, SIGNALS, Supervisor,
};
use narrows_sys::clock as machine;
use narrows_sys::cpu::{self, CpuTicks};
use narrows_sys::poll::Epoll;
use narrows_units::{Span, Time};
use serde_json::{Value, json};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Longest pause between two looks around, and distance of progress reports.
const TICK: Duration = Duration::from_millis(200);
/// Pause after a question for the clocks.
const ASK: Duration = Duration::from_millis(20);
/// How long to wait for the order to start; the other peer may have much more to prepare.
const START_LIMIT: Duration = Duration::from_mins(5);
/// The tunnel stays open for so long after the run, for what is on its way and for the other peer, whose run
/// ends later by the error of the clocks.
const HOLD_NS: u64 = 500_000_000;
/// Longest time for the tunnel to close, with its logs.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

const ORDERS: u64 = 1;
const TUNNEL: u64 = 2;
const _: () = assert!(TUNNEL < FIRST_ENDPOINT);

/// What is known when the run is over.
pub(super) struct PeerRunResult {
    pub(super) supervisor: Supervisor,
    pub(super) start: ClockReading,
    /// How far the start of the other peer may be from this one, if that is known here.
    pub(super) start_error_ns: Option<u64>,
    pub(super) end: ClockReading,
    pub(super) clock_step_ns: i64,
    pub(super) ticks: Vec<CpuTicks>,
}

/// A peer at work.
pub(super) struct PeerRun<'a, 'b> {
    around: &'a mut PeerContext<'b>,
    clock: TunnelClock,
    duration_ns: u64,
    /// Longest time for all endpoints to become ready.
    ready_limit: Duration,
    epoll: Epoll,
    supervisor: Supervisor,
    /// The tunnel, if there is one.
    tunnel: Option<TunnelThread>,
    is_open: bool,
    is_prepared: bool,
    /// A start by the clock of the other end, whose relation to ours has been asked for.
    asked: Option<Time>,
    /// When the run starts, by `CLOCK_MONOTONIC`.
    start_mono_ns: Option<u64>,
    /// How far that may be from the start of the other peer, as far as it is known here.
    start_error_ns: Option<u64>,
    /// How the tunnel has ended.
    over: Option<Result<Value, RunError>>,
}

impl<'a, 'b> PeerRun<'a, 'b> {
    pub(super) fn new(
        cell: &Cell,
        clock: TunnelClock,
        epoll: Epoll,
        supervisor: Supervisor,
        tunnel: Option<TunnelThread>,
        around: &'a mut PeerContext<'b>,
    ) -> Result<Self, RunError> {
        epoll
            .add(around.signals.as_fd(), SIGNALS)
            .could_not("wait for signals")?;
        // A file, or /dev/null, cannot be waited for; without orders it would be of no use either.
        epoll
            .add(around.commands.as_fd(), ORDERS)
            .map_err(|error| RunError::Input(format!("standard input must be a pipe ({error})")))?;
        if let Some(tunnel) = &tunnel {
            epoll
                .add(tunnel.as_fd(), TUNNEL)
                .could_not("wait for the tunnel")?;
        }
        let slowest = cell.programs().map(|(_, program)| program.ready_limit());
        Ok(PeerRun {
            around,
            clock,
            duration_ns: cell.duration.ns(),
            ready_limit: READY_LIMIT + slowest.max().unwrap_or_default(),
            epoll,
            supervisor,
            is_open: tunnel.is_none(),
            tunnel,
            is_prepared: false,
            asked: None,
            start_mono_ns: None,
            start_error_ns: None,
            over: None,
        })
    }

    /// Sees the run through; `prepared` is called once all endpoints are.
    pub(super) fn run(mut self, prepared: impl FnOnce()) -> Result<PeerRunResult, RunError> {
        // Commands that came together with the plan are in our buffer, where nobody sees them.
        self.obey()?;
        self.prepare()?;
        prepared();
        self.tell(&json!({"event": "prepared"}));
        let start_mono_ns = self.wait_for_start()?;
        let (start, offset, ticks) = self.wait_until(start_mono_ns)?;
        self.last(start_mono_ns)?;
        let end = ClockReading::now(&self.clock);
        let ticks = cpu::ticks().into_iter().zip(ticks);
        let ticks = ticks.map(|(now, then)| now.since(then)).collect();
        let clock_step_ns = machine::real_minus_mono_ns() - offset;
        self.collect(start_mono_ns + self.duration_ns)?;
        Ok(PeerRunResult {
            supervisor: self.supervisor,
            start,
            start_error_ns: self.start_error_ns,
            end,
            clock_step_ns,
            ticks,
        })
    }

    fn tell(&mut self, event: &Value) {
        (self.around.notify)(event);
    }

    /// Waits for all endpoints to be prepared.
    fn prepare(&mut self) -> Result<(), RunError> {
        let limit = Instant::now() + self.ready_limit;
        while !self.supervisor.is_ready() {
            self.step(TICK)?;
            self.check_tunnel()?;
            if Instant::now() > limit {
                return Err(RunError::Internal(
                    "the endpoints did not become ready".to_owned(),
                ));
            }
        }
        self.is_prepared = true;
        Ok(())
    }

    fn wait_for_start(&mut self) -> Result<u64, RunError> {
        let limit = Instant::now() + START_LIMIT;
        let mut last: Option<Instant> = None;
        loop {
            if let Some(mono_ns) = self.start_mono_ns {
                return Ok(mono_ns);
            }
            let mut pause = TICK;
            if self.asked.is_some() {
                pause = ASK;
                if last.is_none_or(|at| at.elapsed() >= ASK) {
                    last = Some(Instant::now());
                    if let Some(tunnel) = &self.tunnel {
                        tunnel.request_fit();
                    }
                }
            }
            self.step(pause)?;
            self.check_tunnel()?;
            if self.is_open && Instant::now() > limit {
                return Err(RunError::Internal(format!(
                    "no order to start came within {START_LIMIT:?}"
                )));
            }
        }
    }

    /// Waits for the start; returns it with the distance of the clocks and the ticks of the processors then.
    fn wait_until(&mut self, mono_ns: u64) -> Result<(ClockReading, i64, Vec<CpuTicks>), RunError> {
        loop {
            let now = machine::mono_ns();
            if now >= mono_ns {
                break;
            }
            self.step(TICK.min(Duration::from_nanos(mono_ns - now)))?;
            self.check_tunnel()?;
        }
        let start = ClockReading::now(&self.clock).at_mono(mono_ns);
        Ok((start, machine::real_minus_mono_ns(), cpu::ticks()))
    }

    /// The run itself.
    fn last(&mut self, start_mono_ns: u64) -> Result<(), RunError> {
        let length = self.duration_ns;
        let mut told: Option<Instant> = None;
        loop {
            let passed = machine::mono_ns().saturating_sub(start_mono_ns);
            if passed >= length || told.is_none_or(|at| at.elapsed() >= TICK) {
                told = Some(Instant::now());
                let time = passed.min(length);
                self.tell(&json!({"event": "progress", "time_ns": time, "of_ns": length}));
            }
            if passed >= length {
                return Ok(());
            }
            self.step(TICK.min(Duration::from_nanos(length - passed)))?;
            self.check_tunnel()?;
        }
    }

    /// Waits for the reports of the endpoints and for what is on its way, and lets the tunnel end. From here on the
    /// other end may leave whenever it wants.
    fn collect(&mut self, end_mono_ns: u64) -> Result<(), RunError> {
        let limit = Instant::now() + REPORT_LIMIT;
        while !self.supervisor.is_done() && Instant::now() < limit {
            self.step(TICK)?;
        }
        if self.tunnel.is_none() {
            return Ok(());
        }
        let until = end_mono_ns + HOLD_NS;
        while self.over.is_none() && machine::mono_ns() < until {
            self.step(Duration::from_nanos(until - machine::mono_ns().min(until)))?;
        }
        if let Some(tunnel) = &self.tunnel {
            tunnel.close();
        }
        let limit = Instant::now() + CLOSE_LIMIT;
        loop {
            match self.over.take() {
                Some(over) => return over.map(drop),
                None if Instant::now() > limit => {
                    return Err(RunError::Internal(format!(
                        "the tunnel has not closed its logs after {CLOSE_LIMIT:?}"
                    )));
                }
                None => self.step(TICK)?,
            }
        }
    }

    /// A tunnel that ends before the run does is a failure.
    fn check_tunnel(&mut self) -> Result<(), RunError> {
        let Some(over) = self.over.take() else {
            return Ok(());
        };
        let text = match over?["reason"].as_str() {
            Some("other_end") => {
                "the other end has closed the tunnel before the run was over; what it says tells why".to_owned()
            }
            Some("silence") => {
                "nothing has been heard of the other end for long; the path is cut, or the other machine is gone".to_owned()
            }
            reason => {
                let reason = reason.unwrap_or("no reason");
                return Err(RunError::Internal(format!(
                    "the tunnel has ended before the run was over ({reason})"
                )));
            }
        };
        Err(RunError::Unavailable(text))
    }

    /// Waits for something to happen and treats it.
    fn step(&mut self, timeout: Duration) -> Result<(), RunError> {
        let started = self.start_mono_ns.is_some();
        let signals = self.around.signals;
        let keys = self
            .supervisor
            .wait(&self.epoll, signals, timeout, started)?;
        if keys.contains(&ORDERS) {
            self.around.commands.fill();
            self.obey()?;
        }
        while self.over.is_none()
            && let Some(event) = self.tunnel.as_ref().and_then(TunnelThread::next_event)
        {
            match event {
                TunnelEvent::Event(event) => {
                    self.is_open |= event["event"] == "open";
                    self.tell(&event);
                }
                TunnelEvent::Fit(fit) => {
                    // Just after the opening nothing may have gone both ways yet: it is asked again.
                    let known = fit.zip(self.asked);
                    if let Some((fit, there)) = known {
                        self.asked = None;
                        let here = u64::try_from(fit.local_ns(there)).unwrap_or(0);
                        let here = Time::from_ns(here);
                        self.announce(here, Some(fit.error(here)))?;
                    }
                }
                TunnelEvent::Over(over) => self.over = Some(over),
            }
        }
        Ok(())
    }

    /// Does what has been ordered.
    fn obey(&mut self) -> Result<(), RunError> {
        while let Some(order) = self.around.commands.next()? {
            match order {
                Command::Stop => return Err(RunError::Interrupted(libc::SIGTERM)),
                Command::Start {
                    in_ns,
                    at_ns,
                    real_ns,
                    error_ns,
                } => self.start(StartTime::of(in_ns, at_ns, real_ns, error_ns)?)?,
            }
        }
        Ok(())
    }

    fn start(&mut self, when: StartTime) -> Result<(), RunError> {
        let refuse = |why: &str| Err(RunError::Input(format!("the order to start {why}")));
        if self.start_mono_ns.is_some() || self.asked.is_some() {
            return refuse("came twice");
        }
        if !(self.is_prepared && self.is_open) {
            return refuse("came too early; wait for 'prepared' and 'open'");
        }
        match when {
            StartTime::In(ns) => {
                let now = self.clock.now().ns();
                self.announce(Time::from_ns(now.saturating_add(ns)), None)
            }
            StartTime::Real(ns, error_ns) => {
                let raw_ns = ns.saturating_add_signed(-machine::real_minus_raw_ns());
                let error = Span::from_ns(error_ns);
                self.announce(self.clock.at_raw(raw_ns), Some(error))
            }
            StartTime::At(_) if self.tunnel.is_none() => refuse(
                "names a time of the other clock, which only a tunnel compares with ours; name one by our real clock",
            ),
            StartTime::At(there) => {
                self.asked = Some(Time::from_ns(there));
                Ok(())
            }
        }
    }

    /// Tells everybody that the run starts when the clock of this end reads `at`, which is wrong by `error` at most if
    /// it is a time of the other machine's.
    fn announce(&mut self, at: Time, error: Option<Span>) -> Result<(), RunError> {
        let raw_ns = self.clock.raw_at(at);
        let ahead = i128::from(raw_ns) - i128::from(machine::raw_ns());
        if ahead < i128::from(HEAD_START_NS) {
            return Err(RunError::Input(format!(
                "the start that was ordered lies {} ms ahead, and everybody needs {} ms to hear of it; order \
                 it earlier",
                ahead / 1_000_000,
                HEAD_START_NS / 1_000_000
            )));
        }
        if ahead > START_LIMIT.as_nanos() as i128 {
            return Err(RunError::Input(format!(
                "the start that was ordered is {} s away; order it later",
                ahead / 1_000_000_000
            )));
        }
        let mono_ns = raw_ns.saturating_add_signed(mono_minus_raw_ns());
        let real_ns = mono_ns.saturating_add_signed(machine::real_minus_mono_ns());
        self.start_mono_ns = Some(mono_ns);
        self.supervisor.announce(real_ns, mono_ns);
        let error_ns = error.map(Span::ns);
        self.start_error_ns = error_ns;
        self.tell(&json!({
            "event": "starting", "at_ns": at.ns(), "real_ns": real_ns, "error_ns": error_ns,
        }));
        Ok(())
    }
}
