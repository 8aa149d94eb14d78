//! The fates of packets from a capture at their receiver.
//!
//! Data that arrive beyond the next expected byte leave a hole. If it is filled by a repetition, its packets were lost;
//! if it is filled by late data they were not, and if the receiver acknowledges it although nothing was captured, the
//! capture missed them. Times of sending are those of the sender's time stamps (RFC 7323), moved so that the fastest
//! packet took half of the minimum round-trip time. Packets that were lost after all others of a burst leave no hole,
//! and losses of repetitions leave none of their own: these are not known.

use super::fate_columns::{Fates, Stream};
use super::one_end::reordering;
use super::pairs::pieces;
use super::ranges::Ranges;
use super::stream::{Frame, Newest, Unwrapped};
use super::{ACK, Connection, SYN, View};
use std::collections::BTreeMap;

/// Maximum number of packets of one hole: larger ones are parts that the capture lacks.
const MAX_HOLE: i64 = 4096;
/// Maximum number of packets in holes per captured packet, and for short captures.
const MAX_LOST: usize = 16;
/// Ticks of the clocks of time stamps that systems use.
const TICKS_NS: [f64; 4] = [1e3, 1e6, 4e6, 1e7];
/// Tolerance for these, and the minimum time over which a tick is measured.
const TICK_SHARE: f64 = 0.03;
const MIN_SPAN_NS: i64 = 300_000_000;

/// Where a packet of a hole was sent: after one packet and before another, at a share of the time between both.
struct Between {
    row: u32,
    after: Option<u32>,
    before: u32,
    share: f64,
}

struct Evaluation {
    fates: Fates,
    /// Time stamps that do not wrap; those of packets of holes mean nothing.
    ticks: Vec<i64>,
    stamps: Unwrapped,
    is_stamped: bool,
    /// Packets of holes by their last byte.
    holes: BTreeMap<i64, u32>,
    lost: Vec<Between>,
    /// Rows that turned out to be no packets that were lost.
    dropped: Vec<bool>,
    seen: Ranges,
    newest: Option<Newest>,
    newest_row: Option<u32>,
    reordering_ns: i64,
    segment: i64,
}

/// The fates of the packets that the end `from` sent, captured at the other end; `round_ns` is the minimum round-trip
/// time, if known.
pub(super) fn evaluate(
    view: &View,
    connection: &Connection,
    from: usize,
    stream: &Stream,
    round_ns: Option<i64>,
) -> Fates {
    let packets = pieces(&stream.frames, stream.segment);
    let first = stream.frames.first();
    let begin = match (connection.initial[from], first) {
        (None, Some(frame)) => frame.begin,
        _ => i64::from(stream.base),
    };
    let mut evaluation = Evaluation {
        fates: Fates::default(),
        ticks: Vec::new(),
        stamps: Unwrapped::near(first.map_or(0, |frame| frame.stamp)),
        is_stamped: stream.frames.iter().all(|frame| frame.stamp != 0),
        holes: BTreeMap::new(),
        lost: Vec::new(),
        dropped: Vec::new(),
        seen: Ranges::default(),
        newest: first.map(|frame| Newest {
            end: begin,
            time_ns: frame.time_ns,
            stamp: 0,
            ip_id: 0,
        }),
        newest_row: None,
        reordering_ns: reordering(view, connection),
        segment: stream.segment,
    };
    let mut acks = Unwrapped::near(stream.base);
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
                evaluation.arrive(piece);
            }
        } else if packet.flags & ACK != 0 && !packet.later_fragment {
            evaluation.fates.answers_ns.push(packet.time_ns);
            evaluation.acknowledge(acks.next(packet.acknowledgement));
        }
    }
    evaluation.finish(round_ns)
}

impl Evaluation {
    fn push(&mut self, known_ns: i64, size: u32, again: bool, tick: i64) -> u32 {
        self.ticks.push(tick);
        self.dropped.push(false);
        self.fates.push(Fates::NEVER, known_ns, size, again)
    }

    fn arrive(&mut self, piece: &Frame) {
        let known = self.seen.insert(piece.begin, piece.end);
        let tick = self.stamps.next(piece.stamp);
        let size = (piece.end - piece.begin) as u32 + piece.headers;
        let top = self.newest.map_or(piece.begin, |newest| newest.end);
        let repeats = self
            .newest
            .is_some_and(|newest| newest.is_repeated_by(piece, self.reordering_ns));
        let again = known > 0 || repeats;
        let row = self.push(piece.time_ns, size, again, tick);
        let filled: Vec<i64> = self
            .holes
            .range(piece.begin..piece.end)
            .map(|it| *it.0)
            .collect();
        for last in filled {
            if let Some(hole) = self.holes.remove(&last) {
                // Data that are merely late were not lost.
                self.dropped[hole as usize] |= !repeats;
            }
        }
        if piece.begin > top {
            self.open(top, piece, row);
        }
        if piece.end > top {
            self.newest = Some(Newest {
                end: piece.end,
                time_ns: piece.time_ns,
                stamp: piece.stamp,
                ip_id: piece.ip_id,
            });
            self.newest_row = Some(row);
        }
    }

    /// A hole between the newest data and a packet beyond.
    fn open(&mut self, begin: i64, piece: &Frame, row: u32) {
        let count = (piece.begin - begin + self.segment - 1) / self.segment;
        let most = MAX_LOST * self.ticks.len() + MAX_HOLE as usize;
        if count > MAX_HOLE || self.lost.len() + count as usize > most {
            self.fates.unclear += count as u64;
            return;
        }
        for number in 0..count {
            let from = begin + number * self.segment;
            let end = piece.begin.min(from + self.segment);
            let size = (end - from) as u32 + piece.headers;
            let lost = self.push(Fates::NEVER, size, false, 0);
            self.holes.insert(end - 1, lost);
            self.lost.push(Between {
                row: lost,
                after: self.newest_row,
                before: row,
                share: (number + 1) as f64 / (count + 1) as f64,
            });
        }
    }

    /// Data that are acknowledged have arrived.
    fn acknowledge(&mut self, ack: i64) {
        while let Some(entry) = self.holes.first_entry() {
            if *entry.key() >= ack {
                break;
            }
            self.dropped[entry.remove() as usize] = true;
            self.fates.unclear += 1;
        }
    }

    fn finish(mut self, round_ns: Option<i64>) -> Fates {
        if let (Some(tick), Some(round)) = (self.tick(), round_ns) {
            self.date(tick, round);
            self.fates.tick_ns = Some(tick as i64);
        }
        let mut order: Vec<usize> = (0..self.dropped.len())
            .filter(|&row| !self.dropped[row])
            .collect();
        if self.fates.tick_ns.is_some() {
            order.sort_by_key(|&row| self.fates.sent_ns[row]);
        } else {
            // Packets of holes were sent before the packet that showed the hole.
            let mut places: Vec<u32> = (0..self.dropped.len() as u32).collect();
            for between in &self.lost {
                places[between.row as usize] = between.before;
            }
            order.sort_by_key(|&row| (places[row], self.fates.known_ns[row] != Fates::NEVER));
        }
        let old = self.fates;
        let mut fates = Fates {
            answers_ns: old.answers_ns,
            tick_ns: old.tick_ns,
            unclear: old.unclear,
            ..Fates::default()
        };
        for row in order {
            fates.push(
                old.sent_ns[row],
                old.known_ns[row],
                old.size_bytes[row],
                old.again[row],
            );
        }
        fates
    }

    /// Rows of packets that arrived.
    fn arrived(&self) -> Vec<usize> {
        (0..self.ticks.len())
            .filter(|&row| self.fates.known_ns[row] != Fates::NEVER)
            .collect()
    }

    /// The tick of the sender's time stamps in ns, if they are those of a known clock.
    fn tick(&self) -> Option<f64> {
        let rows = self.arrived();
        let (first, last) = (*rows.first()?, *rows.last()?);
        let span = self.fates.known_ns[last].saturating_sub(self.fates.known_ns[first]);
        let ticks = self.ticks[last].saturating_sub(self.ticks[first]);
        if !self.is_stamped || span < MIN_SPAN_NS || ticks <= 0 {
            return None;
        }
        let measured = span as f64 / ticks as f64;
        TICKS_NS
            .into_iter()
            .find(|tick| (measured / tick - 1.0).abs() < TICK_SHARE)
    }

    /// Sets the times of sending. Packets of one tick are spread over it.
    fn date(&mut self, tick: f64, round_ns: i64) {
        let mut rows = self.arrived();
        let Some(&first) = rows.first() else { return };
        let (zero_ns, zero) = (self.fates.known_ns[first], self.ticks[first]);
        rows.sort_by_key(|&row| self.ticks[row]);
        let mut sent = vec![0.0; self.ticks.len()];
        for group in rows.chunk_by(|&one, &other| self.ticks[one] == self.ticks[other]) {
            for (number, &row) in group.iter().enumerate() {
                let part = (number as f64 + 0.5) / group.len() as f64;
                sent[row] = (self.ticks[row].saturating_sub(zero) as f64 + part) * tick;
            }
        }
        let known = &self.fates.known_ns;
        let delay = |row: usize| known[row].saturating_sub(zero_ns) as f64 - sent[row];
        let least = rows
            .iter()
            .map(|&row| delay(row))
            .fold(f64::INFINITY, f64::min);
        let shift = least - round_ns as f64 / 2.0;
        for between in &self.lost {
            let before = sent[between.before as usize];
            let after = between.after.map_or(before, |row| sent[row as usize]);
            sent[between.row as usize] =
                after.min(before) + (before - after).max(0.0) * between.share;
        }
        for (row, sent) in sent.into_iter().enumerate() {
            self.fates.sent_ns[row] = zero_ns.saturating_add((sent + shift) as i64);
        }
    }
}
