//! The ends of flows: separate processes inside the hosts.
//!
//! An endpoint is this same program, started again inside the namespace of its host. It prepares its sockets, reports
//! that it is ready, waits for the start of the run, runs its end of the flow and reports. It ends as soon as the
//! agent's side of the channel closes for any reason.
#![forbid(unsafe_code)]

pub mod bpf;
mod channel;
mod clock;
mod connectionless;
mod link;
mod live;
mod program;
mod receiver;
mod sender;
mod source;
pub mod supervisor;
mod tcp;
mod udp;

pub use channel::{AgentCommand, Channel, EndpointMessage, Received};
use narrows_cell::{EndpointOutcome, Role, SentFrame, StateSample, TcpLimits, WakeupDelays};

use clock::RunClock;
use narrows_cell::addressing;
use narrows_cell::addressing::FLOW_PORTS;
use narrows_cell::{Cell, Flow, SchemeRef, load_files};
use narrows_cell::{Context, RunError};
use narrows_sys::privileges::{self, Need};
use narrows_sys::{cpu, process};
use narrows_units::Time;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Niceness of the endpoints' sessions, if it may be set: they should wait for the network and not for other programs.
const PRIORITY: i32 = -10;

/// Index of the host on which one end of a flow runs.
pub fn host_at(flow: &Flow, role: Role) -> u16 {
    match role {
        Role::Sender => flow.from,
        Role::Receiver => flow.to,
    }
}

/// The task of one endpoint.
#[derive(Clone, Copy)]
struct EndpointTask<'a> {
    cell: &'a Cell,
    flow: &'a Flow,
    role: Role,
    /// Unsent bytes to keep in the send buffer of a connection.
    unsent: u32,
    /// Addresses of the hosts, unless they are those of emulated hosts.
    addresses: Option<[Ipv4Addr; 2]>,
    /// True if a sender reports its state during the run.
    is_live: bool,
}

impl EndpointTask<'_> {
    /// True if the application runs here.
    fn is_client(&self) -> bool {
        host_at(self.flow, self.role) == self.flow.client()
    }

    /// The flow's port on the host with this index.
    fn port_at(&self, host: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.address_at(host), FLOW_PORTS + self.flow.flow)
    }

    /// Address of the host with this index.
    fn address_at(&self, host: u16) -> Ipv4Addr {
        match &self.addresses {
            Some(addresses) => addresses[usize::from(host)],
            None => addressing::address(host),
        }
    }

    /// Address on which the server of the flow listens, by which the emulator identifies its packets.
    fn server(&self) -> SocketAddrV4 {
        self.port_at(self.flow.server())
    }

    /// When the end that sends the data stops sending.
    fn stop(&self) -> Time {
        self.flow.stop.min(self.cell.duration)
    }

    /// When this end has finished: the sender of the data stops, the receiver listens until the end of the run.
    fn end(&self) -> Time {
        match self.role {
            Role::Sender => self.stop(),
            Role::Receiver => self.cell.duration,
        }
    }

    /// Maximum number of bytes that either host allows a connection to have in flight.
    fn window(&self) -> Option<u64> {
        let of = |host: u16| self.cell.hosts.get(usize::from(host))?.window();
        [of(self.flow.from), of(self.flow.to)]
            .into_iter()
            .flatten()
            .min()
    }
}

/// The main function of an endpoint process; `fd` is the inherited channel.
///
/// # Errors
/// The reason why the endpoint failed; the agent has been notified as well, if it still listens.
pub fn endpoint_main(fd: i32) -> Result<(), RunError> {
    let fd = process::take_inherited(fd).could_not("use the channel to the agent")?;
    let mut channel = Channel::from_fd(fd);
    let result = play(&mut channel);
    if let Err(error) = &result {
        // The agent may have ended, which is why the endpoint fails.
        let unavailable = matches!(error, RunError::Unavailable(_));
        let _ = channel.send(&EndpointMessage::Failed {
            message: error.to_string(),
            unavailable,
            program: matches!(error, RunError::Program(_)),
        });
    }
    result
}

fn play(channel: &mut Channel) -> Result<(), RunError> {
    let AgentCommand::Prepare {
        cell,
        files,
        flow,
        role,
        unsent,
        loaded,
        addresses,
        is_live,
        logs,
    } = wait_for_command(channel)?
    else {
        return Err(RunError::Internal(
            "the endpoint was started before it was prepared".into(),
        ));
    };
    let cell = Cell::parse_with(&cell, |json| load_files(json, &files))?;
    let number = flow;
    let flow = cell
        .flows
        .iter()
        .find(|flow| flow.flow == number)
        .ok_or_else(|| RunError::Internal(format!("the cell has no flow {number}")))?;
    cpu::precise_timers();
    // A socket per connection.
    narrows_sys::process::raise_file_limit();
    cpu::prefer_session(PRIORITY);
    let task = EndpointTask {
        cell: &cell,
        flow,
        role,
        unsent,
        addresses,
        is_live,
    };
    let mut outcome = match (&flow.scheme, role) {
        (SchemeRef::Kernel(name), _) => kernel_tcp(&task, Some(name), channel)?,
        (SchemeRef::Bpf(_), Role::Sender) if loaded.is_none() => {
            return Err(RunError::Internal(format!(
                "nothing was loaded for flow {number}"
            )));
        }
        // A receiver on another host than the one with the loaded congestion control works without it.
        (SchemeRef::Bpf(_), _) => kernel_tcp(&task, loaded.as_deref(), channel)?,
        (SchemeRef::Media(..) | SchemeRef::Datagrams, _) => {
            let node = connectionless::Node::prepare(&task)?;
            let clock = get_ready(&task, channel, Need::Nothing)?;
            clock.with_delays(node.run(&clock, channel)?)
        }
        (SchemeRef::Program(program), _) => program::run(&task, program, &logs, channel)?,
        (SchemeRef::Native(..), _) => {
            let node = udp::Node::prepare(&task)?;
            let clock = get_ready(&task, channel, Need::Nothing)?;
            clock.with_delays(node.run(&clock, channel)?)
        }
    };
    // The process of a program has taken its times at the end of the run.
    if outcome.program.is_none()
        && let Some((run_ns, wait_ns)) = cpu::run_and_wait_ns(std::process::id())
    {
        (outcome.run_ns, outcome.wait_ns) = (run_ns, wait_ns);
    }
    channel
        .send(&EndpointMessage::Done(Box::new(outcome)))
        .could_not("report to the agent")
}

/// One end of a flow of the kernel's TCP with the congestion control called `name`, or the kernel's default.
fn kernel_tcp(
    task: &EndpointTask,
    name: Option<&str>,
    channel: &mut Channel,
) -> Result<EndpointOutcome, RunError> {
    if task.is_client() {
        let client = tcp::Client::prepare(task, name)?;
        let clock = get_ready(task, channel, Need::CongestionControls)?;
        client
            .run(&clock, channel)
            .map(|outcome| clock.with_delays(outcome))
    } else {
        let server = tcp::Server::prepare(task, name)?;
        let clock = get_ready(task, channel, Need::CongestionControls)?;
        server
            .run(&clock, channel)
            .map(|outcome| clock.with_delays(outcome))
    }
}

/// Drops all privileges that are no longer needed, reports readiness and waits for the start.
fn get_ready(task: &EndpointTask, channel: &mut Channel, need: Need) -> Result<RunClock, RunError> {
    privileges::give_up(need).could_not("give up the rights of the endpoint")?;
    channel
        .send(&EndpointMessage::Ready)
        .could_not("report to the agent")?;
    match wait_for_command(channel)? {
        AgentCommand::Start { real_ns, mono_ns } => {
            Ok(RunClock::new(real_ns, mono_ns).for_task(task))
        }
        AgentCommand::Prepare { .. } | AgentCommand::Reschedule { .. } => {
            Err(RunError::Internal("the endpoint was prepared twice".into()))
        }
    }
}

fn wait_for_command(channel: &mut Channel) -> Result<AgentCommand, RunError> {
    let mut sleeper = clock::EventLoop::new(channel)?;
    loop {
        match channel.receive().could_not("hear from the agent")? {
            Received::Document(command) => return Ok(command),
            Received::Nothing => sleeper.sleep(None)?,
            Received::End => return Err(gone()),
        }
    }
}

fn gone() -> RunError {
    RunError::Interrupted(libc::SIGHUP)
}

/// The next command of the agent, if there is one; ends the endpoint when the agent's side of the channel has closed.
fn hear_agent(channel: &mut Channel) -> Result<Option<AgentCommand>, RunError> {
    match channel.receive().could_not("hear from the agent")? {
        Received::Document(command) => Ok(Some(command)),
        Received::Nothing => Ok(None),
        Received::End => Err(gone()),
    }
}
