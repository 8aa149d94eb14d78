//! The packets of a connection captured at both ends, each with its times at both.
//!
//! TCP data are matched by the bytes of the stream: a packet that carried a byte at the sending end arrived with the
//! frame that contained the byte at the other end. Frames of several packets are split into these. Bytes that were sent
//! more than once are attributed by time stamp and identification, or else by the delay of their neighbours.

use super::attribution::{Index, attribute};
use super::packet_rows::{Rows, in_order};
use super::stream::{Frame, base, frames, segment_bytes};
use super::{Connection, FIN, RST, SYN, TCP, View, datagrams};
use crate::pcapng::Packet;

/// Maximum average number of packets per frame of a capture.
const MAX_PACKETS: i64 = 400;

/// The packets of one connection.
#[derive(Clone, Debug, Default)]
pub struct Matched {
    /// Packets in the direction of the data.
    pub data: Rows,
    /// Packets in the opposite direction.
    pub back: Rows,
    /// Packets that were captured where they arrived, but not where they were sent.
    pub strangers: u64,
    /// Packets with data at the near end.
    pub near_packets: u64,
    /// Packets with data at the far end.
    pub far_packets: u64,
    /// Packets with data that were captured at both ends.
    pub matched_packets: u64,
    /// Bytes of payload that arrived, each counted once.
    pub goodput_bytes: u64,
    /// Frames that contain several packets, at either end.
    pub large_frames: u64,
}

/// One end of a connection in one capture.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) view: &'a View,
    pub(super) connection: &'a Connection,
}

impl<'a> Seen<'a> {
    fn packets(self, from: usize) -> impl Iterator<Item = &'a Packet> {
        let packets = self.connection.packets.iter();
        packets
            .map(move |&place| &self.view.packets[place as usize])
            .filter(move |packet| self.connection.sender(packet) == from)
    }
}

/// Matches the packets of a connection captured at `near`, where its data are sent, and at `far`.
pub fn match_ends(near: (&View, &Connection), far: (&View, &Connection)) -> Matched {
    let [near, far] = [near, far].map(|(view, connection)| Seen { view, connection });
    let from = near.connection.data_from();
    // Either capture may lack the beginning and number the ends differently.
    let turned = usize::from(near.connection.turned(far.connection) == Some(true));
    let data = direction((near, from), (far, from ^ turned));
    let back = direction((far, (1 - from) ^ turned), (near, 1 - from));
    Matched {
        strangers: data.strangers + back.strangers,
        near_packets: data.sent,
        far_packets: data.came,
        matched_packets: data.matched,
        goodput_bytes: data.goodput,
        large_frames: data.large,
        data: data.rows,
        back: back.rows,
    }
}

/// The packets of one direction.
#[derive(Default)]
struct OneWay {
    rows: Rows,
    strangers: u64,
    /// Packets with payload.
    sent: u64,
    came: u64,
    matched: u64,
    goodput: u64,
    large: u64,
}

fn direction(sent: (Seen<'_>, usize), came: (Seen<'_>, usize)) -> OneWay {
    let [departures, arrivals]: [Vec<&Packet>; 2] =
        [sent, came].map(|(seen, from)| seen.packets(from).collect());
    let numbered = |packets: &[&Packet]| packets.iter().any(|packet| packet.uid > 0);
    if numbered(&departures) && numbered(&arrivals) {
        return by_number(&departures, &arrivals);
    }
    if sent.0.connection.protocol != TCP {
        let (rows, strangers) = datagrams::rows(&departures, &arrivals);
        let came = rows.matched() as u64 + strangers;
        return OneWay {
            sent: rows.sent_ns.len() as u64,
            came,
            matched: rows.matched() as u64,
            strangers,
            goodput: arrivals
                .iter()
                .map(|packet| u64::from(packet.payload))
                .sum(),
            large: 0,
            rows,
        };
    }
    let mut way = by_bytes(sent, came);
    // Packets before and after the data are not part of the measurement, as at one end.
    let span = way
        .rows
        .sent_ns
        .first()
        .copied()
        .zip(way.rows.sent_ns.last().copied());
    let is_during = |packet: &&&Packet| {
        span.is_none_or(|(first, last)| (first..=last).contains(&packet.time_ns))
    };
    let departures = acknowledgements(&departures);
    let departures: Vec<&Packet> = departures.iter().filter(is_during).copied().collect();
    let (rows, strangers) = without_data(&departures, &acknowledgements(&arrivals));
    let strangers = if span.is_none() { strangers } else { 0 };
    way.rows.append(rows);
    way.strangers += strangers;
    way
}

/// Matches packets by the number that a capture assigns to each at every interface.
fn by_number(departures: &[&Packet], arrivals: &[&Packet]) -> OneWay {
    let keyed = |packets: &[&Packet]| -> Vec<(u64, u32)> {
        let places = (0_u32..).zip(packets).filter(|(_, packet)| packet.uid > 0);
        places.map(|(place, packet)| (packet.uid, place)).collect()
    };
    let mut partner = vec![None; departures.len()];
    let mut known = 0;
    for (from, to) in in_order(keyed(departures), keyed(arrivals)) {
        partner[from as usize] = Some(arrivals[to as usize].time_ns);
        known += 1;
    }
    let mut way = OneWay::default();
    for (packet, arrived) in departures.iter().zip(partner) {
        // Packets that our exports add for analysers have no number, and are not part of the run.
        if packet.uid > 0 {
            way.rows.push(packet.size, packet.time_ns, arrived);
        }
    }
    way.sent = way.rows.sent_ns.len() as u64;
    way.came = keyed(arrivals).len() as u64;
    way.matched = known;
    way.strangers = way.came - known;
    way.goodput = {
        let mut ranges = super::ranges::Ranges::default();
        let mut numbers =
            super::stream::Unwrapped::near(arrivals.first().map_or(0, |it| it.sequence));
        for packet in arrivals
            .iter()
            .filter(|packet| packet.protocol == TCP && packet.payload > 0)
        {
            let begin = numbers.next(packet.sequence);
            ranges.insert(begin, begin + i64::from(packet.payload));
        }
        let datagrams = arrivals.iter().filter(|packet| packet.protocol != TCP);
        ranges.length() as u64
            + datagrams
                .map(|packet| u64::from(packet.payload))
                .sum::<u64>()
    };
    way
}

/// The packets without data, except those that open and close a connection.
fn acknowledgements<'a>(packets: &[&'a Packet]) -> Vec<&'a Packet> {
    let packets = packets.iter().copied();
    packets
        .filter(|packet| packet.payload == 0 && packet.flags & (SYN | FIN | RST) == 0)
        .collect()
}

/// Matches packets without data.
fn without_data(departures: &[&Packet], arrivals: &[&Packet]) -> (Rows, u64) {
    let (here, there) = (departures, arrivals);
    let pairs = |with_id: bool| {
        let keyed = |packets: &[&Packet]| -> Vec<_> {
            let key = |packet: &Packet| {
                let id = if with_id { packet.ip_id } else { 0 };
                (
                    packet.flags,
                    packet.sequence,
                    packet.acknowledgement,
                    packet.stamp,
                    packet.echo,
                    id,
                )
            };
            (0_u32..)
                .zip(packets)
                .map(|(place, packet)| (key(packet), place))
                .collect()
        };
        in_order(keyed(here), keyed(there))
    };
    let mut best = pairs(true);
    if best.len() * 2 < here.len().min(there.len()) {
        // Some paths rewrite identifications.
        best = pairs(false);
    }
    let mut arrived = vec![None; here.len()];
    for &(from, to) in &best {
        arrived[from as usize] = Some(there[to as usize].time_ns);
    }
    let mut rows = Rows::default();
    for (packet, arrived) in here.iter().zip(arrived) {
        rows.push(packet.size, packet.time_ns, arrived);
    }
    (rows, (there.len() - best.len()) as u64)
}

/// The payload of packets, larger for a file that claims large frames everywhere, so that its packets are limited.
pub(super) fn limited(segment: i64, frames: &[Frame]) -> i64 {
    let bytes: i64 = frames.iter().map(|frame| frame.end - frame.begin).sum();
    segment.max(bytes / (MAX_PACKETS * (frames.len() as i64 + 1)))
}

/// The frames as packets of at most `segment` bytes of payload.
pub(super) fn pieces(frames: &[Frame], segment: i64) -> Vec<Frame> {
    let mut pieces = Vec::with_capacity(frames.len());
    for frame in frames {
        let mut begin = frame.begin;
        let mut id = frame.ip_id;
        while begin < frame.end {
            let end = frame.end.min(begin + segment);
            pieces.push(Frame {
                begin,
                end,
                ip_id: id,
                ..*frame
            });
            begin = end;
            // Segmenting adapters count up, but 0 is not an identification.
            id = if id == 0 { 0 } else { id.wrapping_add(1) };
        }
    }
    pieces
}

fn by_bytes(sent: (Seen<'_>, usize), came: (Seen<'_>, usize)) -> OneWay {
    let base = base(sent.0.view, sent.0.connection, sent.1);
    let [departed, arrived] =
        [sent, came].map(|(seen, from)| frames(seen.view, seen.connection, from, base));
    let segments = [(sent, &departed), (came, &arrived)].map(|((seen, from), frames)| {
        if frames.is_empty() {
            i64::MAX
        } else {
            segment_bytes(seen.connection, from, frames)
        }
    });
    let segment = limited(segments[0].min(segments[1]), &departed);
    let departures = pieces(&departed, segment);
    let (out, index) = (Index::new(&departures), Index::new(&arrived));
    let mut way = OneWay {
        large: departed
            .iter()
            .chain(&arrived)
            .filter(|it| it.end - it.begin > segment)
            .count() as u64,
        sent: departures.len() as u64,
        ..OneWay::default()
    };
    let times = attribute(&out, &index);
    for (packet, arrived) in departures.iter().zip(times) {
        let size = (packet.end - packet.begin) as u32 + packet.headers;
        way.rows.push(size, packet.time_ns, arrived);
    }
    way.matched = way.rows.matched() as u64;
    let mut ranges = super::ranges::Ranges::default();
    let mut holders = Vec::new();
    for frame in &arrived {
        ranges.insert(frame.begin, frame.end);
        let packets = ((frame.end - frame.begin + segment - 1) / segment) as u64;
        way.came += packets;
        out.holders(frame.end - 1, &mut holders);
        if holders.is_empty() {
            way.strangers += packets;
        }
    }
    way.goodput = ranges.length() as u64;
    way
}
