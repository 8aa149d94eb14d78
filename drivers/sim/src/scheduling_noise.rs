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

use crate::flow::Flows;
use crate::packet::{EndpointId, SimPacket};
use crate::packet_exchange::PacketExchange;
use crate::wakeup_clock::Clock;
use narrows_cell::{Cell, Noise};
use narrows_net::Packet;
use narrows_traffic::Class;
use narrows_units::{Span, Stream, Time};
use std::collections::VecDeque;

/// The processes of all hosts with delays, by flow and end; empty if no host has any.
pub(crate) struct DelayedProcesses(Vec<Option<DelayedProcess>>);

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
    /// While it runs: datagrams that it may still read, and endpoints that have acted.
    left: usize,
    acted: usize,
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

    /// Reads a datagram from its socket, and returns the endpoint to which it belongs, if that still exists; `None` also
    /// at the end of the batch.
    fn read(&mut self, exchange: &mut PacketExchange, flows: &mut Flows) -> Option<EndpointId> {
        while self.left > 0 {
            self.left -= 1;
            let (at, packet) = self.socket.pop_front()?;
            // Times never decrease; datagrams beyond a batch are seen when the next one is read.
            if let Some(id) = exchange.receive(at.max(self.latest), packet, flows) {
                if !self.due.contains(&id) {
                    self.due.push(id);
                }
                return Some(id);
            }
        }
        None
    }
}

impl DelayedProcesses {
    pub(crate) fn new(cell: &Cell) -> Self {
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
                left: 0,
                acted: 0,
                latest: Time::ZERO,
            })
        };
        let ends = cell.flows.iter().flat_map(|flow| [(flow, 0), (flow, 1)]);
        let mut processes: Vec<_> = ends.map(|(flow, end)| process(flow, end)).collect();
        if processes.iter().all(Option::is_none) {
            processes.clear();
        }
        DelayedProcesses(processes)
    }

    /// Number of processes, on time or not; 0 if none can be late.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a packet that has arrived into the socket of a delayed process; returns whether one exists.
    #[cold]
    pub(crate) fn deliver(
        &mut self,
        at: Time,
        packet: SimPacket,
        flows: &Flows,
        clock: &mut Clock,
    ) -> bool {
        let index = flows.index(packet);
        let flow = &flows.all[index];
        if flow.class == Class::Datagrams {
            return false;
        }
        let end = usize::from(packet.route() == flow.routes[0]);
        let arrive = |state: &mut DelayedProcess| state.socket.push_back((at, packet));
        self.make_ready(at, 2 * index + end, WakeCause::Arrival, clock, arrive)
    }

    /// Records that an endpoint is due, if its process is delayed; returns whether it is.
    #[cold]
    pub(crate) fn wait(&mut self, now: Time, index: usize, exchange: &mut PacketExchange) -> bool {
        let endpoint = &exchange.endpoints[index];
        let id = EndpointId {
            index: index as u32,
            serial: endpoint.serial,
        };
        let process = endpoint.process as usize;
        let clock = &mut exchange.clock;
        let waits = self.make_ready(now, process, WakeCause::Timer, clock, |state| {
            if !state.due.contains(&id) {
                state.due.push(id);
            }
        });
        if waits {
            clock.wake_endpoint(index, Time::FAR);
        }
        waits
    }

    /// Records an event of `process` at `now`, and makes it ready if it is not; returns whether it is delayed.
    fn make_ready(
        &mut self,
        now: Time,
        process: usize,
        cause: WakeCause,
        clock: &mut Clock,
        note: impl FnOnce(&mut DelayedProcess),
    ) -> bool {
        let Some(state) = &mut self.0[process] else {
            return false;
        };
        note(state);
        if !state.ready {
            state.ready = true;
            let at = now + state.delay(cause);
            clock.wake_process(process, at);
        }
        true
    }

    /// Begins the turn of a process.
    pub(crate) fn begin(&mut self, process: usize, clock: &mut Clock) {
        clock.wake_process(process, Time::FAR);
        if let Some(state) = &mut self.0[process] {
            state.left = state.noise.batch;
            state.acted = 0;
        }
    }

    /// Lets a process read a datagram, and returns the endpoint to which it belongs; `None` at the end of the batch.
    pub(crate) fn read_packet(
        &mut self,
        process: usize,
        exchange: &mut PacketExchange,
        flows: &mut Flows,
    ) -> Option<EndpointId> {
        self.0[process].as_mut()?.read(exchange, flows)
    }

    /// The next endpoint of a process that has work to do.
    pub(crate) fn due(&self, process: usize) -> Option<EndpointId> {
        let state = self.0[process].as_ref()?;
        state.due.get(state.acted).copied()
    }

    /// That endpoint has acted.
    pub(crate) fn advance(&mut self, process: usize) {
        if let Some(state) = &mut self.0[process] {
            state.acted += 1;
        }
    }

    /// Ends the turn of a process, whose endpoints have acted.
    pub(crate) fn end(&mut self, now: Time, process: usize, clock: &mut Clock) {
        let Some(state) = &mut self.0[process] else {
            return;
        };
        state.due.clear();
        state.latest = now;
        state.ready = !state.socket.is_empty();
        if state.ready {
            clock.wake_process(process, now);
        }
    }

    /// At the end of the run all arrivals count, read or not.
    pub(crate) fn read_the_rest(&mut self, exchange: &mut PacketExchange, flows: &mut Flows) {
        for state in self.0.iter_mut().flatten() {
            state.left = usize::MAX;
            while state.read(exchange, flows).is_some() {}
        }
    }
}
