//! A socket and the endpoint that exchanges messages with its peer over it.

use super::clock::RunClock;
use super::receiver::{DatagramReceiver, ReceiveResult};
use super::sender::{DatagramSender, Sending};
use super::{EndpointTask, RunError};
use narrows_cell::Context;
use narrows_sys::socket;
use narrows_transport::{Body, Data, Endpoint, Header, wire};
use narrows_units::{Ecn, Span, Time};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Requested size of the sockets' buffers in bytes: 50 ms at 1 Gbit/s, with the kernel's overhead.
const SOCKET_BUFFER: i32 = 16 << 20;
/// Time after which to try again if the interface was full: it does not signal when it has room again.
pub(super) const RETRY: Span = Span::from_us(50);

/// A UDP socket for messages of the task's flow, neither bound nor connected.
pub(super) fn open(task: &EndpointTask) -> Result<OwnedFd, RunError> {
    let socket = socket::udp_any().could_not("open a UDP socket")?;
    let fd = socket.as_fd();
    socket::prepare_udp(fd, SOCKET_BUFFER).could_not("prepare a UDP socket")?;
    socket::never_fragment(fd).could_not("prepare a UDP socket")?;
    socket::set_tos(fd, task.flow.dscp << 2).could_not("set the code point")?;
    Ok(socket)
}

/// An endpoint behind a socket.
pub(super) trait SocketEndpoint: Endpoint {
    /// True if its peer sends messages of this kind.
    fn accepts(&self, header: &Header) -> bool;

    /// Reads the payload of data that have arrived.
    fn read_payload(&mut self, _: &Data, _: &[u8]) {}

    /// Writes the payload of data to be sent, which is initially zero.
    fn write_payload(&self, _: &Data, _: &mut [u8]) {}
}

/// Buffers and counters that all sockets of a process share.
pub(super) struct SocketBuffers {
    flow: u16,
    pub(super) receiver: DatagramReceiver,
    pub(super) sending: Sending,
    pub(super) body: Body,
    /// Datagrams that were not messages of our protocols.
    pub(super) garbage: u64,
    /// Datagrams and their IP bytes, received.
    pub(super) received: [u64; 2],
}

impl SocketBuffers {
    /// Buffers for datagrams that arrive before `end`.
    pub(super) fn new(flow: u16, dscp: u8, end: Time) -> Self {
        SocketBuffers {
            flow,
            receiver: DatagramReceiver::new(end),
            sending: Sending::new(dscp),
            body: Body::default(),
            garbage: 0,
            received: [0; 2],
        }
    }

    /// One sentence about messages that could not be sent or read, if any.
    pub(super) fn problem(&mut self) -> Option<String> {
        let garbage = self.garbage;
        let text = || format!("{garbage} datagrams were not messages of Narrows");
        let refused = self.sending.refused.take();
        refused.or_else(|| (garbage > 0).then(text))
    }
}

/// A connected socket and the endpoint behind it.
pub(super) struct Link<E> {
    fd: OwnedFd,
    pub(super) endpoint: E,
    sender: DatagramSender,
    /// Datagrams that the socket dropped because its buffer was full.
    pub(super) dropped: u32,
    /// Latest time that the endpoint has seen.
    latest: Time,
    /// When a message last arrived or left.
    pub(super) active: Time,
}

impl<E: SocketEndpoint> Link<E> {
    pub(super) fn new(fd: OwnedFd, endpoint: E) -> Self {
        Link {
            fd,
            endpoint,
            sender: DatagramSender::default(),
            dropped: 0,
            latest: Time::ZERO,
            active: Time::ZERO,
        }
    }

    /// The socket.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes one batch of datagrams that have arrived, at the kernel's receive times.
    pub(super) fn receive(
        &mut self,
        buffers: &mut SocketBuffers,
        clock: &RunClock,
    ) -> Result<ReceiveResult, RunError> {
        let (garbage, received) = (&mut buffers.garbage, &mut buffers.received);
        let (endpoint, body) = (&mut self.endpoint, &mut buffers.body);
        let latest = &mut self.latest;
        let found = buffers
            .receiver
            .receive(self.fd.as_fd(), clock, |at, datagram| {
                // Times never decrease; datagrams that arrived during sending are seen slightly later.
                *latest = at.max(*latest);
                received[0] += 1;
                received[1] += datagram.bytes.len() as u64 + u64::from(wire::IP_UDP);
                if !deliver(endpoint, *latest, datagram.ecn(), datagram.bytes, body) {
                    *garbage += 1;
                }
            });
        if found.as_ref().is_ok_and(|found| found.count > 0) {
            self.active = self.latest;
        }
        // The receiver is shared by all sockets.
        self.dropped = self.dropped.max(buffers.receiver.take_dropped());
        found
    }

    /// Takes one datagram that has arrived at another socket.
    pub(super) fn take(&mut self, buffers: &mut SocketBuffers, now: Time, bytes: &[u8]) {
        self.latest = now.max(self.latest);
        self.active = self.latest;
        buffers.received[0] += 1;
        buffers.received[1] += bytes.len() as u64 + u64::from(wire::IP_UDP);
        if !deliver(&mut self.endpoint, self.latest, 0, bytes, &mut buffers.body) {
            buffers.garbage += 1;
        }
    }

    /// Sends the endpoint's messages, up to one batch; returns whether there may be more immediately.
    pub(super) fn transmit(
        &mut self,
        buffers: &mut SocketBuffers,
        now: Time,
    ) -> Result<bool, RunError> {
        self.latest = now.max(self.latest);
        let (latest, active) = (self.latest, &mut self.active);
        let (endpoint, flow, body) = (&mut self.endpoint, buffers.flow, &mut buffers.body);
        self.sender
            .send(self.fd.as_fd(), &mut buffers.sending, |bytes| {
                let out = endpoint.transmit(latest, body)?;
                wire::encode(flow, &out.header, body, bytes);
                if let Header::Data(data) = &out.header {
                    let payload = wire::data_header(data) as usize;
                    endpoint.write_payload(data, &mut bytes[payload..]);
                }
                *active = latest;
                Some(out.ecn)
            })
    }

    /// True if no message waits for the interface.
    pub(super) fn is_drained(&self) -> bool {
        self.sender.is_empty()
    }

    /// True if [`Link::transmit`] is needed now, regardless of arrivals. Messages that the interface rejected are
    /// retried.
    pub(super) fn is_due(&self, now: Time) -> bool {
        !self.sender.is_empty() || self.next_wakeup(now) <= now
    }

    /// When [`Link::transmit`] is needed next.
    pub(super) fn next_wakeup(&self, now: Time) -> Time {
        if self.sender.is_empty() {
            self.endpoint.next_wakeup()
        } else {
            now + RETRY
        }
    }
}

/// Passes a datagram to an endpoint; false if it is not a message of its peer.
fn deliver(
    endpoint: &mut impl SocketEndpoint,
    now: Time,
    ecn: u8,
    bytes: &[u8],
    body: &mut Body,
) -> bool {
    let Ok(header) = wire::decode(bytes, body) else {
        return false;
    };
    if !endpoint.accepts(&header) {
        return false;
    }
    if let Header::Data(data) = &header {
        let payload = bytes.get(wire::data_header(data) as usize..);
        endpoint.read_payload(data, payload.unwrap_or_default());
    }
    endpoint.receive(now, Ecn::from_bits(ecn), &header, body);
    true
}
