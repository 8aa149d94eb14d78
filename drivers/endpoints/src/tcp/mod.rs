//! Flows of the kernel's TCP: `linux:NAME`, with any number of connections.
//!
//! The client runs the application and connects to the server's port as it requests; the server accepts connections and
//! sends the answers that a [`TransferHeader`](narrows_traffic::TransferHeader) asks for. The one that sends the data
//! is sampled and stops with the flow.

mod client;
mod sample;
mod server;

pub(super) use client::Client;
pub(super) use server::Server;

use super::{EndpointTask, Role};
use narrows_cell::{Context, RunError};
use narrows_sys::socket;
use sample::{Sampler, Totals};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes per write.
const WRITE: usize = 256 * 1024;
/// Bytes read from the receive buffer per call.
const READ: usize = 4 << 20;
/// Reads per event, so that one fast connection leaves time for the others.
const READS: usize = 8;
/// Data of an endless transfer that wake the reader: 1 ms at 1 Gbit/s.
const BULK_MARK: u32 = 128 * 1024;

/// A TCP socket with all settings of the flow, neither bound nor connected. The end that receives the data also works
/// with another congestion control, if its kernel lacks this one.
fn open(task: &EndpointTask, name: Option<&str>) -> Result<OwnedFd, RunError> {
    let flow = task.flow;
    let socket = socket::tcp().could_not("open a TCP socket")?;
    let fd = socket.as_fd();
    if let Some(name) = name
        && let Err(error) = socket::set_congestion(fd, name)
        && task.role == Role::Sender
    {
        return Err(RunError::Unavailable(format!(
            "flow {}: the kernel refuses the congestion control '{name}' ({error})",
            flow.flow
        )));
    }
    socket::set_unsent_limit(fd, task.unsent).could_not("limit the send buffer")?;
    if flow.dscp != 0 {
        socket::set_tos(fd, flow.dscp << 2).could_not("set the code point")?;
    }
    if let Some(window) = receive_window(task) {
        socket::set_window_clamp(fd, window).could_not("limit the receive window")?;
    }
    Ok(socket)
}

/// The limit of the window that this end offers, if it receives the data.
fn receive_window(task: &EndpointTask) -> Option<u64> {
    task.window().filter(|_| task.role == Role::Receiver)
}

/// Limits the window again. Kernels since 6.12 recompute it from the receive buffer whenever segments of another size
/// arrive (tcp_measure_rcv_mss), and discard the limit.
fn limit_window(fd: BorrowedFd, window: Option<u64>) {
    if let Some(window) = window {
        // It was accepted when the socket was created.
        let _ = socket::set_window_clamp(fd, window);
    }
}

/// Discards the data in the receive buffer; `None` if it is empty, 0 at the end of the stream.
fn discard(fd: BorrowedFd, limit: u64) -> io::Result<Option<usize>> {
    match socket::discard(fd, limit.min(READ as u64) as usize) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The end of a turn of a connection.
enum Turn {
    /// Nothing to do until the next event.
    Waits,
    /// More data can be read.
    HasMore,
    /// Both halves have ended.
    Over,
}

/// Ends the connections that are `left` when a flow stops, and adds the counters of all to `outcome`.
fn abort<'a>(
    left: impl Iterator<Item = BorrowedFd<'a>>,
    role: Role,
    mut totals: Totals,
    outcome: &mut super::EndpointOutcome,
) -> Result<(), RunError> {
    for fd in left {
        totals.add(fd);
        // The flow is stopped and not finished: remaining data must not be delivered.
        socket::abort_on_close(fd).could_not("abort a connection")?;
    }
    match role {
        Role::Sender => totals.sender(outcome),
        Role::Receiver => totals.receiver(outcome),
    }
    Ok(())
}

/// Checks the congestion control that the socket of a sender uses.
fn read_back(
    fd: BorrowedFd,
    task: &EndpointTask,
    name: Option<&str>,
    outcome: &mut super::EndpointOutcome,
) {
    if task.role == Role::Receiver {
        return;
    }
    let found = socket::congestion(fd).ok();
    if let Some(name) = name
        && outcome.problem.is_none()
        && found.as_deref() != Some(name)
    {
        let now = found.as_deref().unwrap_or("nothing");
        outcome.problem = Some(format!("the kernel used '{now}' in place of '{name}'"));
    }
    outcome.read_back = found;
}
