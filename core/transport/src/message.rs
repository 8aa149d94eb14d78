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
    /// The sender has no use for news of packets below this number; the receiver may forget them.
    pub least_unacked: u64,
    /// Payload bytes.
    pub length: u16,
    /// True if the payload has been sent before.
    pub retransmission: bool,
    /// Time that the sender asks for between acknowledgements, in whole microseconds, where it does
    /// (zero: it knows no RTT yet); see `acks_per_rtt` in [`crate::PARAMS`].
    pub ack_interval: Option<Span>,
}

/// An acknowledgement. Its ranges and arrival times are in the [`Body`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Largest packet number received.
    pub largest: u64,
    /// Time for which the receiver has held back the news of `largest`.
    pub delay: Span,
    /// When `largest` arrived, by the receiver's clock.
    pub largest_arrived: Time,
    /// Data packets received so far.
    pub received: u64,
    /// Data packets received so far with congestion experienced.
    pub marked: u64,
    /// Without selective acknowledgements, all that is told: every stream byte below this has
    /// arrived. `largest` is then the packet that last filled the stream up to here, as the echoed time
    /// stamp of TCP tells (RFC 7323, section 4.3), and the body is empty.
    pub cumulative: Option<u64>,
}

/// A message of a real-time scheme, or a datagram. Its content is in the [`Body`], as bytes; what is longer than
/// the content is padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Packet number: unique in its direction, in order of transmission.
    pub number: u64,
    /// Bytes after our header, the content included.
    pub length: u16,
    /// True for reports of the receiver, which travel against the media.
    pub feedback: bool,
}

/// The fixed part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Data.
    Data(Data),
    /// Acknowledgement.
    Ack(Ack),
    /// A message of a real-time scheme, whose content only the scheme's two ends understand.
    Media(Media),
}

/// When one packet arrived.
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
    /// Content of a message of a real-time scheme, at most as long as the message says.
    pub bytes: Vec<u8>,
}

impl Body {
    /// Most ranges in one acknowledgement.
    pub const MAX_RANGES: usize = 32;
    /// Most arrival times in one acknowledgement.
    pub const MAX_ARRIVALS: usize = 16;

    /// Empties everything, keeping the capacity.
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
    /// A message that its IP packet carries without an ECN codepoint.
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
