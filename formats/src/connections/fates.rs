//! The fate of each packet with data, from a capture of one end.
//!
//! At the sender, acknowledgements show it, selective ones included. At the receiver a packet arrives or leaves a hole
//! in the stream; when it was sent follows from the sender's time stamps. UDP has neither.

use super::capture_side::{Distances, Side, find_datagram_side, find_side};
use super::fate_columns::{Fates, Stream};
use super::one_end::sender_by_acks;
use super::pairs::limited;
use super::stream::{base, frames, segment_bytes};
use super::{Connection, TCP, View, fates_at_receiver, fates_at_sender};

/// Largest datagrams of usual paths; larger frames contain several.
const MAX_DATAGRAM: u32 = 1500;

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
