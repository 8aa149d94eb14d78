//! One connection of our transport: a sender of the local stream and a receiver of the peer's.

use super::stream::{HeaderReader, HeaderWriter};
use crate::link::SocketEndpoint;
use narrows_transport::{Body, Data, Endpoint, Header, Outgoing, Receiver, Sender};
use narrows_units::{Ecn, Time};
use std::collections::VecDeque;

/// The state machines of one connection.
pub(super) struct Connection {
    /// Number assigned by the application; at the server unknown until a transfer arrives.
    pub(super) number: Option<u32>,
    /// The local stream; absent at the server until there is an answer to send.
    pub(super) sender: Option<Sender>,
    /// The peer's stream.
    pub(super) receiver: Receiver,
    /// Headers in the local stream, at the client.
    pub(super) written: HeaderWriter,
    /// Headers in the peer's stream, at the server, if the stream is reliable.
    pub(super) headers: Option<HeaderReader>,
    /// End of the local stream so far, in bytes.
    pub(super) end: u64,
    /// At the client: transfers whose answers are awaited, and the byte of the peer's stream at which they end.
    pub(super) awaited: VecDeque<(u32, u64)>,
    /// End of the last answer, in bytes.
    pub(super) awaited_end: u64,
    /// True if the application has requested its end.
    pub(super) closing: bool,
}

impl Connection {
    /// A connection without a local stream; with `headers` the peer's stream is searched for transfer headers.
    pub(super) fn new(number: Option<u32>, receiver: Receiver, headers: bool) -> Self {
        Connection {
            number,
            sender: None,
            receiver,
            written: HeaderWriter::default(),
            headers: headers.then(HeaderReader::default),
            end: 0,
            awaited: VecDeque::new(),
            awaited_end: 0,
            closing: false,
        }
    }

    /// True if all transfers are complete and acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.awaited.is_empty() && self.sender.as_ref().is_none_or(Sender::is_complete)
    }

    /// True if only acknowledgements arrive, and the next packet waits for its time and not for them.
    pub(super) fn is_paced(&self) -> bool {
        self.sender.as_ref().is_some_and(Sender::is_pacing_limited)
            && self.receiver.counters().received_packets == 0
    }
}

impl Endpoint for Connection {
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, body: &Body) {
        match (header, &mut self.sender) {
            (Header::Ack(_), Some(sender)) => sender.receive(now, ecn, header, body),
            _ => self.receiver.receive(now, ecn, header, body),
        }
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        let sender = self.sender.as_mut();
        let data = sender.and_then(|sender| sender.transmit(now, body));
        data.or_else(|| self.receiver.transmit(now, body))
    }

    fn next_wakeup(&self) -> Time {
        let sender = self.sender.as_ref();
        let sender = sender.map_or(Time::FAR, Endpoint::next_wakeup);
        sender.min(self.receiver.next_wakeup())
    }
}

impl SocketEndpoint for Connection {
    fn accepts(&self, header: &Header) -> bool {
        match header {
            Header::Data(_) => true,
            Header::Ack(_) => self.sender.is_some(),
            Header::Media(_) => false,
        }
    }

    fn read_payload(&mut self, data: &Data, payload: &[u8]) {
        if let Some(headers) = &mut self.headers {
            headers.note(data.offset, payload);
        }
    }

    fn write_payload(&self, data: &Data, payload: &mut [u8]) {
        self.written.fill(data.offset, payload);
    }
}
