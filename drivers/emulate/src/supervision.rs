//! The main thread of a run: it starts endpoints and waits for readiness, signals and the end.

use super::RunContext;
use super::live::{LiveEvent, LiveReader};
use super::orders::Orders;
use super::testbed::Testbed;
use narrows_cell::{Cell, Context, Role, RunError};
use narrows_emulator::Writer;
use narrows_endpoints::supervisor::{
    EndpointSetup, EndpointSpec, HEAD_START_NS, READY_LIMIT, REPORT_LIMIT, SIGNALS, Supervisor,
};
use narrows_sys::clock;
use narrows_sys::cpu::{self, CpuTicks};
use narrows_sys::poll::Epoll;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Time between progress reports.
const TICK: Duration = Duration::from_millis(200);

/// Key of standard input among the awaited events, the only one in addition to those of the
/// supervisor.
const STDIN: u64 = 1;

/// The main thread while the emulator runs.
pub(super) struct Supervision<'a, 'b> {
    pub(super) testbed: &'a Testbed<'a>,
    pub(super) context: &'a mut RunContext<'b>,
    pub(super) orders: Orders,
}

/// Results of the main thread after the run.
pub(super) struct SupervisedRun {
    pub(super) supervisor: Supervisor,
    pub(super) start_ns: u64,
    pub(super) clock_step_ns: i64,
    pub(super) ticks: Vec<CpuTicks>,
    /// The cell with the changes that were made during the run, if there were any.
    pub(super) changed: Option<Cell>,
}

impl Supervision<'_, '_> {
    /// Starts the endpoints, announces the start, and waits for the end of the run and for the endpoints' reports.
    pub(super) fn run(
        &mut self,
        emulator_ended: &dyn Fn() -> bool,
    ) -> Result<SupervisedRun, RunError> {
        let testbed = self.testbed;
        let (cell, control) = (&*testbed.cell, &testbed.control);
        let epoll = Epoll::new().could_not("wait for events")?;
        epoll
            .add(self.context.signals.as_fd(), SIGNALS)
            .could_not("wait for signals")?;
        if self.context.watch_stdin {
            // A file or /dev/null as standard input never signals that the parent has ended.
            let _ = epoll.add(io::stdin().as_fd(), STDIN);
        }
        let flows = cell.flows.iter();
        let specs = flows.flat_map(|flow| [(flow, Role::Receiver), (flow, Role::Sender)]);
        let specs = specs.map(|(flow, role)| EndpointSpec {
            flow,
            role,
            netns: Some(&testbed.hosts.host(cell.host_at(flow, role)).netns),
            unsent: testbed.sizing.unsent(cell, flow),
        });
        let setup = EndpointSetup {
            cell,
            programs: testbed.programs.as_ref(),
            files: self.context.files,
            cpus: &testbed.endpoint_cpus,
            logs: &std::path::absolute(testbed.folder.path().join("logs"))
                .could_not("find the folder of the record")?,
            addresses: None,
            is_live: testbed.gauges.is_some(),
        };
        let reader = LiveReader::new(testbed)?;
        let mut supervisor = Supervisor::start(specs, setup, &epoll)?;
        let slowest = cell.programs().map(|(_, program)| program.ready_limit());
        let limit = Instant::now() + READY_LIMIT + slowest.max().unwrap_or_default();
        let mut warmed: Option<Instant> = None;
        while !(supervisor.is_ready() && control.is_warm()) {
            if !control.is_warm() && warmed.is_none_or(|at| at.elapsed() > TICK / 2) {
                warmed = Some(Instant::now());
                for host in control.cold() {
                    testbed
                        .hosts
                        .warm_up(host)
                        .could_not("send through a wire")?;
                }
            }
            self.wait(&epoll, &mut supervisor, TICK / 10, false)?;
            if Instant::now() > limit || emulator_ended() {
                return Err(RunError::Internal(
                    "the hosts and endpoints did not become ready".into(),
                ));
            }
        }
        let offset = clock::real_minus_mono_ns();
        let mono_ns = clock::mono_ns() + HEAD_START_NS;
        let start_ns = (mono_ns as i64 + offset) as u64;
        let ticks = cpu::ticks();
        control.start(start_ns);
        supervisor.announce(start_ns, mono_ns);
        let length = cell.duration.ns();
        let mut read: Option<Instant> = None;
        loop {
            // Checked before the clock is read: the emulator ends by itself just after the run.
            let ended = emulator_ended();
            let passed = clock::mono_ns().saturating_sub(mono_ns);
            if passed >= length {
                break;
            }
            if ended {
                return Err(RunError::Internal(
                    "the emulator ended before the run".to_owned(),
                ));
            }
            (self.context.progress)(passed, length);
            if self.context.live.is_some() && read.is_none_or(|at| at.elapsed() >= TICK) {
                read = Some(Instant::now());
                let sample = reader.read(passed, testbed, &supervisor);
                self.tell(sample.map(LiveEvent::Live));
            }
            self.obey(passed, &mut supervisor);
            let tick = if self.orders.is_busy() {
                TICK / 20
            } else {
                TICK
            };
            self.wait(
                &epoll,
                &mut supervisor,
                tick.min(Duration::from_nanos(length - passed)),
                true,
            )?;
            if testbed.writer.as_ref().is_some_and(Writer::has_failed) {
                // The emulator is stopped, and the writer's own error is what is reported.
                return Err(RunError::Io("the packets could not be written".to_owned()));
            }
        }
        (self.context.progress)(length, length);
        let sample = reader.read(length, testbed, &supervisor);
        self.tell(sample.map(LiveEvent::Live));
        self.obey(length, &mut supervisor);
        let ticks = cpu::ticks()
            .into_iter()
            .zip(ticks)
            .map(|(now, then)| now.since(then))
            .collect();
        let clock_step_ns = clock::real_minus_mono_ns() - offset;
        let limit = Instant::now() + REPORT_LIMIT;
        while !supervisor.is_done() && Instant::now() < limit {
            self.wait(&epoll, &mut supervisor, TICK, true)?;
        }
        Ok(SupervisedRun {
            supervisor,
            start_ns,
            clock_step_ns,
            ticks,
            changed: self.orders.changed.take(),
        })
    }

    /// Carries out orders that have arrived.
    fn obey(&mut self, now_ns: u64, supervisor: &mut Supervisor) {
        while let Some(event) = self.orders.step(now_ns, self.testbed, supervisor) {
            self.tell(Some(event));
        }
    }

    fn tell(&mut self, event: Option<LiveEvent>) {
        if let (Some(live), Some(event)) = (&mut self.context.live, event) {
            live(&event);
        }
    }

    /// Waits for events; a signal or the end of standard input ends the run.
    fn wait(
        &mut self,
        epoll: &Epoll,
        supervisor: &mut Supervisor,
        timeout: Duration,
        started: bool,
    ) -> Result<(), RunError> {
        for key in supervisor.wait(epoll, self.context.signals, timeout, started)? {
            debug_assert_eq!(key, STDIN, "nothing else was added");
            let mut buffer = [0; 4096];
            match io::Read::read(&mut io::stdin(), &mut buffer) {
                Ok(0) | Err(_) => return Err(RunError::Interrupted(libc::SIGTERM)),
                Ok(length) if self.context.takes_orders => self.orders.add(&buffer[..length]),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}
