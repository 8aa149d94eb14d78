//! Flows of our own transport: the core's sender and receiver over a UDP socket.

use super::clock::{RunClock, Sleeper};
use super::{Channel, Outcome, Role, State, addresses, check_agent};
use crate::error::{Context, LiveError};
use crate::sys::mmsg::{ReceiveBatch, SendBatch};
use crate::sys::socket;
use narrows_cell::{Cell, Flow, SchemeRef, native_flow, state_row, trace_rows};
use narrows_transport::{Body, Endpoint, Receiver, Sender, wire};
use narrows_units::{Ecn, Span, Stream, Time};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wanted size of the socket's buffers: 50 ms at 1 Gbit/s, with the kernel's overhead.
const SOCKET_BUFFER: i32 = 16 << 20;
/// Samples and the agent are looked after at least this often, even under load.
const ROUND: usize = 256;

/// A UDP socket that knows its peer.
pub(super) fn prepare(flow: &Flow, role: Role) -> Result<OwnedFd, LiveError> {
    let socket = socket::udp_any().could_not("open a UDP socket")?;
    let (own, peer) = addresses(flow, role);
    socket::bind(socket.as_fd(), own).could_not("bind the flow's port")?;
    socket::prepare_udp(socket.as_fd(), SOCKET_BUFFER).could_not("prepare the UDP socket")?;
    socket::never_fragment(socket.as_fd()).could_not("prepare the UDP socket")?;
    socket::set_tos(socket.as_fd(), flow.dscp << 2).could_not("set the code point")?;
    socket::connect(socket.as_fd(), peer).could_not("connect the UDP socket")?;
    Ok(socket)
}

/// Runs one end of `flow` until the flow stops (sender) or the run ends (receiver).
pub(super) fn run(
    socket: &OwnedFd,
    cell: &Cell,
    flow: &Flow,
    role: Role,
    clock: &RunClock,
    channel: &mut Channel,
) -> Result<Outcome, LiveError> {
    let mut sleeper = Sleeper::new(channel)?;
    sleeper.wait_until(clock, flow.start.min(cell.duration), channel)?;
    sleeper.until_readable(socket.as_fd(), 0)?;
    let mut pump = Pump::new(socket, flow);
    let mut outcome = Outcome::default();
    match role {
        Role::Sender => {
            let SchemeRef::Native(scheme, params) = &flow.scheme else {
                return Err(LiveError::Internal("this scheme is not one of ours".into()));
            };
            // The same name as in the simulator: the same seed gives the same random numbers.
            let random = Stream::new(cell.seed, &format!("flow/{}", flow.flow));
            let mut sender = Sender::new(
                cell.transport(flow, flow.from),
                scheme,
                params,
                flow.start,
                random,
            )
            .map_err(|error| LiveError::Input(format!("flow {}: {error}", flow.flow)))?;
            let mut sample = |sender: &mut Sender, now: Time| {
                let snapshot = sender.snapshot();
                outcome
                    .states
                    .push(State::from(state_row(flow.flow, now.ns(), &snapshot)));
                let rows = trace_rows(flow.flow, now.ns(), &snapshot);
                outcome
                    .traces
                    .extend(rows.map(|row| (row.time_ns, row.name, row.value)));
            };
            let stop = flow.stop.min(cell.duration);
            pump.drive(
                &mut sender,
                clock,
                stop,
                cell.sample,
                &mut sleeper,
                channel,
                &mut sample,
            )?;
            // The socket stays: late acknowledgements would otherwise be answered with ICMP.
            sleeper.forget(socket.as_fd())?;
            sleeper.wait_until(clock, cell.duration, channel)?;
            let summary = native_flow(flow, Some(&sender), None);
            outcome.sender = summary.sender;
            outcome.read_back = summary.fingerprint.read_back;
        }
        Role::Receiver => {
            let mut receiver = Receiver::new(&cell.transport(flow, flow.from));
            let nothing = &mut |_: &mut Receiver, _: Time| {};
            let end = cell.duration;
            pump.drive(
                &mut receiver,
                clock,
                end,
                cell.sample,
                &mut sleeper,
                channel,
                nothing,
            )?;
            outcome.receiver = native_flow(flow, None, Some(&receiver)).receiver;
        }
    }
    outcome.socket_drops = u64::from(pump.inbox.dropped());
    if pump.garbage > 0 {
        outcome.problem = Some(format!(
            "{} datagrams were no messages of ours",
            pump.garbage
        ));
    }
    Ok(outcome)
}

/// Carries messages between a state machine and a socket.
struct Pump<'a> {
    socket: BorrowedFd<'a>,
    flow: u16,
    inbox: ReceiveBatch,
    outbox: SendBatch,
    /// Encoded datagrams that wait to be sent, and empty ones to use again.
    waiting: VecDeque<(Ecn, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    body: Body,
    /// Code point of all packets.
    dscp: u8,
    /// ECN bits that the socket is set to.
    ecn: Ecn,
    garbage: u64,
    /// Latest time that the state machine has seen.
    latest: Time,
}

impl<'a> Pump<'a> {
    fn new(socket: &'a OwnedFd, flow: &Flow) -> Self {
        Pump {
            socket: socket.as_fd(),
            flow: flow.flow,
            dscp: flow.dscp,
            inbox: ReceiveBatch::new(),
            outbox: SendBatch::new(),
            waiting: VecDeque::with_capacity(SendBatch::CAPACITY),
            spare: (0..SendBatch::CAPACITY)
                .map(|_| Vec::with_capacity(2048))
                .collect(),
            body: Body::default(),
            ecn: Ecn::NotEct,
            garbage: 0,
            latest: Time::ZERO,
        }
    }

    #[allow(clippy::too_many_arguments)] // one loop, everything in it is used at each turn
    fn drive<E: Endpoint>(
        &mut self,
        endpoint: &mut E,
        clock: &RunClock,
        end: Time,
        distance: Span,
        sleeper: &mut Sleeper,
        channel: &mut Channel,
        sample: &mut dyn FnMut(&mut E, Time),
    ) -> Result<(), LiveError> {
        let first = clock.now().ns().next_multiple_of(distance.ns());
        let mut next_sample = Time::from_ns(first);
        let mut rounds = 0;
        loop {
            let received = self.receive(endpoint, clock)?;
            let now = clock.now().max(self.latest);
            if now >= end {
                return Ok(());
            }
            self.latest = now;
            let sent = self.transmit(endpoint, now)?;
            if now >= next_sample {
                sample(endpoint, now);
                let passed = now.since(next_sample).ns() / distance.ns() + 1;
                next_sample += Span::from_ns(distance.ns() * passed);
            }
            rounds += 1;
            if received + sent > 0 {
                if rounds % ROUND == 0 {
                    check_agent(channel)?;
                }
                continue;
            }
            let wakeup = if self.waiting.is_empty() {
                endpoint.next_wakeup()
            } else {
                // The interface was full a moment ago, and says nothing when it is not any more.
                now + Span::from_us(50)
            };
            sleeper.wait(clock, wakeup.min(next_sample).min(end), channel)?;
        }
    }

    /// Shows the endpoint what has arrived, at the times at which the kernel saw it.
    fn receive<E: Endpoint>(
        &mut self,
        endpoint: &mut E,
        clock: &RunClock,
    ) -> Result<usize, LiveError> {
        let (body, latest, garbage) = (&mut self.body, &mut self.latest, &mut self.garbage);
        let result = self.inbox.receive(self.socket, |datagram| {
            let at = datagram
                .stamp_ns
                .map_or_else(|| clock.now(), |stamp| clock.at_stamp(stamp));
            // Times never decrease; what arrived while we sent is seen a moment later.
            *latest = at.max(*latest);
            match wire::decode(datagram.bytes, body) {
                Ok(header) => {
                    endpoint.receive(*latest, Ecn::from_bits(datagram.ecn), &header, body);
                }
                Err(_) => *garbage += 1,
            }
        });
        match result {
            // The peer's socket is not there yet, or any more: not a matter of this end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(1),
            other => other.could_not("receive datagrams"),
        }
    }

    /// Sends what the endpoint wants to send, up to one batch.
    fn transmit<E: Endpoint>(&mut self, endpoint: &mut E, now: Time) -> Result<usize, LiveError> {
        while self.waiting.len() < SendBatch::CAPACITY {
            let Some(outgoing) = endpoint.transmit(now, &mut self.body) else {
                break;
            };
            let mut bytes = self.spare.pop().unwrap_or_default();
            wire::encode(self.flow, &outgoing.header, &self.body, &mut bytes);
            self.waiting.push_back((outgoing.ecn, bytes));
        }
        let Some(&(ecn, _)) = self.waiting.front() else {
            return Ok(0);
        };
        if ecn != self.ecn {
            socket::set_tos(self.socket, self.dscp << 2 | ecn as u8)
                .could_not("set the ECN field")?;
            self.ecn = ecn;
        }
        let same = self.waiting.iter().take_while(|(other, _)| *other == ecn);
        let sent = match self
            .outbox
            .send(self.socket, same.map(|(_, bytes)| bytes.as_slice()))
        {
            Ok(sent) => sent,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR | libc::ECONNREFUSED) => 0,
                _ => return Err(error).could_not("send datagrams"),
            },
        };
        self.spare
            .extend(self.waiting.drain(..sent).map(|(_, bytes)| bytes));
        Ok(sent)
    }
}
