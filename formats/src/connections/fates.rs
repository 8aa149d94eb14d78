//! The fate of each packet with data, from a capture of one end.
//!
//! At the sender, acknowledgements tell it, selective ones included. At the receiver a packet arrives or leaves a hole
//! in the stream; when it was sent follows from the sender's time stamps. UDP has neither.

use super::capture_side::{Distances, Side, find_datagram_side, find_side};
use super::one_end::sender_by_acks;
use super::pairs::limited;
use super::stream::{Frame, base, frames, segment_bytes};
use super::{Connection, TCP, View, fates_at_receiver, fates_at_sender};

/// Largest datagrams of usual paths; larger frames contain several.
const MAX_DATAGRAM: u32 = 1500;

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

/// The packets with data of a connection, with their fates; `None` if it carried no data.
pub fn fates(view: &View, connection: &Connection) -> Option<Fates> {
    if connection.protocol != TCP {
        return datagrams(view, connection);
    }
    let mut from = connection.data_from();
    if connection.payload == [0, 0] {
        from = sender_by_acks(view, connection)?;
    }
    let (side, distances) = find_side(view, connection, from);
    let base = base(view, connection, from);
    let frames = frames(view, connection, from, base);
    let segment = limited(segment_bytes(connection, from, &frames), &frames);
    let large = frames
        .iter()
        .filter(|frame| frame.end - frame.begin > segment)
        .count() as u64;
    let stream = Stream {
        base,
        segment,
        frames,
    };
    let mut fates = if side == Side::Receiver {
        fates_at_receiver::evaluate(view, connection, from, &stream, distances.sender_ns)
    } else {
        fates_at_sender::evaluate(view, connection, from, &stream, distances.receiver_ns)
    };
    fates.large_frames = large;
    name(&mut fates, from, Some(side), distances);
    (!fates.sent_ns.is_empty()).then_some(fates)
}

fn name(fates: &mut Fates, from: usize, side: Option<Side>, distances: Distances) {
    fates.data_from = from;
    fates.side = side;
    fates.to_receiver_ns = distances.receiver_ns;
    fates.to_sender_ns = distances.sender_ns;
}

fn datagrams(view: &View, connection: &Connection) -> Option<Fates> {
    let from = connection.data_from();
    let (side, distances) = find_datagram_side(view, connection, from);
    let mut fates = Fates::default();
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        if connection.sender(packet) != from {
            fates.answers_ns.push(packet.time_ns);
        } else if packet.payload > 0 {
            let (sent, known) = if side == Some(Side::Receiver) {
                (Fates::NEVER, packet.time_ns)
            } else {
                (packet.time_ns, Fates::NEVER)
            };
            fates.push(sent, known, packet.size, false);
            fates.large_frames += u64::from(packet.size > MAX_DATAGRAM);
        }
    }
    name(&mut fates, from, side, distances);
    (!fates.sent_ns.is_empty()).then_some(fates)
}
