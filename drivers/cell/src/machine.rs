//! The state machines that drivers run at the ends of flows, as one type.
//!
//! To add a kind of endpoint, implement [`Endpoint`] and add it to [`Machine`].

use crate::{Cell, CellError, Flow, SchemeRef, media_receiver, media_sender};
use narrows_media::{FrameArrived, FrameSent, MediaReceiver, MediaSender};
use narrows_traffic::{DatagramSink, DatagramSource};
use narrows_transport::{
    Body, ConnectionTotals, Endpoint, Header, Outgoing, Receiver, Sender, SenderSnapshot,
};
use narrows_units::{Ecn, Time};

/// An endpoint of the core. An enum, because bulk transport makes four calls per packet, which are inlined; its two
/// machines are stored inline, because a box would cost a cache miss for each of these calls.
#[allow(clippy::large_enum_variant)]
pub enum Machine {
    /// Sends the bytes of a stream.
    Sender(Sender),
    /// Receives and acknowledges them.
    Receiver(Receiver),
    /// Sends media.
    MediaSender(Box<dyn MediaSender>),
    /// Receives and reports on media.
    MediaReceiver(Box<dyn MediaReceiver>),
    /// Sends datagrams.
    DatagramSource(DatagramSource),
    /// Receives and evaluates datagrams.
    DatagramSink(DatagramSink),
}

/// The same expression for every kind of machine.
macro_rules! each {
    ($machine:expr, $one:ident => $call:expr) => {
        match $machine {
            Machine::Sender($one) => $call,
            Machine::Receiver($one) => $call,
            Machine::MediaSender($one) => $call,
            Machine::MediaReceiver($one) => $call,
            Machine::DatagramSource($one) => $call,
            Machine::DatagramSink($one) => $call,
        }
    };
}

impl Endpoint for Machine {
    #[inline]
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, body: &Body) {
        each!(self, one => one.receive(now, ecn, header, body));
    }

    #[inline]
    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        each!(self, one => one.transmit(now, body))
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        each!(self, one => one.next_wakeup())
    }
}

impl Machine {
    /// Lets it send all that it may, packet by packet, through `send`. The kind is dispatched once.
    #[inline]
    pub fn transmit_all(
        &mut self,
        now: Time,
        body: &mut Body,
        mut send: impl FnMut(&Outgoing, &mut Body),
    ) {
        each!(self, one => while let Some(out) = &one.transmit(now, body) {
            send(out, body);
        });
    }

    /// Sender and receiver of a flow without connections; `None` if `flow` has some.
    ///
    /// # Errors
    /// Parameters of a real-time scheme that contradict each other.
    pub fn pair(cell: &Cell, flow: &Flow) -> Result<Option<[Machine; 2]>, CellError> {
        Ok(match &flow.scheme {
            SchemeRef::Media(..) => Some([
                Machine::MediaSender(media_sender(cell, flow)?),
                Machine::MediaReceiver(media_receiver(cell, flow)?),
            ]),
            SchemeRef::Datagrams => Some([
                Machine::DatagramSource(DatagramSource::default()),
                Machine::DatagramSink(DatagramSink::default()),
            ]),
            _ => None,
        })
    }

    /// True if it sends a flow's data or the requests for them.
    #[inline]
    pub fn is_sender(&self) -> bool {
        matches!(
            self,
            Machine::Sender(_) | Machine::MediaSender(_) | Machine::DatagramSource(_)
        )
    }

    /// True if it belongs to a real-time scheme.
    #[inline]
    pub fn is_media(&self) -> bool {
        matches!(self, Machine::MediaSender(_) | Machine::MediaReceiver(_))
    }

    /// Stops the flow: no more data are sent.
    pub fn stop(&mut self) {
        match self {
            Machine::Sender(sender) => sender.stop(),
            Machine::MediaSender(sender) => sender.stop(),
            _ => {}
        }
    }

    /// State for plots, for senders that have one.
    pub fn snapshot(&self) -> Option<SenderSnapshot> {
        match self {
            Machine::Sender(sender) => Some(sender.snapshot()),
            Machine::MediaSender(sender) => Some(sender.snapshot()),
            _ => None,
        }
    }

    /// Adds its counters. A sink has further counters.
    pub fn count(&self, totals: &mut ConnectionTotals) {
        match self {
            Machine::Sender(sender) => totals.add_sender(sender),
            Machine::Receiver(receiver) => totals.add_receiver(receiver),
            Machine::MediaSender(sender) => totals.sender = sender.counters(),
            Machine::MediaReceiver(receiver) => totals.receiver = receiver.counters(),
            Machine::DatagramSource(source) => {
                totals.sender.sent_packets = source.sent_packets();
                totals.sender.sent_bytes = source.sent_bytes();
            }
            Machine::DatagramSink(_) => {}
        }
    }

    /// Moves the frames of video that are settled at this end into `sent` or `arrived`.
    pub fn take_frames(&mut self, sent: &mut Vec<FrameSent>, arrived: &mut Vec<FrameArrived>) {
        match self {
            Machine::MediaSender(sender) => sender.take_frames(sent),
            Machine::MediaReceiver(receiver) => receiver.take_frames(arrived),
            _ => {}
        }
    }
}
