//! The log to which drivers report packets while a run lasts.
//!
//! A [`Log`] is told once when a packet enters the network, which gives the packet its uid, and
//! once when its fate is known. Nothing is allocated per packet.
//!
//! ```text
//! enter -> ring of open rows, indexed by uid -> finished prefix -> Chunk -> PacketFile
//! ```
//!
//! A driver takes full chunks when it suits it ([`PacketLog::take`]), encodes them on the spot or
//! hands them to another thread, and gives them back for reuse ([`PacketLog::recycle`]).

mod bin_series;
mod bins;
mod chunk;
mod packets;

pub use bins::BinLog;
pub use chunk::{CHUNK_ROWS, Chunk, NO_WORD, NOT_ARRIVED};
pub use packets::PacketLog;

use crate::schema::Direction;

/// Either kind of log, so that a driver has one type for `record: packets` and `record: bins`.
#[derive(Debug)]
// One log per run; a box would only cost an indirection per packet.
#[allow(clippy::large_enum_variant)]
pub enum Log {
    /// Keeps every packet.
    Packets(PacketLog),
    /// Keeps binned series and delay histograms.
    Bins(BinLog),
}

impl Log {
    /// A packet of `size` bytes of `flow` enters the network at `sent_ns`. Returns its uid: 1 for
    /// the first packet, then 2, 3...
    #[inline]
    pub fn enter(&mut self, flow: u16, direction: Direction, size: u32, sent_ns: u64) -> u64 {
        match self {
            Log::Packets(log) => log.enter(flow, direction, size, sent_ns),
            Log::Bins(log) => log.enter(flow, direction, size, sent_ns),
        }
    }

    /// Packet `uid` is released to the other host at `arrived_ns`, `late_ns` after the time that
    /// the model asked for.
    #[inline]
    pub fn arrive(&mut self, uid: u64, arrived_ns: u64, late_ns: i64) {
        match self {
            Log::Packets(log) => log.arrive(uid, arrived_ns, late_ns),
            Log::Bins(log) => log.arrive(uid, arrived_ns),
        }
    }

    /// Packet `uid` is released like any other, but damaged: the receiver will discard it.
    pub fn arrive_corrupt(&mut self, uid: u64, arrived_ns: u64, late_ns: i64) {
        match self {
            Log::Packets(log) => log.arrive_corrupt(uid, arrived_ns, late_ns),
            Log::Bins(log) => log.arrive(uid, arrived_ns),
        }
    }

    /// An element made a copy of packet `original`, which is in the network from `sent_ns` on.
    /// Returns the uid of the copy.
    pub fn copy(
        &mut self,
        original: u64,
        flow: u16,
        direction: Direction,
        size: u32,
        sent_ns: u64,
    ) -> u64 {
        match self {
            Log::Packets(log) => log.copy(original, flow, direction, size, sent_ns),
            Log::Bins(log) => log.enter(flow, direction, size, sent_ns),
        }
    }

    /// The element with index `element` (in the list given to the log) drops packet `uid`.
    #[inline]
    pub fn drop(&mut self, uid: u64, element: u16, reason: &'static str) {
        match self {
            Log::Packets(log) => log.drop(uid, element, reason),
            Log::Bins(log) => log.drop(uid),
        }
    }

    /// At the end of the run, packet `uid` is held by the element with index `element`.
    pub fn hold(&mut self, uid: u64, element: u16) {
        if let Log::Packets(log) = self {
            log.hold(uid, element);
        }
    }

    /// Turns all packets whose fate is still open into packets in flight. Call [`Log::hold`] for
    /// each of them first.
    pub fn finish(&mut self) {
        match self {
            Log::Packets(log) => log.finish(),
            Log::Bins(log) => log.finish(),
        }
    }

    /// The number of packets that entered.
    pub fn entered(&self) -> u64 {
        match self {
            Log::Packets(log) => log.entered(),
            Log::Bins(log) => log.entered(),
        }
    }
}
