//! Time in an endpoint: since the start of the run, on the machine's clocks.

use super::{AgentCommand, Channel, EndpointOutcome, EndpointTask, WakeupDelays, hear_agent};
use narrows_cell::{Context, Role, RunError};
use narrows_record::Histogram;
use narrows_sys::clock;
use narrows_sys::poll::{Epoll, Events, punctual};
use narrows_units::{Span, Time};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The run's time zero on both clocks.
#[derive(Clone, Debug)]
pub(super) struct RunClock {
    real_ns: u64,
    mono_ns: u64,
    /// The maximum delay with which an event was noticed.
    latest: Cell<Span>,
    /// Delays in ns: of arrivals that were not delayed on purpose, and of timers.
    arrivals: RefCell<Histogram>,
    timers: RefCell<Histogram>,
    /// Arrivals before this time were delayed on purpose.
    napped: Cell<Time>,
    /// When the flow starts, and when the end that sends its data stops.
    start: Cell<Time>,
    stop: Cell<Time>,
}

impl RunClock {
    pub(super) fn new(real_ns: u64, mono_ns: u64) -> Self {
        RunClock {
            real_ns,
            mono_ns,
            latest: Cell::new(Span::ZERO),
            arrivals: RefCell::default(),
            timers: RefCell::default(),
            napped: Cell::new(Time::ZERO),
            start: Cell::new(Time::ZERO),
            stop: Cell::new(Time::FAR),
        }
    }

    /// The same with the times of the flow of `task`.
    pub(super) fn for_task(self, task: &EndpointTask) -> Self {
        self.start.set(task.flow.start);
        self.stop.set(task.stop());
        self
    }

    /// When the flow starts.
    pub(super) fn start(&self) -> Time {
        self.start.get()
    }

    /// When the end that sends the data stops sending.
    pub(super) fn stop(&self) -> Time {
        self.stop.get()
    }

    /// When an end has finished: the sender of the data stops, the receiver listens until the end of the run.
    pub(super) fn end(&self, task: &EndpointTask) -> Time {
        match task.role {
            Role::Sender => self.stop(),
            Role::Receiver => task.cell.duration,
        }
    }

    /// Carries out what the agent says; true if times of the flow have changed.
    fn obey(&self, channel: &mut Channel) -> Result<bool, RunError> {
        let mut changed = false;
        while let Some(command) = hear_agent(channel)? {
            if let AgentCommand::Reschedule { start_ns, stop_ns } = command {
                self.start.set(Time::from_ns(start_ns));
                self.stop.set(Time::from_ns(stop_ns));
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Now; zero before the start.
    #[inline]
    pub(super) fn now(&self) -> Time {
        Time::from_ns(clock::mono_ns().saturating_sub(self.mono_ns))
    }

    /// The time of a kernel stamp.
    #[inline]
    pub(super) fn at_stamp(&self, real_ns: u64) -> Time {
        Time::from_ns(real_ns.saturating_sub(self.real_ns))
    }

    /// Sleeps until `time`, regardless of events.
    pub(super) fn sleep_until(&self, time: Time) {
        clock::sleep_until(self.mono_ns.saturating_add(time.ns()));
        self.serve(time);
        self.napped.set(self.now());
    }

    /// The timer of `time` is served now.
    fn serve(&self, time: Time) {
        self.see(time);
        let late = self.now().since(time);
        self.timers.borrow_mut().add(late.ns());
    }

    /// The first arrival since the last read, at `first`, is read now.
    pub(super) fn look(&self, first: Time) {
        self.see(first);
        if first >= self.napped.get() {
            let late = self.now().since(first);
            self.arrivals.borrow_mut().add(late.ns());
        }
    }

    /// An event that was due or happened at `time` is noticed now. The maximum delay is remembered.
    #[inline]
    fn see(&self, time: Time) {
        let late = self.now().since(time);
        self.latest.set(self.latest.get().max(late));
    }

    /// Adds the delays of an endpoint to its results.
    pub(super) fn with_delays(&self, outcome: EndpointOutcome) -> EndpointOutcome {
        EndpointOutcome {
            latest_ns: self.latest.get().ns(),
            woken: WakeupDelays::from_histograms(&self.arrivals.borrow(), &self.timers.borrow()),
            ..outcome
        }
    }

    /// Time left until `time`.
    fn until(&self, time: Time) -> Duration {
        let target = u128::from(self.mono_ns) + u128::from(time.ns());
        let now = u128::from(clock::mono_ns());
        Duration::from_nanos(u64::try_from(target.saturating_sub(now)).unwrap_or(u64::MAX))
    }
}

/// The times at which the state of a flow is sampled: on a grid that all flows share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleTimes {
    distance: Span,
    /// When the next sample is due.
    pub(super) next: Time,
}

impl SampleTimes {
    /// Every `distance` from `start`.
    pub(super) fn new(start: Time, distance: Span) -> Self {
        let first = start.ns().next_multiple_of(distance.ns());
        SampleTimes {
            distance,
            next: Time::from_ns(first),
        }
    }

    /// True if a sample is due, and advances to the next one. Missed samples are skipped.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        if now < self.next {
            return false;
        }
        let passed = now.since(self.next).ns() / self.distance.ns() + 1;
        self.next += Span::from_ns(self.distance.ns() * passed);
        true
    }
}

/// Adds the key of a socket to a list, once.
pub(super) fn add_key(keys: &mut Vec<u64>, key: u64) {
    if !keys.contains(&key) {
        keys.push(key);
    }
}

/// Key of the channel to the agent among the awaited events.
const AGENT: u64 = u64::MAX;

/// Waits for sockets, the agent and the clock together.
#[derive(Debug)]
pub(super) struct EventLoop {
    epoll: Epoll,
    events: Events,
}

impl EventLoop {
    /// Waits for the agent only.
    pub(super) fn new(channel: &Channel) -> Result<Self, RunError> {
        let epoll = Epoll::new().could_not("wait for events")?;
        epoll
            .add(channel.as_fd(), AGENT)
            .could_not("wait for the agent")?;
        Ok(EventLoop {
            epoll,
            events: Events::default(),
        })
    }

    /// Also waits for `socket` to be readable, reported as `key`.
    pub(super) fn until_readable(&mut self, socket: BorrowedFd, key: u64) -> Result<(), RunError> {
        self.epoll.add(socket, key).could_not("wait for a socket")
    }

    /// Also waits for any event of `socket`, reported as `key`.
    pub(super) fn until_changed(&mut self, socket: BorrowedFd, key: u64) -> Result<(), RunError> {
        self.epoll
            .add_edges(socket, key)
            .could_not("wait for a socket")
    }

    /// No longer waits for `socket`.
    pub(super) fn forget(&mut self, socket: BorrowedFd) -> Result<(), RunError> {
        self.epoll.remove(socket).could_not("wait for a socket")
    }

    /// Sleeps until an event occurs or `timeout` has passed.
    pub(super) fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), RunError> {
        self.epoll
            .wait(&mut self.events, timeout)
            .could_not("wait for events")
    }

    /// Sleeps until a socket is ready, the times of the flow change, or until `time`; ends the endpoint when the agent
    /// has ended.
    pub(super) fn wait(
        &mut self,
        clock: &RunClock,
        time: Time,
        channel: &mut Channel,
    ) -> Result<(), RunError> {
        loop {
            let left = clock.until(time);
            self.sleep(Some(punctual(left)))?;
            // Timers that are due already are not wake-ups: an application may ask for times in the past.
            if !left.is_zero() && clock.until(time).is_zero() {
                clock.serve(time);
            }
            let mut news = false;
            for key in self.events.keys() {
                news |= key != AGENT || clock.obey(channel)?;
            }
            if news || clock.until(time).is_zero() {
                return Ok(());
            }
        }
    }

    /// The sockets that were ready at the end of the last wait.
    pub(super) fn ready(&self) -> impl Iterator<Item = u64> + '_ {
        self.events.keys().filter(|&key| key != AGENT)
    }

    /// Adds to `ready` the sockets that were ready at the end of the last wait, and those that had `more`.
    pub(super) fn collect(&self, ready: &mut Vec<u64>, more: &mut Vec<u64>) {
        ready.extend(self.ready());
        more.drain(..).for_each(|key| add_key(ready, key));
    }

    /// Sleeps until the flow starts, but not longer than until `end`; regardless of the sockets.
    pub(super) fn wait_for_start(
        &mut self,
        clock: &RunClock,
        end: Time,
        channel: &mut Channel,
    ) -> Result<(), RunError> {
        while !clock.until(clock.start().min(end)).is_zero() {
            self.wait(clock, clock.start().min(end), channel)?;
        }
        Ok(())
    }

    /// Sleeps until `time`, regardless of the sockets.
    pub(super) fn wait_until(
        &mut self,
        clock: &RunClock,
        time: Time,
        channel: &mut Channel,
    ) -> Result<(), RunError> {
        // Checked this way because run time is zero before the start as well.
        while !clock.until(time).is_zero() {
            self.wait(clock, time, channel)?;
        }
        Ok(())
    }
}
