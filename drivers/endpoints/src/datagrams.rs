//! Flows of datagrams: an application that sends them, and a sink that judges what arrives.

use super::clock::{EventLoop, RunClock};
use super::receiver::DatagramReceiver;
use super::source::Source;
use super::{Channel, EndpointOutcome, EndpointTask, Role};
use narrows_cell::{Context, RunError};
use narrows_cell::{Flow, sink_counters};
use narrows_record::SenderCounters;
use narrows_sys::socket;
use narrows_traffic::{DatagramSink, IP_UDP, Stamp, TrafficAction, TrafficEvent};
use narrows_units::Time;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wanted size of the socket's buffers: 50 ms at 1 Gbit/s, with the kernel's overhead.
const SOCKET_BUFFER: i32 = 16 << 20;

/// A UDP socket for one end of a flow.
pub(super) fn prepare(task: &EndpointTask) -> Result<OwnedFd, RunError> {
    let socket = socket::udp_any().could_not("open a UDP socket")?;
    let fd = socket.as_fd();
    socket::prepare_udp(fd, SOCKET_BUFFER).could_not("prepare the UDP socket")?;
    socket::never_fragment(fd).could_not("prepare the UDP socket")?;
    if task.flow.dscp != 0 {
        socket::set_tos(fd, task.flow.dscp << 2).could_not("set the code point")?;
    }
    match task.role {
        Role::Sender => socket::connect(fd, task.server()).could_not("connect the UDP socket")?,
        Role::Receiver => socket::bind(fd, task.server()).could_not("bind the flow's port")?,
    }
    Ok(socket)
}

/// Sends what the application wants until the flow stops.
pub(super) fn send(
    socket: &OwnedFd,
    task: &EndpointTask,
    clock: &RunClock,
    channel: &mut Channel,
) -> Result<EndpointOutcome, RunError> {
    let mut sleeper = EventLoop::new(channel)?;
    let mut source = Source::new(task.cell, task.flow)?;
    sleeper.wait_until(clock, task.flow.start, channel)?;
    source.tell(task.flow.start, TrafficEvent::Start);
    let mut sender = Sender {
        socket: socket.as_fd(),
        flow: task.flow,
        sequence: 0,
        bytes: 0,
        payload: Vec::with_capacity(9216),
        refused: None,
    };
    let stop = task.stop();
    loop {
        let now = clock.now();
        if now >= stop {
            break;
        }
        source.wake(now);
        while let Some((_, action)) = source.next() {
            if let TrafficAction::Datagram { size } = action {
                sender.send(clock.now(), size)?;
            }
        }
        let until = source.next_wakeup().min(stop);
        sleeper.wait_until(clock, until, channel)?;
    }
    let mut outcome = EndpointOutcome {
        sender: SenderCounters {
            sent_packets: Some(sender.sequence),
            sent_bytes: Some(sender.bytes),
            ..SenderCounters::default()
        },
        problem: sender.refused,
        ..EndpointOutcome::default()
    };
    outcome.offer = Some(source.report());
    Ok(outcome)
}

struct Sender<'a> {
    socket: BorrowedFd<'a>,
    flow: &'a Flow,
    sequence: u64,
    bytes: u64,
    payload: Vec<u8>,
    /// Why a datagram was not sent.
    refused: Option<String>,
}

impl Sender<'_> {
    fn send(&mut self, now: Time, size: u32) -> Result<(), RunError> {
        let stamp = Stamp {
            sequence: self.sequence,
            sent: now,
        };
        stamp.encode(self.flow.flow, size, &mut self.payload);
        match socket::send(self.socket, &self.payload) {
            Ok(_) => {
                self.sequence += 1;
                self.bytes += u64::from(size);
                Ok(())
            }
            // The receiver's socket is not there any more: that was the answer to an earlier one.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                let text = format!("datagrams of {size} bytes are larger than the host's mtu");
                self.refused.get_or_insert(text);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let text = "the send buffer had no room for a datagram".to_owned();
                self.refused.get_or_insert(text);
                Ok(())
            }
            Err(error) => Err(error).could_not("send a datagram"),
        }
    }
}

/// Receives until the end of the run.
pub(super) fn receive(
    socket: &OwnedFd,
    task: &EndpointTask,
    clock: &RunClock,
    channel: &mut Channel,
) -> Result<EndpointOutcome, RunError> {
    let mut sleeper = EventLoop::new(channel)?;
    sleeper.until_readable(socket.as_fd(), 0)?;
    let end = task.cell.duration;
    let mut receiver = DatagramReceiver::new(end);
    let mut sink = DatagramSink::default();
    let mut garbage = 0u64;
    loop {
        // Asked before looking: what came in time is taken however late it is by now.
        let over = clock.now() >= end;
        let found =
            receiver.receive(socket.as_fd(), clock, |at, datagram| {
                match Stamp::decode(datagram.bytes) {
                    Some((flow, stamp)) if flow == task.flow.flow => {
                        sink.receive(at, stamp, datagram.bytes.len() as u32 + IP_UDP);
                    }
                    _ => garbage += 1,
                }
            })?;
        if found.more {
            continue;
        }
        if over {
            break;
        }
        sleeper.wait(clock, end, channel)?;
    }
    Ok(EndpointOutcome {
        receiver: sink_counters(&sink.report()),
        socket_drops: u64::from(receiver.dropped()),
        problem: (garbage > 0).then(|| format!("{garbage} datagrams were none of the flow's")),
        ..EndpointOutcome::default()
    })
}
