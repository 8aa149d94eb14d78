//! Matches datagrams of two captures.
//!
//! Datagrams have no sequence numbers. They are distinguished by the first bytes of their payload or, if those were not
//! captured or are not distinct, by the IP identification. Frames may contain several (UDP GSO and GRO): the first of
//! them is recognised, and the others follow it in order.

use super::packet_rows::{Rows, in_order};
use super::stream::headers;
use crate::pcapng::Packet;

/// Payloads identify datagrams if at least this share of them are distinct.
const DISTINCT: f64 = 0.9;

/// Maximum number of datagrams in a frame (UDP_MAX_SEGMENTS of Linux).
const MAX_PARTS: u32 = 128;

/// A datagram, or a fragment of one.
#[derive(Clone, Copy, Debug)]
struct Unit {
    time_ns: i64,
    size: u32,
    ip_id: u16,
    /// Its index within the frame.
    part: u32,
    /// Index of the packet.
    packet: u32,
}

/// The packets `sent`, with the arrivals of those that `came`, and the number of arrivals that were not sent.
pub(super) fn rows(sent: &[&Packet], came: &[&Packet]) -> (Rows, u64) {
    let segment = [largest(came), largest(sent)];
    let (departures, arrivals) = (units(sent, segment[0]), units(came, segment[1]));
    let whole = departures.len() == sent.len() && arrivals.len() == came.len();
    let key = key_of(sent, came, whole);
    let keyed = |units: &[Unit], packets: &[&Packet]| -> Vec<_> {
        let units = units.iter().enumerate().filter(|(_, unit)| unit.part == 0);
        units
            .map(|(place, unit)| (key(packets[unit.packet as usize]), place as u32))
            .collect()
    };
    let pairs = in_order(keyed(&departures, sent), keyed(&arrivals, came));
    let mut partner = vec![None; departures.len()];
    let mut taken = vec![None; arrivals.len()];
    for (from, to) in pairs {
        partner[from as usize] = Some(to);
        taken[to as usize] = Some(from);
    }
    if !whole {
        follow(&departures, &mut partner, &arrivals, &mut taken);
        follow(&arrivals, &mut taken, &departures, &mut partner);
    }
    let mut rows = Rows::default();
    for (unit, partner) in departures.iter().zip(&partner) {
        let arrived = partner.map(|place| arrivals[place as usize].time_ns);
        rows.push(unit.size, unit.time_ns, arrived);
    }
    let strangers = taken.iter().filter(|taken| taken.is_none()).count();
    (rows, strangers as u64)
}

fn largest(packets: &[&Packet]) -> u32 {
    let whole = packets.iter().filter(|packet| !packet.later_fragment);
    whole.map(|packet| packet.payload).max().unwrap_or(0)
}

/// The datagrams of frames, of which those with more than `segment` bytes of payload hold several.
fn units(packets: &[&Packet], segment: u32) -> Vec<Unit> {
    let mut units = Vec::with_capacity(packets.len());
    for (place, packet) in (0_u32..).zip(packets) {
        let headers = headers(packet);
        let parts = packet
            .payload
            .checked_div(segment)
            .map_or(1, |_| packet.payload.div_ceil(segment));
        let parts = if packet.later_fragment || parts > MAX_PARTS {
            1
        } else {
            parts.max(1)
        };
        for part in 0..parts {
            let payload = if parts == 1 {
                packet.payload
            } else {
                segment.min(packet.payload - part * segment)
            };
            units.push(Unit {
                time_ns: packet.time_ns,
                size: payload + headers,
                ip_id: packet.ip_id.wrapping_add(part as u16),
                part,
                packet: place,
            });
        }
    }
    units
}

/// Payload, identification, offset of a fragment, and length.
type Key = (u64, u16, u32, u32);

/// The function that computes the key of packets, which includes their length unless frames contain several.
fn key_of(sent: &[&Packet], came: &[&Packet], whole: bool) -> impl Fn(&Packet) -> Key {
    let plain = || {
        sent.iter()
            .chain(came)
            .filter(|packet| !packet.later_fragment)
    };
    // If one end kept fewer bytes, only the first ones can be compared.
    let long = plain().all(|packet| packet.hash as u32 != 0);
    let hash_of = move |packet: &Packet| if long { packet.hash } else { packet.hash >> 32 };
    let mut hashes: Vec<u64> = sent.iter().map(|packet| hash_of(packet)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    let by_payload = hashes.len() as f64 >= DISTINCT * sent.len() as f64;
    let kept = plain().all(|packet| packet.hash != 0);
    move |packet: &Packet| {
        let hash = if kept && !packet.later_fragment {
            hash_of(packet)
        } else {
            0
        };
        let id = if by_payload && hash != 0 {
            0
        } else {
            packet.ip_id
        };
        let length = if whole || packet.later_fragment {
            packet.payload
        } else {
            0
        };
        (hash, id, packet.sequence, length)
    }
}

/// Matches the later parts of frames with those that follow the match of the first part.
fn follow(
    frames: &[Unit],
    partner: &mut [Option<u32>],
    others: &[Unit],
    taken: &mut [Option<u32>],
) {
    let mut next = None;
    for (place, unit) in frames.iter().enumerate() {
        if unit.part == 0 {
            next = partner[place].map(|partner| partner as usize + 1);
            continue;
        }
        let Some(mut at) = next else { continue };
        // If identifications count up, they show which one is missing.
        let is_free = |at: usize| taken.get(at).is_some_and(Option::is_none);
        let counts = |at: usize| others[at].ip_id == unit.ip_id;
        let ahead = (at..)
            .take_while(|&at| is_free(at))
            .take(64)
            .find(|&at| counts(at));
        match ahead {
            Some(ahead) => at = ahead,
            None if is_free(at) && (unit.ip_id == unit.part as u16 || others[at].ip_id == 0) => {}
            None => continue,
        }
        partner[place] = Some(at as u32);
        taken[at] = Some(place as u32);
        next = Some(at + 1);
    }
}
