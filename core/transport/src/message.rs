//! Messages that endpoints exchange.
//!
//! A message is a small fixed [`Header`], which drivers may copy freely, and a [`Body`] with the
//! variable parts of acknowledgements, whose buffers drivers reuse.

use crate::{Range, wire};
use narrows_units::{Ecn, Span, Time};

/// Data of a bulk flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Packet number: unique, in order of transmission.
    pub number: u64,
    /// Position of the first payload byte in the stream.
    pub offset: u64,
    /// The sender no longer needs acknowledgements of packets below this number; the receiver may forget them.
    pub least_unacked: u64,
    /// Payload bytes.
    pub length: u16,
    /// True if this is a retransmission.
    pub retransmission: bool,
    /// Interval between acknowledgements requested by the sender, in whole microseconds, if any (zero: no RTT is known
    /// yet); see `acks_per_rtt` in [`crate::PARAMS`].
    pub ack_interval: Option<Span>,
}

/// An acknowledgement. Its ranges and arrival times are in the [`Body`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Largest packet number received.
    pub largest: u64,
    /// Time by which the receiver delayed the acknowledgement of `largest`.
    pub delay: Span,
    /// When `largest` arrived, by the receiver's clock.
    pub largest_arrived: Time,
    /// Data packets received so far.
    pub received: u64,
    /// Data packets received so far with a CE mark.
    pub marked: u64,
    /// Without selective acknowledgements, the cumulative acknowledgement: every stream byte below this has arrived.
    /// `largest` is then the packet that last advanced it, as with TCP's echoed timestamp (RFC 7323, section 4.3), and
    /// the body is empty.
    pub cumulative: Option<u64>,
}

/// A message of a real-time scheme, or a datagram. Its content is in the [`Body`], as bytes; any excess length is
/// padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Packet number: unique in its direction, in order of transmission.
    pub number: u64,
    /// Bytes after the transport header, including the content.
    pub length: u16,
    /// True for reports of the receiver, sent in the opposite direction to the media.
    pub feedback: bool,
}

/// The fixed part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Data.
    Data(Data),
    /// Acknowledgement.
    Ack(Ack),
    /// A message of a real-time scheme, whose content is opaque to the transport.
    Media(Media),
}

/// Arrival time of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Packet number.
    pub number: u64,
    /// Time by the receiver's clock.
    pub at: Time,
}

/// The variable parts of an acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Ranges of packet numbers received, highest first, at most [`Body::MAX_RANGES`].
    pub ranges: Vec<Range>,
    /// Arrival times of the packets that are new in this acknowledgement, other than the largest,
    /// at most [`Body::MAX_ARRIVALS`].
    pub arrivals: Vec<Arrival>,
    /// Content of a message of a real-time scheme, no longer than the message.
    pub bytes: Vec<u8>,
}

impl Body {
    /// Maximum number of ranges in an acknowledgement.
    pub const MAX_RANGES: usize = 32;
    /// Maximum number of arrival times in an acknowledgement.
    pub const MAX_ARRIVALS: usize = 16;

    /// Clears everything, keeping the capacity.
    #[inline]
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.arrivals.clear();
        self.bytes.clear();
    }
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Fixed part of the message.
    pub header: Header,
    /// IP size of the packet in bytes.
    pub size: u32,
    /// ECN field to send it with.
    pub ecn: Ecn,
}

impl Outgoing {
    /// A message in a not-ECT IP packet.
    #[inline]
    pub fn new(header: Header, body: &Body) -> Self {
        Outgoing {
            size: wire::size(&header, body),
            header,
            ecn: Ecn::NotEct,
        }
    }

    /// A message of a media flow: its number, its length in bytes, and whether it is feedback.
    pub fn media(number: u64, length: u16, feedback: bool, body: &Body) -> Self {
        let media = Media {
            number,
            length,
            feedback,
        };
        Outgoing::new(Header::Media(media), body)
    }
}
