//! The ends of flows: processes of their own inside the hosts.
//!
//! An endpoint is this same program, started again inside the namespace of its host. It prepares
//! its sockets, says that it is ready, waits for the start of the run, plays its part and reports.
//! It ends as soon as the agent's side of the channel closes, however that happens.

mod channel;
mod clock;
mod tcp;
mod udp;

pub use channel::{Channel, Limits, News, Order, Outcome, Received, Role, State};

use crate::emulator::frame::FLOW_PORTS;
use crate::error::{Context, LiveError};
use crate::hosts;
use crate::sys::{cpu, process};
use clock::RunClock;
use narrows_cell::{Cell, Flow, SchemeRef};
use std::net::SocketAddrV4;

/// Niceness of the endpoints' sessions, where we may choose it: they are to wait for the network and
/// not for other programs.
const PRIORITY: i32 = -10;

/// Index of the host on which one end of a flow runs.
pub fn host_at(flow: &Flow, role: Role) -> u16 {
    match role {
        Role::Sender => flow.from,
        Role::Receiver => flow.to,
    }
}

/// Own and peer's address of one end of a flow. Flow k uses one port on both hosts, by which the
/// emulator knows its packets.
fn addresses(flow: &Flow, role: Role) -> (SocketAddrV4, SocketAddrV4) {
    let port = FLOW_PORTS + flow.flow;
    let (own, peer) = match role {
        Role::Sender => (flow.from, flow.to),
        Role::Receiver => (flow.to, flow.from),
    };
    (
        SocketAddrV4::new(hosts::address(own), port),
        SocketAddrV4::new(hosts::address(peer), port),
    )
}

/// The body of an endpoint process; `fd` is the inherited channel.
///
/// # Errors
/// What kept the endpoint from working; the agent has been told too, if it still listens.
pub fn endpoint_main(fd: i32) -> Result<(), LiveError> {
    let fd = process::inherited(fd).could_not("use the channel to the agent")?;
    let mut channel = Channel::from_fd(fd);
    let result = play(&mut channel);
    if let Err(error) = &result {
        // The agent may be gone, which is why the endpoint fails.
        let unavailable = matches!(error, LiveError::Unavailable(_));
        let _ = channel.send(&News::Failed {
            message: error.to_string(),
            unavailable,
        });
    }
    result
}

fn play(channel: &mut Channel) -> Result<(), LiveError> {
    let Order::Prepare { cell, flow, role } = wait_for_order(channel)? else {
        return Err(LiveError::Internal(
            "the endpoint was started before it was prepared".into(),
        ));
    };
    let cell = Cell::parse(&cell)?;
    let number = flow;
    let flow = cell
        .flows
        .iter()
        .find(|flow| flow.flow == number)
        .ok_or_else(|| LiveError::Internal(format!("the cell has no flow {number}")))?;
    cpu::precise_timers();
    cpu::prefer_session(PRIORITY);
    let mut outcome = match (&flow.scheme, role) {
        (SchemeRef::Kernel(name), Role::Sender) => {
            let socket = tcp::prepare_sender(flow, name)?;
            let clock = get_ready(channel)?;
            tcp::send(&socket, &cell, flow, name, &clock, channel)?
        }
        (SchemeRef::Kernel(_), Role::Receiver) => {
            let socket = tcp::prepare_receiver(flow)?;
            let clock = get_ready(channel)?;
            tcp::receive(&socket, &cell, &clock, channel)?
        }
        (SchemeRef::Datagrams, _) => {
            return Err(LiveError::Unavailable(format!(
                "flow {number}: datagrams are not sent on this plane"
            )));
        }
        (SchemeRef::Native(..), role) => {
            let socket = udp::prepare(flow, role)?;
            let clock = get_ready(channel)?;
            udp::run(&socket, &cell, flow, role, &clock, channel)?
        }
    };
    if let Some((run_ns, wait_ns)) = cpu::run_and_wait_ns(std::process::id()) {
        (outcome.run_ns, outcome.wait_ns) = (run_ns, wait_ns);
    }
    channel
        .send(&News::Done(Box::new(outcome)))
        .could_not("report to the agent")
}

/// Says that everything is prepared and waits for the start.
fn get_ready(channel: &mut Channel) -> Result<RunClock, LiveError> {
    channel
        .send(&News::Ready)
        .could_not("report to the agent")?;
    match wait_for_order(channel)? {
        Order::Start { real_ns, mono_ns } => Ok(RunClock::new(real_ns, mono_ns)),
        Order::Prepare { .. } => Err(LiveError::Internal(
            "the endpoint was prepared twice".into(),
        )),
    }
}

fn wait_for_order(channel: &mut Channel) -> Result<Order, LiveError> {
    let mut sleeper = clock::Sleeper::new(channel)?;
    loop {
        match channel.receive().could_not("hear from the agent")? {
            Received::Document(order) => return Ok(order),
            Received::Nothing => sleeper.sleep(None)?,
            Received::End => return Err(gone()),
        }
    }
}

fn gone() -> LiveError {
    LiveError::Interrupted(libc::SIGHUP)
}

/// Ends the endpoint when the agent's side of the channel has closed.
fn check_agent(channel: &mut Channel) -> Result<(), LiveError> {
    match channel
        .receive::<Order>()
        .could_not("hear from the agent")?
    {
        Received::End => Err(gone()),
        _ => Ok(()),
    }
}
