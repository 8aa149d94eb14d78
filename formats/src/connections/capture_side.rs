//! Determines at which end of a connection a capture was taken.
//!
//! A host answers immediately: the SYN with a SYN/ACK, the SYN/ACK with an ACK, data with acknowledgements, time stamps
//! with their echoes (RFC 7323). The smallest time between a packet and the answer of an end is thus the round-trip
//! time from the capture to that end. At the sender of the data its own answers are fastest, at the receiver those of
//! the other end.

use super::stream::Unwrapped;
use super::{ACK, Connection, RST, SYN, TCP, View};
use crate::pcapng::Way;
use std::collections::VecDeque;

/// The nearer end answers within one part in this many of the time of the farther one.
const NEAR: i64 = 5;
/// Without answers of one end, those of the other are from the same host below this, and across a path above.
const IMMEDIATE_NS: i64 = 500_000;
/// Number of packets in which the first answers of a UDP connection are expected.
const FIRST_PACKETS: usize = 64;
/// No path is shorter than this: faster answers are from the host itself.
const HOST_NS: i64 = 20_000;
/// A receiving host acknowledges every second packet (RFC 9293), so that at most this many are unacknowledged there.
const MAX_UNACKNOWLEDGED: u32 = 2;

/// Where a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the data are sent.
    Sender,
    /// Where they are received.
    Receiver,
    /// Between both.
    Between,
}

/// The round-trip times from the capture to the receiver and to the sender of the data, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Distances {
    pub(super) receiver_ns: Option<i64>,
    pub(super) sender_ns: Option<i64>,
}

fn keep_minimum(known: &mut Option<i64>, time: i64) {
    if time >= 0 {
        *known = Some(known.map_or(time, |known| known.min(time)));
    }
}

/// The side, and the distances from which it follows.
pub(super) fn find_side(view: &View, connection: &Connection, from: usize) -> (Side, Distances) {
    if connection.protocol != TCP {
        return (
            marked(view, connection, from).unwrap_or(Side::Sender),
            Distances::default(),
        );
    }
    let (answers, unacknowledged) = answers(view, connection, from);
    let distances = Distances {
        receiver_ns: answers[1 - from],
        sender_ns: answers[from],
    };
    if let Some(side) = marked(view, connection, from) {
        return (side, distances);
    }
    let side = match (distances.receiver_ns, distances.sender_ns) {
        (Some(receiver), Some(sender)) => {
            // Within one machine both are microseconds, and nothing is in between.
            let close = receiver.max(sender) < IMMEDIATE_NS;
            if sender.saturating_mul(NEAR) <= receiver || (close && sender <= receiver) {
                Side::Sender
            } else if receiver.saturating_mul(NEAR) <= sender || close {
                Side::Receiver
            } else {
                Side::Between
            }
        }
        (Some(receiver), None)
            if receiver < HOST_NS
                || (receiver < IMMEDIATE_NS && unacknowledged <= MAX_UNACKNOWLEDGED) =>
        {
            Side::Receiver
        }
        _ => Side::Sender,
    };
    (side, distances)
}

/// The side of a UDP connection, with the times that the ends took for their first answers. The end that is near
/// answers at once, the other one after a round-trip time.
pub(super) fn find_datagram_side(
    view: &View,
    connection: &Connection,
    from: usize,
) -> (Option<Side>, Distances) {
    let mut turns: Vec<(usize, i64)> = Vec::new();
    for &place in connection.packets.iter().take(FIRST_PACKETS) {
        let packet = &view.packets[place as usize];
        let end = connection.sender(packet);
        if turns.last().is_none_or(|turn| turn.0 != end) {
            turns.push((end, packet.time_ns));
        }
    }
    let (mut answers, mut before) = ([None; 2], None);
    for (end, time) in turns.into_iter().take(3) {
        if let Some(before) = before {
            keep_minimum(&mut answers[end], time - before);
        }
        before = Some(time);
    }
    let distances = Distances {
        receiver_ns: answers[1 - from],
        sender_ns: answers[from],
    };
    let by_answers = match (distances.receiver_ns, distances.sender_ns) {
        (Some(receiver), Some(sender)) if sender.saturating_mul(NEAR) <= receiver => {
            Some(Side::Sender)
        }
        (Some(receiver), Some(sender)) if receiver.saturating_mul(NEAR) <= sender => {
            Some(Side::Receiver)
        }
        _ => None,
    };
    (marked(view, connection, from).or(by_answers), distances)
}

/// The side by the capture's marks of each packet: sent or received.
fn marked(view: &View, connection: &Connection, from: usize) -> Option<Side> {
    // Per end, the number of its packets that were received here and sent here.
    let mut ways = [[0_u64; 2]; 2];
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        match packet.way {
            Way::In => ways[connection.sender(packet)][0] += 1,
            Way::Out => ways[connection.sender(packet)][1] += 1,
            Way::Unknown => {}
        }
    }
    let [data, back] = [ways[from], ways[1 - from]];
    let only = |ways: [u64; 2], way: usize| ways[way] > 0 && ways[1 - way] * 100 < ways[way];
    if only(data, 1) && !only(back, 1) && back[0] > 0 {
        Some(Side::Sender)
    } else if only(data, 0) && only(back, 1) {
        Some(Side::Receiver)
    } else {
        None
    }
}

/// The minimum time from a packet to the answer of each end, and the usual number of unacknowledged frames with data
/// when another frame of the end `from` passed.
fn answers(view: &View, connection: &Connection, from: usize) -> ([Option<i64>; 2], u32) {
    let mut least_ns = [None; 2];
    // When each end last sent a SYN; the answer to a repeated SYN counts from the repetition.
    let mut asked: [Option<i64>; 2] = [None; 2];
    // A time stamp of each end that has not been echoed yet, and when it was first sent.
    let mut stamps: [Option<(u32, i64)>; 2] = [None; 2];
    let mut newest_stamp = [0_u32; 2];
    let mut acks = Unwrapped::near(super::stream::base(view, connection, from));
    let mut numbers = acks;
    // Frames with data that are not yet acknowledged: their ends and times.
    let mut outstanding: VecDeque<(i64, i64)> = VecDeque::new();
    let (mut frames, mut many) = (0_u64, 0_u64);
    let mut top = i64::MIN;
    // Packets that our exports add for analysers, such as handshakes, have no number, and no real times.
    let numbered = connection
        .packets
        .iter()
        .any(|&place| view.packets[place as usize].uid > 0);
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        if numbered && packet.uid == 0 {
            continue;
        }
        let time = packet.time_ns;
        let own = connection.sender(packet);
        let other = 1 - own;
        if packet.flags & RST != 0 || packet.later_fragment {
            continue;
        }
        if packet.flags & SYN != 0 {
            if packet.flags & ACK != 0
                && let Some(asked) = asked[other].take()
            {
                keep_minimum(&mut least_ns[own], time - asked);
            }
            asked[own] = Some(time);
        } else if let Some(at) = asked[other].take() {
            // The third packet of the handshake; with data it may have waited for the data.
            if packet.flags & ACK != 0 && packet.payload == 0 {
                keep_minimum(&mut least_ns[own], time - at);
            }
        }
        if let Some((stamp, at)) = stamps[other]
            && packet.echo == stamp
            && packet.flags & ACK != 0
        {
            keep_minimum(&mut least_ns[own], time - at);
            stamps[other] = None;
        }
        if packet.stamp != 0
            && (packet.stamp.wrapping_sub(newest_stamp[own]) as i32 > 0 || newest_stamp[own] == 0)
        {
            newest_stamp[own] = packet.stamp;
            if stamps[own].is_none_or(|(_, at)| time - at > 1_000_000_000) {
                stamps[own] = Some((packet.stamp, time));
            }
        }
        if own == from && packet.payload > 0 && packet.flags & SYN == 0 {
            let begin = numbers.next(packet.sequence);
            let end = begin + i64::from(packet.payload);
            if end > top {
                top = end;
                frames += 1;
                many += u64::from(outstanding.len() as u32 > MAX_UNACKNOWLEDGED);
                outstanding.push_back((end, time));
            }
        } else if own != from && packet.flags & ACK != 0 && packet.flags & SYN == 0 {
            let ack = acks.next(packet.acknowledgement);
            while let Some((_, at)) = outstanding.pop_front_if(|frame| frame.0 <= ack) {
                keep_minimum(&mut least_ns[own], time - at);
            }
        }
    }
    let usual = if many * 2 > frames {
        MAX_UNACKNOWLEDGED + 1
    } else {
        0
    };
    (least_ns, usual)
}
