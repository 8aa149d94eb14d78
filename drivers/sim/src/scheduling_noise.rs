//! Hosts with scheduling delays: a process reacts to an arrival or a timer when it has been woken.
//!
//! Each end of a flow is a process on its host. The first datagram that reaches its socket, or a timer that expires,
//! makes it ready to run; it runs after a delay drawn from the host's [`Noise`]. All further arrivals and timers until
//! then wait for the same time:
//!
//! ```text
//!             first datagram        second                 runs: reads both, then sends
//!  socket  -------|-------------------|-------------------------|--------------------->
//!                 |<------- drawn from the noise of arrivals -->|
//! ```
//!
//! It then reads its socket, datagram by datagram with the arrival time of each, like a kernel's stamps, and only
//! afterwards sends: one acknowledgement covers all datagrams of a read, and packets that are due leave together.
//! Reading stops after a batch; the rest is read after the reactions to the batch have been sent.
//!
//! Sources of datagrams without a scheme and applications keep their times: they receive nothing.

use crate::endpoints::EndpointId;
use crate::packet::SimPacket;
use crate::world::World;
use narrows_cell::{Cell, Noise};
use narrows_net::Packet;
use narrows_traffic::Class;
use narrows_units::{Span, Stream, Time};
use std::collections::VecDeque;

/// The processes of all hosts with delays, by flow and end.
pub(crate) struct DelayedProcesses {
    pub(crate) processes: Vec<Option<DelayedProcess>>,
}

/// One end of a flow on a host with delays.
pub(crate) struct DelayedProcess {
    noise: &'static Noise,
    stream: Stream,
    /// True if it has become ready and has not run since.
    ready: bool,
    /// Arrivals that it has not read.
    socket: VecDeque<(Time, SimPacket)>,
    /// Endpoints that are due and, while it runs, those with arrivals.
    due: Vec<EndpointId>,
    /// When it last ran.
    latest: Time,
}

/// Reason for which a process is ready.
#[derive(Clone, Copy)]
enum WakeCause {
    Arrival,
    Timer,
}

impl DelayedProcess {
    /// Time from now until it runs.
    fn delay(&mut self, cause: WakeCause) -> Span {
        match cause {
            WakeCause::Arrival => self.noise.arrivals.sample(&mut self.stream),
            WakeCause::Timer => self.noise.timers.sample(&mut self.stream),
        }
    }
}

impl DelayedProcesses {
    /// The delayed ends of all flows of `cell`; `None` if no host has delays.
    pub(crate) fn new(cell: &Cell) -> Option<Box<Self>> {
        let process = |flow: &narrows_cell::Flow, end: usize| {
            let host = [flow.from, flow.to][end];
            let noise = cell.hosts[usize::from(host)].noise()?;
            let name = format!("noise/{}/{}", flow.flow, ["from", "to"][end]);
            Some(DelayedProcess {
                noise,
                stream: Stream::new(cell.seed, &name),
                ready: false,
                socket: VecDeque::new(),
                due: Vec::new(),
                latest: Time::ZERO,
            })
        };
        let ends = cell.flows.iter().flat_map(|flow| [(flow, 0), (flow, 1)]);
        let processes: Vec<_> = ends.map(|(flow, end)| process(flow, end)).collect();
        let any = processes.iter().any(Option::is_some);
        any.then(|| Box::new(DelayedProcesses { processes }))
    }
}

impl World {
    /// Puts a packet that has arrived into the socket of a delayed process; returns whether there is one.
    #[cold]
    pub(crate) fn deliver_to_socket(&mut self, at: Time, packet: SimPacket) -> bool {
        let index = usize::from(self.index[usize::from(packet.flow())]);
        let flow = &self.flows[index];
        if flow.class == Class::Datagrams {
            return false;
        }
        let end = usize::from(packet.route() == flow.routes[0]);
        let arrive = |state: &mut DelayedProcess| state.socket.push_back((at, packet));
        self.make_ready(at, 2 * index + end, WakeCause::Arrival, arrive)
    }

    /// Records that an endpoint is due, if its process is delayed; returns whether it is.
    #[cold]
    pub(crate) fn wait_for_processor(&mut self, now: Time, index: usize) -> bool {
        let endpoint = &self.endpoints[index];
        let id = EndpointId {
            index: index as u32,
            serial: endpoint.serial,
        };
        let process = endpoint.process as usize;
        let waits = self.make_ready(now, process, WakeCause::Timer, |state| {
            if !state.due.contains(&id) {
                state.due.push(id);
            }
        });
        if waits {
            self.wakeups.set(self.parts.endpoint(index), Time::FAR);
        }
        waits
    }

    /// Records an event of `process` at `now`, and makes it ready if it is not; returns whether it is delayed.
    fn make_ready(
        &mut self,
        now: Time,
        process: usize,
        cause: WakeCause,
        note: impl FnOnce(&mut DelayedProcess),
    ) -> bool {
        let late = self.delayed_processes.as_mut();
        let Some(state) = late.and_then(|late| late.processes[process].as_mut()) else {
            return false;
        };
        note(state);
        if !state.ready {
            state.ready = true;
            let at = now + state.delay(cause);
            self.wakeups.set(self.parts.process(process), at);
        }
        true
    }

    /// Reads a batch, then lets all endpoints act that have work to do.
    pub(crate) fn run_process(&mut self, now: Time, process: usize) {
        self.wakeups.set(self.parts.process(process), Time::FAR);
        let Some(mut state) = self.take_process(process) else {
            return;
        };
        self.read(&mut state);
        let mut due = std::mem::take(&mut state.due);
        for &id in &due {
            if self.exists(id) {
                self.respond(now, id.index as usize);
            }
        }
        due.clear();
        state.due = due;
        state.latest = now;
        state.ready = !state.socket.is_empty();
        if state.ready {
            self.wakeups.set(self.parts.process(process), now);
        }
        if let Some(late) = &mut self.delayed_processes {
            late.processes[process] = Some(state);
        }
    }

    fn take_process(&mut self, process: usize) -> Option<DelayedProcess> {
        self.delayed_processes.as_mut()?.processes[process].take()
    }

    /// Reads one batch from a socket.
    fn read(&mut self, state: &mut DelayedProcess) {
        for _ in 0..state.noise.batch {
            let Some((at, packet)) = state.socket.pop_front() else {
                return;
            };
            // Times never decrease; datagrams beyond a batch are seen when the next one is read.
            if let Some(id) = self.on_packet(at.max(state.latest), packet)
                && !state.due.contains(&id)
            {
                state.due.push(id);
            }
        }
    }

    /// At the end of the run all arrivals count, read or not.
    pub(crate) fn read_the_rest(&mut self) {
        let count = self
            .delayed_processes
            .as_ref()
            .map_or(0, |late| late.processes.len());
        for process in 0..count {
            if let Some(mut state) = self.take_process(process) {
                while !state.socket.is_empty() {
                    self.read(&mut state);
                }
            }
        }
    }
}
