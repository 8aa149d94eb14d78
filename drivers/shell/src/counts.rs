//! Counters of a shell, shown live and at its end.

use narrows_net::Direction;
use narrows_record::Histogram;
use narrows_units::{Span, Time};
use std::sync::atomic::{AtomicU64, Ordering};

/// One direction of the path.
#[derive(Debug, Default)]
pub(super) struct DirectionCounts {
    /// Packets and bytes that entered.
    pub(super) entered: (u64, u64),
    /// Packets and bytes that left at the other end.
    pub(super) left: (u64, u64),
    /// Packets dropped.
    pub(super) dropped: u64,
    /// Model times of the first and the last departure.
    pub(super) first: Option<Time>,
    pub(super) last: Time,
    /// Delay of each packet beyond the propagation, in ns.
    pub(super) queueing: Histogram,
}

impl DirectionCounts {
    #[inline]
    pub(super) fn enter(&mut self, size: u32) {
        self.entered.0 += 1;
        self.entered.1 += u64::from(size);
    }

    #[inline]
    pub(super) fn leave(&mut self, size: u32, at: Time, queueing: Span) {
        self.left.0 += 1;
        self.left.1 += u64::from(size);
        self.first.get_or_insert(at);
        self.last = at;
        self.queueing.add(queueing.ns());
    }

    #[inline]
    pub(super) fn drop(&mut self) {
        self.dropped += 1;
    }

    /// Bytes that left per time from the first to the last departure; `None` without such a time.
    pub(super) fn mean_bps(&self) -> Option<f64> {
        let span = self.last.since(self.first?).ns();
        (span > 0).then(|| self.left.1 as f64 * 8e9 / span as f64)
    }
}

/// Drops by element and reason. There are few kinds, so a list suffices.
#[derive(Debug, Default)]
pub(super) struct DroppedPackets(pub(super) Vec<Dropped>);

/// Packets that one element dropped for one reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    /// Index of the element.
    pub(super) element: u16,
    pub(super) direction: Direction,
    /// The element's word for the reason.
    pub(super) reason: &'static str,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl DroppedPackets {
    #[inline]
    pub(super) fn add(
        &mut self,
        element: u16,
        direction: Direction,
        reason: &'static str,
        size: u32,
    ) {
        let known = |drop: &&mut Dropped| drop.element == element && drop.reason == reason;
        if let Some(known) = self.0.iter_mut().find(known) {
            known.packets += 1;
            known.bytes += u64::from(size);
            return;
        }
        self.0.push(Dropped {
            element,
            direction,
            reason,
            packets: 1,
            bytes: u64::from(size),
        });
    }
}

/// Counters of one direction that other threads may read while the emulator runs.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) left_bytes: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) backlog: AtomicU64,
}

impl Meter {
    pub(super) fn set(&self, counts: &DirectionCounts, backlog: u64) {
        self.left_bytes.store(counts.left.1, Ordering::Relaxed);
        self.dropped.store(counts.dropped, Ordering::Relaxed);
        self.backlog.store(backlog, Ordering::Relaxed);
    }

    /// Bytes that left, packets dropped, bytes waiting.
    pub(super) fn read(&self) -> [u64; 3] {
        [&self.left_bytes, &self.dropped, &self.backlog].map(|value| value.load(Ordering::Relaxed))
    }
}
