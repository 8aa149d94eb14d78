//! Hosts that act late: what a process does about an arrival or a timer, it does when it has been woken.
//!
//! Each end of a flow is a process on its host. The first datagram that reaches its socket, or a timer that runs
//! out, makes it ready to run; it runs after a delay drawn from the host's [`Noise`]. Whatever else arrives or
//! falls due until then waits for the same moment:
//!
//! ```text
//!             first datagram        second                 runs: reads both, then sends
//!  socket  -------|-------------------|-------------------------|--------------------->
//!                 |<------- drawn from the noise of arrivals -->|
//! ```
//!
//! It then reads its socket, datagram by datagram with the time at which each arrived, as a kernel stamps them,
//! and only afterwards sends: one acknowledgement stands for all that a reading found, and packets whose time had
//! come leave together. Reading stops after a batch; what is left is read after what the batch has caused was sent.
//!
//! Sources of datagrams without a scheme and applications keep their times: nothing comes back to them.

use crate::flow::FlowState;
use crate::packet::{SimPacket, SimPacketKind};
use crate::world::{ENDPOINTS, World};
use narrows_cell::{Cell, Noise};
use narrows_units::{Span, Stream, Time, Wakeups};
use std::collections::VecDeque;

/// Somebody at one end of a flow who has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// The sender of a pipe, and which of the pipes that had this index.
    Sender { pipe: u32, serial: u32 },
    /// The receiver of one.
    Receiver { pipe: u32, serial: u32 },
    /// One end of a flow of a real-time scheme.
    Media { flow: u16, part: u8 },
}

/// The processes of all hosts that are late, by flow and end.
pub(crate) struct DelayedProcesses {
    processes: Vec<Option<DelayedProcess>>,
    /// When those run that are ready.
    pub(crate) wakeups: Wakeups,
}

/// One end of a flow on a host that is late.
struct DelayedProcess {
    noise: &'static Noise,
    stream: Stream,
    /// Something has made it ready, and it has not run since.
    ready: bool,
    /// Arrivals that it has not read.
    socket: VecDeque<(Time, SimPacket)>,
    /// Whose time has come, and, while it runs, for whom something has arrived.
    due: Vec<Wants>,
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
    /// The late ends of all flows of `cell`; `None` if no host is late.
    pub(crate) fn of(cell: &Cell) -> Option<Box<Self>> {
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
        processes.iter().any(Option::is_some).then(|| {
            Box::new(DelayedProcesses {
                wakeups: Wakeups::new(processes.len()),
                processes,
            })
        })
    }

    /// Makes `process` ready, if it is not, because of something that happened at `now`.
    fn schedule(&mut self, now: Time, process: usize, cause: WakeCause) {
        if let Some(one) = &mut self.processes[process]
            && !one.ready
        {
            one.ready = true;
            let at = now + one.delay(cause);
            self.wakeups.set(process, at);
        }
    }
}

/// The end of `flow` that a packet on `route` goes to.
fn goes_to(flow: &FlowState, route: u16) -> usize {
    usize::from(route == flow.routes[0])
}

impl World {
    /// Leaves a packet that has arrived in the socket of a process that is late; says whether there is one.
    #[cold]
    pub(crate) fn deliver_to_socket(&mut self, at: Time, packet: SimPacket) -> bool {
        if packet.kind == SimPacketKind::Datagram {
            return false;
        }
        let index = usize::from(self.index[usize::from(packet.flow)]);
        let process = 2 * index + goes_to(&self.flows[index], packet.route);
        let Some(late) = &mut self.delayed_processes else {
            return false;
        };
        let Some(one) = &mut late.processes[process] else {
            return false;
        };
        one.socket.push_back((at, packet));
        late.schedule(at, process, WakeCause::Arrival);
        self.schedule_sampler();
        true
    }

    /// Notes that the time of `whose` has come, if the process is late to which it belongs; says whether it is.
    #[cold]
    pub(crate) fn wait_for_processor(&mut self, now: Time, whose: Wants) -> bool {
        let process = match whose {
            Wants::Sender { pipe, .. } => 2 * self.flow_of(pipe) + self.sender_end(pipe),
            Wants::Receiver { pipe, .. } => 2 * self.flow_of(pipe) + 1 - self.sender_end(pipe),
            Wants::Media { flow, part } => 2 * usize::from(flow) + usize::from(part),
        };
        let Some(late) = &mut self.delayed_processes else {
            return false;
        };
        let Some(one) = &mut late.processes[process] else {
            return false;
        };
        if !one.due.contains(&whose) {
            one.due.push(whose);
        }
        late.schedule(now, process, WakeCause::Timer);
        match whose {
            Wants::Sender { pipe, .. } => {
                self.wakeups.set(ENDPOINTS + 2 * pipe as usize, Time::FAR);
            }
            Wants::Receiver { pipe, .. } => {
                let part = ENDPOINTS + 2 * pipe as usize + 1;
                self.wakeups.set(part, Time::FAR);
            }
            Wants::Media { flow, part } => {
                let part = 2 * usize::from(flow) + usize::from(part);
                self.media.set(part, Time::FAR);
            }
        }
        self.schedule_sampler();
        true
    }

    fn flow_of(&self, pipe: u32) -> usize {
        let connection = self.pipes[pipe as usize].connection;
        usize::from(self.connections[connection as usize].flow)
    }

    /// At which end of its flow the sender of a pipe is.
    fn sender_end(&self, pipe: u32) -> usize {
        usize::from(!self.pipes[pipe as usize].is_data)
    }

    /// Lets the processes run whose turn has come by now.
    pub(crate) fn run_delayed_processes(&mut self, now: Time) {
        while let Some(late) = &mut self.delayed_processes {
            let (at, process) = late.wakeups.earliest();
            if at > now {
                return;
            }
            late.wakeups.set(process, Time::FAR);
            self.run_process(now, process);
        }
    }

    /// Reads a batch, then lets everybody act who has something to do.
    fn run_process(&mut self, now: Time, process: usize) {
        let Some(mut one) = self.take_process(process) else {
            return;
        };
        self.read(&mut one);
        let mut due = std::mem::take(&mut one.due);
        for &whose in &due {
            if self.is_there(whose) {
                self.run_endpoint(now, whose);
            }
        }
        due.clear();
        one.due = due;
        one.latest = now;
        one.ready = !one.socket.is_empty();
        if let Some(late) = &mut self.delayed_processes {
            if one.ready {
                late.wakeups.set(process, now);
            }
            late.processes[process] = Some(one);
        }
    }

    fn take_process(&mut self, process: usize) -> Option<DelayedProcess> {
        self.delayed_processes.as_mut()?.processes[process].take()
    }

    /// Reads one batch from a socket.
    fn read(&mut self, one: &mut DelayedProcess) {
        for _ in 0..one.noise.batch {
            let Some((at, packet)) = one.socket.pop_front() else {
                return;
            };
            // Times never decrease; what a batch has left over is seen when the next one is read.
            if let Some(whose) = self.on_packet(at.max(one.latest), packet)
                && !one.due.contains(&whose)
            {
                one.due.push(whose);
            }
        }
    }

    /// True if somebody who has something to do has not gone since.
    fn is_there(&self, whose: Wants) -> bool {
        match whose {
            Wants::Sender { pipe, serial } | Wants::Receiver { pipe, serial } => {
                self.pipes[pipe as usize].serial == serial
            }
            Wants::Media { .. } => true,
        }
    }

    /// At the end of the run everything counts that has arrived, read or not.
    pub(crate) fn read_the_rest(&mut self) {
        let count = self
            .delayed_processes
            .as_ref()
            .map_or(0, |late| late.processes.len());
        for process in 0..count {
            if let Some(mut one) = self.take_process(process) {
                while !one.socket.is_empty() {
                    self.read(&mut one);
                }
            }
        }
    }
}
