//! The fates of packets from a capture at their sender: which transmission each acknowledgement is of.
//!
//! A packet counts as acknowledged with its last byte, by the cumulative or by a selective acknowledgement. Of several
//! transmissions of a byte the acknowledgement is of the one whose time stamp it echoes or, where that is not known, of
//! the latest one that is at least as old as four fifths of the minimum round-trip time. The others are lost, unless a
//! duplicate selective acknowledgement (RFC 2883) says later that another one arrived as well.

use super::fate_columns::{Fates, Stream};
use super::pairs::pieces;
use super::ranges::Ranges;
use super::stream::{Frame, Unwrapped};
use super::{ACK, Connection, SYN, View};
use crate::pcapng::{Packet, Sack};
use std::collections::BTreeMap;

/// Maximum number of transmissions of a byte among which the acknowledged one is chosen.
const MAX_TRANSMISSIONS: usize = 64;
/// Maximum number of packets that one transmission repeats.
const MAX_REPEATED: usize = 64;
/// Wider selective acknowledgements are none: windows are smaller (RFC 7323).
const MAX_WINDOW: i64 = 1 << 30;

struct Evaluation {
    fates: Fates,
    /// Time stamp of each packet.
    stamps: Vec<u32>,
    /// Packets that are not acknowledged yet, by their last byte: all transmissions in order of time.
    pending: BTreeMap<i64, Vec<u32>>,
    /// Transmissions that were not chosen, in the same form.
    spare: BTreeMap<i64, Vec<u32>>,
    seen: Ranges,
    /// Bytes that are selectively acknowledged.
    sacked: Ranges,
    ack: i64,
    minimum_ns: i64,
}

/// The fates of the packets that the end `from` sent, captured there; `round_ns` is the minimum round-trip time, if
/// known.
pub(super) fn evaluate(
    view: &View,
    connection: &Connection,
    from: usize,
    stream: &Stream,
    round_ns: Option<i64>,
) -> Fates {
    let mut evaluation = Evaluation {
        fates: Fates::default(),
        stamps: Vec::new(),
        pending: BTreeMap::new(),
        spare: BTreeMap::new(),
        seen: Ranges::default(),
        sacked: Ranges::default(),
        ack: i64::MIN,
        minimum_ns: round_ns.unwrap_or(0),
    };
    let mut acks = Unwrapped::near(stream.base);
    let packets = pieces(&stream.frames, stream.segment);
    let mut next = packets.iter();
    let mut frames = stream.frames.iter();
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        if packet.flags & SYN != 0 {
            continue;
        }
        if connection.sender(packet) == from {
            if packet.payload == 0 {
                continue;
            }
            let Some(frame) = frames.next() else { continue };
            let mut left = frame.end - frame.begin;
            while left > 0 {
                let Some(piece) = next.next() else { break };
                left -= piece.end - piece.begin;
                evaluation.send(piece);
            }
        } else if packet.flags & ACK != 0 && !packet.later_fragment {
            let ack = acks.next(packet.acknowledgement);
            evaluation.acknowledge(packet, ack, view.sack(packet));
        }
    }
    evaluation.fates
}

impl Evaluation {
    fn send(&mut self, piece: &Frame) {
        let again = self.seen.insert(piece.begin, piece.end) > 0;
        if !again && piece.end <= self.ack {
            // Captured after its acknowledgement.
            self.fates.unclear += 1;
            return;
        }
        let size = (piece.end - piece.begin) as u32 + piece.headers;
        let row = self.fates.push(piece.time_ns, Fates::NEVER, size, again);
        self.stamps.push(piece.stamp);
        let last = piece.end - 1;
        if again {
            let repeated = self.pending.range_mut(piece.begin..last);
            for (_, rows) in repeated.take(MAX_REPEATED) {
                add(&mut self.fates, rows, row);
            }
            if last < self.ack || self.sacked.covered(last, last + 1) > 0 {
                add(&mut self.fates, self.spare.entry(last).or_default(), row);
                return;
            }
        }
        add(&mut self.fates, self.pending.entry(last).or_default(), row);
    }

    fn acknowledge(&mut self, packet: &Packet, ack: i64, sack: Option<&Sack>) {
        let time_ns = packet.time_ns;
        self.fates.answers_ns.push(time_ns);
        let mut echo = packet.echo;
        while let Some(entry) = self.pending.first_entry() {
            if *entry.key() >= ack {
                break;
            }
            let (last, rows) = entry.remove_entry();
            self.decide(last, &rows, time_ns, echo);
            // The echo is of the packet that filled the first hole (RFC 7323, section 4.3).
            echo = 0;
        }
        self.ack = self.ack.max(ack);
        let Some(sack) = sack else { return };
        let near = |number: u32| ack + i64::from(number.wrapping_sub(ack as u32) as i32);
        let ranges = sack.map(|[begin, end]| (near(begin), near(end)));
        for (number, &(begin, end)) in ranges.iter().enumerate() {
            if begin >= end || end - begin > MAX_WINDOW {
                continue;
            }
            let (outer_begin, outer_end) = ranges[1];
            let inside = outer_begin <= begin && end <= outer_end;
            if number == 0 && (end <= ack || inside) {
                self.repeat(begin, end, time_ns);
                continue;
            }
            let covered: Vec<i64> = self.pending.range(begin..end).map(|it| *it.0).collect();
            for last in covered {
                if let Some(rows) = self.pending.remove(&last) {
                    self.decide(last, &rows, time_ns, 0);
                }
            }
            self.sacked.insert(begin, end);
        }
    }

    /// Chooses among the transmissions of a byte the one that is acknowledged.
    fn decide(&mut self, last: i64, rows: &[u32], time_ns: i64, echo: u32) {
        let age = |row: u32| time_ns.saturating_sub(self.fates.sent_ns[row as usize]);
        let chosen = match rows {
            [] => return,
            &[only] => {
                if !self.fates.again[only as usize] && age(only) > 0 {
                    let least = if self.minimum_ns > 0 {
                        self.minimum_ns.min(age(only))
                    } else {
                        age(only)
                    };
                    self.minimum_ns = least;
                }
                only
            }
            several => {
                let mut echoed = several
                    .iter()
                    .filter(|&&row| echo != 0 && self.stamps[row as usize] == echo);
                let old =
                    |row: &&u32| age(**row).saturating_mul(5) >= self.minimum_ns.saturating_mul(4);
                match (echoed.next(), echoed.next()) {
                    (Some(&row), None) => row,
                    _ => *several.iter().rev().find(old).unwrap_or(&several[0]),
                }
            }
        };
        let known = &mut self.fates.known_ns[chosen as usize];
        if *known == Fates::NEVER {
            *known = time_ns;
        }
        if rows.len() > 1 {
            let others = rows.iter().copied().filter(|&row| row != chosen);
            self.spare.insert(last, others.collect());
        }
    }

    /// A duplicate selective acknowledgement: one more transmission of these bytes arrived.
    fn repeat(&mut self, begin: i64, end: i64, time_ns: i64) {
        for (_, rows) in self.spare.range_mut(begin..end) {
            // A transmission that was sent after the last one to arrive is still on its way.
            let sent = |row: u32| self.fates.sent_ns[row as usize];
            let old = |&row: &u32| {
                time_ns.saturating_sub(sent(row)).saturating_mul(5)
                    >= self.minimum_ns.saturating_mul(4)
            };
            if let Some(place) = rows.iter().rposition(old) {
                let known = &mut self.fates.known_ns[rows.remove(place) as usize];
                if *known == Fates::NEVER {
                    *known = time_ns;
                }
            }
        }
    }
}

/// Adds a transmission to those of the same data.
fn add(fates: &mut Fates, rows: &mut Vec<u32>, row: u32) {
    if let Some(&before) = rows.last()
        && fates.repeated_ns[before as usize] == Fates::NEVER
    {
        fates.repeated_ns[before as usize] = fates.sent_ns[row as usize];
    }
    if rows.len() < MAX_TRANSMISSIONS {
        rows.push(row);
    }
}
