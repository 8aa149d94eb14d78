//! One connection of our transport: a socket, a sender and a receiver.

use super::super::clock::RunClock;
use super::super::receiver::{DatagramReceiver, ReceiveResult};
use super::super::sender::{DatagramSender, Sending};
use super::stream::{Seen, Written};
use narrows_cell::RunError;
use narrows_transport::{Body, Endpoint, Header, Receiver, Sender, wire};
use narrows_units::{Ecn, Span, Time};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What all connections of an endpoint share.
pub(super) struct Pump {
    flow: u16,
    receiver: DatagramReceiver,
    pub(super) sending: Sending,
    body: Body,
    /// Datagrams that were no messages of ours.
    pub(super) garbage: u64,
    /// Datagrams and their IP bytes, received.
    pub(super) received: [u64; 2],
}

impl Pump {
    /// For what arrives before `end`.
    pub(super) fn new(flow: u16, dscp: u8, end: Time) -> Self {
        Pump {
            flow,
            receiver: DatagramReceiver::new(end),
            sending: Sending::new(dscp),
            body: Body::default(),
            garbage: 0,
            received: [0; 2],
        }
    }
}

/// One connection.
pub(super) struct Link {
    fd: OwnedFd,
    pub(super) ends: Ends,
    sender: DatagramSender,
    /// Datagrams that the socket dropped because its buffer was full.
    pub(super) dropped: u32,
}

/// The state machines of one connection.
pub(super) struct Ends {
    /// Number given by the application; at the server unknown until a transfer has told.
    pub(super) number: Option<u32>,
    /// Our stream; absent at the server until there is something to answer.
    pub(super) sender: Option<Sender>,
    /// The peer's stream.
    pub(super) receiver: Receiver,
    /// What our stream holds, at the client.
    pub(super) written: Written,
    /// What the peer's stream held, at the server, if all of it arrives.
    pub(super) seen: Option<Seen>,
    /// End of our stream so far.
    pub(super) end: u64,
    /// At the client: transfers whose answers are awaited, and where in the peer's stream they end.
    pub(super) awaited: VecDeque<(u32, u64)>,
    /// End of the last answer.
    pub(super) awaited_end: u64,
    /// The application has asked for its end.
    pub(super) closing: bool,
    /// Latest time that the state machines have seen.
    latest: Time,
    /// When something last arrived or left.
    pub(super) active: Time,
}

impl Ends {
    /// One message has arrived.
    fn hear(&mut self, at: Time, ecn: u8, bytes: &[u8], body: &mut Body) -> bool {
        // Times never decrease; what arrived while we sent is seen a moment later.
        self.latest = at.max(self.latest);
        self.active = self.latest;
        let (now, ecn) = (self.latest, Ecn::from_bits(ecn));
        match wire::decode(bytes, body) {
            Ok(header @ Header::Data(data)) => {
                if let Some(seen) = &mut self.seen {
                    let payload = bytes.get(wire::data_header(&data) as usize..);
                    seen.note(data.offset, payload.unwrap_or_default());
                }
                self.receiver.receive(now, ecn, &header, body);
                true
            }
            Ok(header @ Header::Ack(_)) => match &mut self.sender {
                Some(sender) => {
                    sender.receive(now, ecn, &header, body);
                    true
                }
                None => false,
            },
            Ok(Header::Media(_)) | Err(_) => false,
        }
    }

    /// Whether everything that was begun is through and acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.awaited.is_empty() && self.sender.as_ref().is_none_or(Sender::is_complete)
    }

    /// The next message to send, encoded into `bytes`.
    fn speak(&mut self, flow: u16, now: Time, body: &mut Body, bytes: &mut Vec<u8>) -> Option<Ecn> {
        let now = now.max(self.latest);
        self.latest = now;
        let data = self
            .sender
            .as_mut()
            .and_then(|sender| sender.transmit(now, body));
        let outgoing = match data {
            Some(outgoing) => outgoing,
            None => self.receiver.transmit(now, body)?,
        };
        wire::encode(flow, &outgoing.header, body, bytes);
        if let Header::Data(data) = outgoing.header {
            let payload = wire::data_header(&data) as usize;
            self.written.fill(data.offset, &mut bytes[payload..]);
        }
        self.active = now;
        Some(outgoing.ecn)
    }
}

impl Link {
    /// A connection over a connected socket; with `heads` the peer's stream is searched for those of transfers.
    pub(super) fn new(fd: OwnedFd, number: Option<u32>, receiver: Receiver, heads: bool) -> Self {
        Link {
            fd,
            ends: Ends {
                number,
                sender: None,
                receiver,
                written: Written::default(),
                seen: heads.then(Seen::default),
                end: 0,
                awaited: VecDeque::new(),
                awaited_end: 0,
                closing: false,
                latest: Time::ZERO,
                active: Time::ZERO,
            },
            sender: DatagramSender::default(),
            dropped: 0,
        }
    }

    /// The socket.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes one batch of what has arrived, at the times at which the kernel saw it.
    pub(super) fn receive(
        &mut self,
        pump: &mut Pump,
        clock: &RunClock,
    ) -> Result<ReceiveResult, RunError> {
        let (ends, body) = (&mut self.ends, &mut pump.body);
        let (garbage, received) = (&mut pump.garbage, &mut pump.received);
        let found = pump
            .receiver
            .receive(self.fd.as_fd(), clock, |at, datagram| {
                received[0] += 1;
                received[1] += datagram.bytes.len() as u64 + u64::from(wire::IP_UDP);
                if !ends.hear(at, datagram.ecn(), datagram.bytes, body) {
                    *garbage += 1;
                }
            });
        // The inbox is shared by all sockets.
        self.dropped = self.dropped.max(pump.receiver.take_dropped());
        found
    }

    /// Takes one datagram that has arrived elsewhere.
    pub(super) fn hand(&mut self, pump: &mut Pump, now: Time, bytes: &[u8]) {
        pump.received[0] += 1;
        pump.received[1] += bytes.len() as u64 + u64::from(wire::IP_UDP);
        if !self.ends.hear(now, 0, bytes, &mut pump.body) {
            pump.garbage += 1;
        }
    }

    /// Sends what the state machines want to send, up to one batch; returns whether there may be more at once.
    pub(super) fn transmit(&mut self, pump: &mut Pump, now: Time) -> Result<bool, RunError> {
        let (ends, flow, body) = (&mut self.ends, pump.flow, &mut pump.body);
        self.sender
            .send(self.fd.as_fd(), &mut pump.sending, |bytes| {
                ends.speak(flow, now, body, bytes)
            })
    }

    /// Whether acknowledgements are all that arrives, and the next packet waits for its time and not for them.
    pub(super) fn is_paced(&self) -> bool {
        let ends = &self.ends;
        ends.sender.as_ref().is_some_and(Sender::is_pacing_limited)
            && ends.receiver.counters().received_packets == 0
            && self.sender.is_empty()
    }

    /// Whether [`Link::transmit`] is needed now, whatever has arrived. What the interface refused is tried again.
    pub(super) fn is_due(&self, now: Time) -> bool {
        !self.sender.is_empty() || self.next_wakeup(now) <= now
    }

    /// When [`Link::transmit`] is needed next.
    pub(super) fn next_wakeup(&self, now: Time) -> Time {
        if !self.sender.is_empty() {
            // The interface was full a moment ago, and says nothing when it is not any more.
            return now + Span::from_us(50);
        }
        let sender = self.ends.sender.as_ref();
        let sender = sender.map_or(Time::FAR, Endpoint::next_wakeup);
        sender.min(self.ends.receiver.next_wakeup())
    }
}
