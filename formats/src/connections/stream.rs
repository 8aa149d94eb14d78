//! The bytes that one end of a TCP connection sent, as frames.

use super::{ACK, Connection, SYN, View};
use crate::pcapng::Packet;
use std::collections::BTreeMap;

/// Usual packet size, which distinguishes frames of segmenting adapters from packets if no SYN was captured.
const MTU: u32 = 1500;
/// Largest packets of Ethernet, with jumbo frames.
const MAX_MTU: u32 = 9216;

/// Minimum payload of packets made by segmentation (as in Linux).
const MIN_SEGMENT: i64 = 88;
/// Maximum size of headers.
const MAX_HEADERS: u32 = 512;

/// Bytes of the headers of a packet.
pub(super) fn headers(packet: &Packet) -> u32 {
    packet.size.saturating_sub(packet.payload).min(MAX_HEADERS)
}

/// One frame with payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Its bytes, by numbers that do not wrap.
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) time_ns: i64,
    pub(super) stamp: u32,
    /// Bytes of its headers.
    pub(super) headers: u32,
    pub(super) ip_id: u16,
}

/// The packet that carried the newest data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) end: i64,
    pub(super) time_ns: i64,
    pub(super) stamp: u32,
    pub(super) ip_id: u16,
}

impl Newest {
    /// True for data below the newest that are too late to be merely out of order, if they were never captured before.
    pub(super) fn is_repeated_by(&self, frame: &Frame, reordering_ns: i64) -> bool {
        if frame.end > self.end {
            return false;
        }
        match frame.stamp.wrapping_sub(self.stamp) as i32 {
            later if later > 0 && frame.stamp != 0 => true,
            earlier if earlier < 0 && frame.stamp != 0 => false,
            // Within one tick of the time-stamp clock the identification shows the order of sending.
            _ if frame.ip_id != 0 && self.ip_id != 0 && frame.ip_id != self.ip_id => {
                frame.ip_id.wrapping_sub(self.ip_id) as i16 > 0
            }
            _ => frame.time_ns.saturating_sub(self.time_ns) > reordering_ns,
        }
    }
}

/// Numbers of 32 bits that wrap, as numbers that keep growing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unwrapped {
    last: i64,
}

impl Unwrapped {
    /// Numbers near `base`.
    pub(super) fn near(base: u32) -> Self {
        Unwrapped {
            last: i64::from(base),
        }
    }

    pub(super) fn next(&mut self, number: u32) -> i64 {
        let step = number.wrapping_sub(self.last as u32) as i32;
        self.last += i64::from(step);
        self.last
    }
}

/// The number of the first byte of the end `from`, or of its first captured byte.
pub(super) fn base(view: &View, connection: &Connection, from: usize) -> u32 {
    if let Some(initial) = connection.initial[from] {
        return initial.wrapping_add(1);
    }
    let packets = connection
        .packets
        .iter()
        .map(|&place| &view.packets[place as usize]);
    for packet in packets {
        if connection.sender(packet) == from {
            if packet.payload > 0 {
                return packet.sequence;
            }
        } else if packet.flags & ACK != 0 {
            return packet.acknowledgement;
        }
    }
    0
}

/// The frames with payload that the end `from` sent, in order of time.
pub(super) fn frames(view: &View, connection: &Connection, from: usize, base: u32) -> Vec<Frame> {
    let mut numbers = Unwrapped::near(base);
    let mut frames = Vec::new();
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        if packet.payload == 0 || packet.flags & SYN != 0 || connection.sender(packet) != from {
            continue;
        }
        let begin = numbers.next(packet.sequence);
        frames.push(Frame {
            begin,
            end: begin + i64::from(packet.payload),
            time_ns: packet.time_ns,
            stamp: packet.stamp,
            headers: headers(packet),
            ip_id: packet.ip_id,
        });
    }
    frames
}

/// Payload of the packets that the end `from` sends, several of which a frame may contain.
pub(super) fn segment_bytes(connection: &Connection, from: usize, frames: &[Frame]) -> i64 {
    let headers = frames.iter().map(|frame| frame.headers).max().unwrap_or(40);
    let largest = frames
        .iter()
        .map(|frame| frame.end - frame.begin)
        .max()
        .unwrap_or(1);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for frame in frames {
        *counts.entry(frame.end - frame.begin).or_default() += 1;
    }
    let ip = if connection.ends[0].address.contains(':') {
        40
    } else {
        20
    };
    let announced = [connection.mss[1 - from], connection.mss[from]];
    let announced = announced.into_iter().filter(|&mss| mss > 0).min();
    let maximum = if let Some(mss) = announced {
        // TCP options are part of the segment.
        i64::from(mss) - i64::from(headers.saturating_sub(ip + 20))
    } else {
        let usual = i64::from(MTU.saturating_sub(headers));
        let jumbo = largest > usual
            && largest + i64::from(headers) <= i64::from(MAX_MTU)
            && largest % usual != 0
            && counts.iter().all(|(_, &count)| count <= counts[&largest]);
        if jumbo { largest } else { usual }
    };
    let maximum = maximum.max(MIN_SEGMENT);
    // A path with smaller packets: whole frames are multiples of the usual ones.
    let large = |payload: i64| payload > maximum;
    let of_large: u64 = counts
        .iter()
        .filter(|it| large(*it.0))
        .map(|it| *it.1)
        .sum();
    let usual = counts
        .iter()
        .filter(|it| !large(*it.0))
        .max_by_key(|it| (*it.1, *it.0));
    match usual {
        Some((&usual, _)) if of_large > 0 && usual > maximum / 3 => {
            let multiples = counts
                .iter()
                .filter(|it| large(*it.0) && *it.0 % usual == 0);
            let multiples: u64 = multiples.map(|it| *it.1).sum();
            if multiples * 2 > of_large {
                usual
            } else {
                maximum
            }
        }
        _ => maximum,
    }
}
