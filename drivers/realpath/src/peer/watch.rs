//! The course of a run from the view of one peer: preparation, start command, run, reports, end of the tunnel.

use super::PeerContext;
use super::clock_reading::{ClockReading, mono_minus_raw_ns};
use super::commands::{Command, StartTime};
use super::live::PeerReadings;
use super::tunnel_thread::{TunnelEvent, TunnelThread};
use crate::tunnel::{FlowMeter, TunnelClock};
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

/// Maximum pause between two checks, and time between progress reports.
const TICK: Duration = Duration::from_millis(200);
/// Pause after a request for the relation of the clocks.
const ASK: Duration = Duration::from_millis(20);
/// Time to wait for the start command; the other peer may have much more to prepare.
const START_LIMIT: Duration = Duration::from_mins(5);
/// Time for which the tunnel stays open after the run, for packets in flight and for the other peer, whose run ends
/// later by the error of the clocks.
const HOLD_NS: u64 = 500_000_000;
/// Maximum time for the tunnel to close, with its logs.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

const ORDERS: u64 = 1;
const TUNNEL: u64 = 2;
const _: () = assert!(TUNNEL < FIRST_ENDPOINT);

/// Facts known after the run.
pub(super) struct PeerRunResult {
    pub(super) supervisor: Supervisor,
    pub(super) start: ClockReading,
    /// Bound of the difference between the starts of both peers, if known here.
    pub(super) start_error_ns: Option<u64>,
    pub(super) end: ClockReading,
    pub(super) clock_step_ns: i64,
    pub(super) ticks: Vec<CpuTicks>,
}

/// A running peer.
pub(super) struct PeerRun<'a, 'b> {
    around: &'a mut PeerContext<'b>,
    clock: TunnelClock,
    duration_ns: u64,
    /// Maximum time for all endpoints to become ready.
    ready_limit: Duration,
    epoll: Epoll,
    supervisor: Supervisor,
    /// The tunnel, if there is one.
    tunnel: Option<TunnelThread>,
    is_open: bool,
    is_prepared: bool,
    /// A start by the clock of the other end, whose relation to the local one has been requested.
    asked: Option<Time>,
    /// Start of the run by `CLOCK_MONOTONIC`.
    start_mono_ns: Option<u64>,
    /// Bound of the difference from the start of the other peer, if known here.
    start_error_ns: Option<u64>,
    /// How the tunnel has ended.
    over: Option<Result<Value, RunError>>,
    /// Readings of the run, if it is watched.
    pub(super) readings: Option<PeerReadings>,
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
        // A file, or /dev/null, cannot be polled, and provides no commands either.
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
            readings: None,
        })
    }

    /// Carries out the run; `prepared` is called once all endpoints are prepared.
    pub(super) fn run(mut self, prepared: impl FnOnce()) -> Result<PeerRunResult, RunError> {
        // Commands that arrived together with the plan are in the buffer, which polling does not see.
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
                    "no start command arrived within {START_LIMIT:?}"
                )));
            }
        }
    }

    /// Waits for the start; returns it with the difference of the clocks and the ticks of the processors at that time.
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
            self.read(passed);
            if passed >= length {
                return Ok(());
            }
            let next = self.readings.as_ref().map(|it| it.until_next(passed));
            let pause = next.map_or(length - passed, |next| next.min(length - passed));
            self.step(TICK.min(Duration::from_nanos(pause)))?;
            self.check_tunnel()?;
        }
    }

    /// Takes a reading, if one is due at `passed_ns` of the run.
    fn read(&mut self, passed_ns: u64) {
        let Some(readings) = &mut self.readings else {
            return;
        };
        let Some(number) = readings.due(passed_ns) else {
            return;
        };
        if let Some(tunnel) = &self.tunnel {
            readings.request(number);
            tunnel.request_counts();
        } else {
            let event = readings.event(number, passed_ns, &self.supervisor, None);
            self.tell(&event);
        }
    }

    /// Reports the reading for which the tunnel has counted flows up to `at`.
    fn tell_counts(&mut self, meter: &FlowMeter, at: Time) {
        let now = ClockReading::now(&self.clock);
        let ago = now.tunnel_ns.saturating_sub(at.ns());
        let start = self.start_mono_ns.unwrap_or(now.mono_ns);
        let time_ns = now.mono_ns.saturating_sub(ago).saturating_sub(start);
        let Some(readings) = &mut self.readings else {
            return;
        };
        if let Some(number) = readings.take_request() {
            let event = readings.event(number, time_ns, &self.supervisor, Some((meter, at)));
            self.tell(&event);
        }
    }

    /// Waits for the reports of the endpoints and for packets in flight, and lets the tunnel end. From here on the
    /// other end may leave at any time.
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
                "the other end has closed the tunnel before the end of the run; see its messages for the reason".to_owned()
            }
            Some("silence") => {
                "no datagram of the other end has arrived for long; the path is cut, or the other machine is down".to_owned()
            }
            reason => {
                let reason = reason.unwrap_or("no reason");
                return Err(RunError::Internal(format!(
                    "the tunnel has ended before the end of the run ({reason})"
                )));
            }
        };
        Err(RunError::Unavailable(text))
    }

    /// Waits for events and handles them.
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
                    // Just after the opening, datagrams may not have passed in both directions yet: request it again.
                    let known = fit.zip(self.asked);
                    if let Some((fit, there)) = known {
                        self.asked = None;
                        let here = u64::try_from(fit.local_ns(there)).unwrap_or(0);
                        let here = Time::from_ns(here);
                        self.announce(here, Some(fit.error(here)))?;
                    }
                }
                TunnelEvent::Counts(meter, at) => self.tell_counts(&meter, at),
                TunnelEvent::Over(over) => self.over = Some(over),
            }
        }
        Ok(())
    }

    /// Carries out commands.
    fn obey(&mut self) -> Result<(), RunError> {
        while let Some(order) = self.around.commands.next()? {
            match order {
                Command::Reschedule {
                    flow,
                    start_ns,
                    stop_ns,
                    at_ns,
                } => self.reschedule(flow, start_ns, stop_ns, at_ns)?,
                Command::Stop => return Err(RunError::Interrupted(libc::SIGTERM)),
                Command::Start {
                    in_ns,
                    at_ns,
                    real_ns,
                    error_ns,
                } => self.start(StartTime::new(in_ns, at_ns, real_ns, error_ns)?)?,
            }
        }
        Ok(())
    }

    /// Gives a flow other times, and reports by how much the command was late.
    fn reschedule(
        &mut self,
        flow: u16,
        start_ns: u64,
        stop_ns: u64,
        at_ns: u64,
    ) -> Result<(), RunError> {
        let Some(start_mono_ns) = self.start_mono_ns else {
            return Err(RunError::Input(
                "the command to reschedule a flow came before that to start".to_owned(),
            ));
        };
        self.supervisor.reschedule(flow, start_ns, stop_ns);
        let passed = machine::mono_ns().saturating_sub(start_mono_ns);
        let late_ns = passed.saturating_sub(at_ns);
        self.tell(&json!({"event": "rescheduled", "flow": flow, "late_ns": late_ns}));
        Ok(())
    }

    fn start(&mut self, when: StartTime) -> Result<(), RunError> {
        let refuse = |why: &str| Err(RunError::Input(format!("the start command {why}")));
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
                "names a time of the other clock, which only a tunnel relates to the local one; name one by the local real-time clock",
            ),
            StartTime::At(there) => {
                self.asked = Some(Time::from_ns(there));
                Ok(())
            }
        }
    }

    /// Announces that the run starts when the clock of this end reads `at`, with the error bound `error` if it is a
    /// time of the other machine.
    fn announce(&mut self, at: Time, error: Option<Span>) -> Result<(), RunError> {
        let raw_ns = self.clock.raw_at(at);
        let ahead = i128::from(raw_ns) - i128::from(machine::raw_ns());
        if ahead < i128::from(HEAD_START_NS) {
            return Err(RunError::Input(format!(
                "the commanded start is {} ms ahead, but announcing it takes {} ms; send the command earlier",
                ahead / 1_000_000,
                HEAD_START_NS / 1_000_000
            )));
        }
        if ahead > START_LIMIT.as_nanos() as i128 {
            return Err(RunError::Input(format!(
                "the commanded start is {} s away; send the command later",
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
