//! The data packets of a connection with their fates, as columns.

use super::capture_side::Side;
use super::stream::Frame;

/// The packets with data of a connection, as columns of equal length; times in ns since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Number of the end that sends the data.
    pub data_from: usize,
    /// Where the capture was taken; `None` if that cannot be determined (UDP).
    pub side: Option<Side>,
    /// Minimum round-trip time from the capture to the receiver of the data, if known.
    pub to_receiver_ns: Option<i64>,
    /// Minimum round-trip time from the capture to the sender of the data, if known.
    pub to_sender_ns: Option<i64>,
    /// When each packet was sent: captured at the sender, estimated at the receiver; [`Fates::NEVER`] if unknown.
    pub sent_ns: Vec<i64>,
    /// At the sender, when its acknowledgement was captured, at the receiver when it arrived; else [`Fates::NEVER`].
    pub known_ns: Vec<i64>,
    /// Bytes of the IP packet.
    pub size_bytes: Vec<u32>,
    /// True if it repeats data.
    pub again: Vec<bool>,
    /// At the sender, when its data were next sent again; else [`Fates::NEVER`].
    pub repeated_ns: Vec<i64>,
    /// When each packet of the receiver passed the capture.
    pub answers_ns: Vec<i64>,
    /// The accuracy of estimated times of sending: one tick of the sender's time stamps.
    pub tick_ns: Option<i64>,
    /// Packets that arrived, but were not captured or were captured out of order.
    pub unclear: u64,
    /// Frames that contain several packets.
    pub large_frames: u64,
}

impl Fates {
    /// In columns of times: unknown, or it did not happen.
    pub const NEVER: i64 = i64::MIN;

    pub(super) fn push(&mut self, sent_ns: i64, known_ns: i64, size: u32, again: bool) -> u32 {
        self.sent_ns.push(sent_ns);
        self.known_ns.push(known_ns);
        self.size_bytes.push(size);
        self.again.push(again);
        self.repeated_ns.push(Fates::NEVER);
        (self.sent_ns.len() - 1) as u32
    }
}

/// The data of one direction as packets, in order of time.
pub(super) struct Stream {
    pub(super) base: u32,
    pub(super) segment: i64,
    pub(super) frames: Vec<Frame>,
}
