//! The log that keeps every packet.

use super::chunk::{CHUNK_ROWS, Chunk, NO_WORD, NOT_ARRIVED};
use crate::schema::{Direction, Fate};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A packet whose fate, or whose predecessor's fate, is still open.
#[derive(Clone, Copy, Debug)]
struct LoggedPacket {
    sent_ns: u64,
    arrived_ns: u64,
    late_ns: i64,
    /// Uid of the packet that it is a copy of; 0 for originals.
    copy_of: u64,
    size: u32,
    flow: u16,
    element: u16,
    reason: u16,
    direction: Direction,
    fate: Fate,
    open: bool,
}

/// An append-only sink of packets. See the [module](super) for how drivers use it.
#[derive(Debug)]
pub struct PacketLog {
    /// Uid of the first row in `rows`.
    base: u64,
    rows: VecDeque<LoggedPacket>,
    elements: Vec<String>,
    reasons: Vec<&'static str>,
    current: Chunk,
    full: VecDeque<Chunk>,
    spare: Vec<Chunk>,
    shared: Option<SharedNumbers>,
}

/// Uids of one of several logs of a run. Within such a log, a uid is the number among its own packets; its chunks
/// contain the numbers among the packets of all logs.
#[derive(Debug)]
struct SharedNumbers {
    /// The last uid assigned by any of the logs.
    last: Arc<AtomicU64>,
    /// Uids of the packets in `rows`.
    given: VecDeque<u64>,
}

impl PacketLog {
    /// A log for a network with these elements; [`PacketLog::drop`] refers to them by index.
    pub fn new(elements: Vec<String>) -> Self {
        PacketLog {
            base: 1,
            rows: VecDeque::with_capacity(4096),
            current: Chunk::with_room(elements.clone()),
            elements,
            reasons: Vec::new(),
            full: VecDeque::new(),
            spare: Vec::new(),
            shared: None,
        }
    }

    /// The same for one of several logs of a run, which share the sequence of uids.
    #[must_use]
    pub fn sharing(mut self, last: Arc<AtomicU64>) -> Self {
        let given = VecDeque::with_capacity(4096);
        self.shared = Some(SharedNumbers { last, given });
        self
    }

    /// A packet enters the network; returns its uid.
    #[inline]
    pub fn enter(&mut self, flow: u16, direction: Direction, size: u32, sent_ns: u64) -> u64 {
        let uid = self.base + self.rows.len() as u64;
        self.rows.push_back(LoggedPacket {
            sent_ns,
            arrived_ns: NOT_ARRIVED,
            late_ns: 0,
            copy_of: 0,
            size,
            flow,
            element: NO_WORD,
            reason: NO_WORD,
            direction,
            fate: Fate::InFlight,
            open: true,
        });
        if let Some(shared) = &mut self.shared {
            // No other memory depends on this counter: chunks are sent through channels.
            let number = shared.last.fetch_add(1, Ordering::Relaxed) + 1;
            shared.given.push_back(number);
        }
        uid
    }

    /// A packet is released to the other host, `late_ns` after the model's time.
    #[inline]
    pub fn arrive(&mut self, uid: u64, arrived_ns: u64, late_ns: i64) {
        let row = self.open_row(uid);
        row.arrived_ns = arrived_ns;
        row.late_ns = late_ns;
        row.fate = Fate::Delivered;
        row.open = false;
        self.settle(uid);
    }

    /// A packet is released damaged: it is delivered, and its reason marks it as corrupted.
    pub fn arrive_corrupt(&mut self, uid: u64, arrived_ns: u64, late_ns: i64) {
        let reason = self.intern("corrupted");
        self.open_row(uid).reason = reason;
        self.arrive(uid, arrived_ns, late_ns);
    }

    /// An element copies packet `original`; returns the uid of the copy.
    pub fn copy(
        &mut self,
        original: u64,
        flow: u16,
        direction: Direction,
        size: u32,
        sent_ns: u64,
    ) -> u64 {
        let uid = self.enter(flow, direction, size, sent_ns);
        // Its original is still in the network.
        let original = match &self.shared {
            Some(shared) => shared.given[(original - self.base) as usize],
            None => original,
        };
        self.open_row(uid).copy_of = original;
        uid
    }

    /// The element with index `element` drops a packet.
    #[inline]
    pub fn drop(&mut self, uid: u64, element: u16, reason: &'static str) {
        let reason = self.intern(reason);
        let row = self.open_row(uid);
        row.element = element;
        row.reason = reason;
        row.fate = Fate::Dropped;
        row.open = false;
        self.settle(uid);
    }

    /// At the end of the run, the element with index `element` holds the packet.
    pub fn hold(&mut self, uid: u64, element: u16) {
        self.open_row(uid).element = element;
    }

    /// Turns every packet whose fate is open into one in flight; the last chunk, however short,
    /// can be taken then.
    pub fn finish(&mut self) {
        for row in &mut self.rows {
            row.open = false;
        }
        self.move_finished();
        self.cut();
    }

    /// Makes the current chunk available to [`PacketLog::take`], even if it is not full.
    pub fn cut(&mut self) {
        if !self.current.is_empty() {
            self.turn_over();
        }
    }

    /// The number of packets that entered so far.
    pub fn entered(&self) -> u64 {
        self.base + self.rows.len() as u64 - 1
    }

    /// True if a full chunk can be taken.
    #[inline]
    pub fn has_chunk(&self) -> bool {
        !self.full.is_empty()
    }

    /// The oldest full chunk, if there is one.
    pub fn take(&mut self) -> Option<Chunk> {
        self.full.pop_front()
    }

    /// Takes back an encoded chunk for reuse of its memory.
    pub fn recycle(&mut self, mut chunk: Chunk) {
        chunk.clear();
        self.spare.push(chunk);
    }

    #[inline]
    fn open_row(&mut self, uid: u64) -> &mut LoggedPacket {
        let index = uid.wrapping_sub(self.base) as usize;
        let row = self.rows.get_mut(index).filter(|row| row.open);
        // A driver that reports two fates for one packet would falsify the record.
        row.unwrap_or_else(|| panic!("packet {uid} is not in the network"))
    }

    /// Moves finished rows to the chunk if the oldest row is finished; otherwise they wait for it.
    #[inline]
    fn settle(&mut self, uid: u64) {
        if uid == self.base {
            self.move_finished();
        }
    }

    fn move_finished(&mut self) {
        while let Some(row) = self.rows.front().filter(|row| !row.open) {
            let chunk = &mut self.current;
            chunk.flow.push(row.flow);
            chunk.direction.push(row.direction);
            let shared = self.shared.as_mut();
            let number = shared.and_then(|shared| shared.given.pop_front());
            chunk.uid.push(number.unwrap_or(self.base));
            chunk.size_bytes.push(row.size);
            chunk.sent_ns.push(row.sent_ns);
            chunk.arrived_ns.push(row.arrived_ns);
            chunk.late_ns.push(row.late_ns);
            chunk.fate.push(row.fate);
            chunk.element.push(row.element);
            chunk.reason.push(row.reason);
            chunk.copy_of.push(row.copy_of);
            self.base += 1;
            self.rows.pop_front();
            if self.current.len() == CHUNK_ROWS {
                self.turn_over();
            }
        }
    }

    #[cold]
    fn turn_over(&mut self) {
        let next = self
            .spare
            .pop()
            .unwrap_or_else(|| Chunk::with_room(self.elements.clone()));
        let mut full = std::mem::replace(&mut self.current, next);
        full.reasons.clear();
        full.reasons
            .extend(self.reasons.iter().map(|&reason| Cow::Borrowed(reason)));
        self.full.push_back(full);
    }

    #[inline]
    fn intern(&mut self, reason: &'static str) -> u16 {
        // There are few reasons, nearly always the same string constant.
        if let Some(index) = self.reasons.iter().position(|&known| known == reason) {
            return index as u16;
        }
        self.reasons.push(reason);
        (self.reasons.len() - 1) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> PacketLog {
        PacketLog::new(vec!["forward.0".into(), "forward.1".into()])
    }

    #[test]
    fn rows_come_out_in_order_of_uid_whatever_the_order_of_fates() {
        let mut log = log();
        for i in 0..4 {
            assert_eq!(log.enter(1, Direction::Forward, 1500, i * 10), i + 1);
        }
        log.arrive(3, 500, 7);
        log.drop(2, 1, "random");
        log.arrive(1, 400, 0);
        log.hold(4, 0);
        log.finish();
        let chunk = log.take().unwrap();
        assert_eq!(chunk.uid, [1, 2, 3, 4]);
        let rows: Vec<_> = (0..4).map(|i| chunk.row(i)).collect();
        assert_eq!(rows[0].arrived_ns, Some(400));
        assert_eq!(rows[1].fate, Fate::Dropped);
        assert_eq!(rows[1].element.as_deref(), Some("forward.1"));
        assert_eq!(rows[1].reason.as_deref(), Some("random"));
        assert_eq!((rows[2].arrived_ns, rows[2].late_ns), (Some(500), Some(7)));
        assert_eq!((rows[3].fate, rows[3].late_ns), (Fate::InFlight, None));
        assert_eq!(rows[3].element.as_deref(), Some("forward.0"));
        assert!(log.take().is_none());
        assert_eq!(log.entered(), 4);
    }

    #[test]
    fn chunks_are_full_and_recycled_without_loss() {
        let mut log = log();
        let mut next = 1;
        let total = 3 * CHUNK_ROWS as u64 + 5;
        for i in 0..total {
            let uid = log.enter(1, Direction::Forward, 100, i);
            log.arrive(uid, i + 1, 0);
            while let Some(chunk) = log.take() {
                assert_eq!(chunk.len(), CHUNK_ROWS);
                assert_eq!(chunk.uid[0], next);
                next += CHUNK_ROWS as u64;
                log.recycle(chunk);
            }
        }
        log.finish();
        let last = log.take().unwrap();
        assert_eq!((last.len(), last.uid[0]), (5, next));
    }

    #[test]
    fn logs_of_one_run_number_their_packets_together() {
        let last = Arc::new(AtomicU64::new(0));
        let mut logs = [log().sharing(last.clone()), log().sharing(last.clone())];
        for turn in [0, 1, 1, 0] {
            logs[turn].enter(1, Direction::Forward, 100, 5);
        }
        let copy = logs[1].copy(2, 1, Direction::Forward, 100, 6);
        assert_eq!(copy, 3, "a log numbers its own packets");
        logs[1].arrive(1, 7, 0);
        logs[1].cut();
        assert_eq!(logs[1].take().unwrap().uid, [2]);
        logs[1].arrive(3, 8, 0);
        logs[1].drop(2, 0, "random");
        let rest = logs.each_mut().map(|log| {
            log.finish();
            log.take().unwrap()
        });
        assert_eq!([&rest[0].uid[..], &rest[1].uid], [[1, 4], [3, 5]]);
        assert_eq!(rest[1].copy_of, [0, 3]);
    }

    #[test]
    #[should_panic(expected = "packet 1 is not in the network")]
    fn a_packet_has_one_fate() {
        let mut log = log();
        log.enter(1, Direction::Forward, 100, 0);
        log.drop(1, 0, "random");
        log.arrive(1, 5, 0);
    }
}
