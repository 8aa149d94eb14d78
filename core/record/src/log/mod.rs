//! The log to which drivers report packets during a run.
//!
//! A [`Log`] is called once when a packet enters the network, which assigns the packet's key, and once when its fate is
//! known. Nothing is allocated per packet.
//!
//! ```text
//! enter -> ring of open rows, indexed by uid -> finished prefix -> Chunk -> PacketFile
//! ```
//!
//! A [`BinLog`] keeps counters and no rows. A driver of a [`PacketLog`] takes full chunks at convenient times
//! ([`PacketLog::take`]), encodes them immediately or passes them to another thread, and returns them for reuse
//! ([`PacketLog::recycle`]).

mod bin_series;
mod bins;
mod chunk;
mod packets;

pub use bins::BinLog;
pub use chunk::{CHUNK_ROWS, Chunk, NO_WORD, NOT_ARRIVED};
pub use packets::PacketLog;

use crate::schema::Direction;

/// A packet that has entered the network.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    /// The key that the log assigned to it. Never zero.
    pub key: u64,
    /// Its flow.
    pub flow: u16,
    /// Its direction.
    pub direction: Direction,
    /// Its IP bytes.
    pub size: u32,
}

/// A log of any kind, so that a driver has one type for `record: packets`, `record: bins` and runs without a record.
#[derive(Debug)]
// There is one log per run; a box would only add an indirection per packet.
#[allow(clippy::large_enum_variant)]
pub enum Log {
    /// Keeps every packet.
    Packets(PacketLog),
    /// Keeps binned series and delay histograms.
    Bins(BinLog),
    /// Keeps only the number of packets that entered.
    Nothing(u64),
}

impl Log {
    /// A packet of `size` bytes of `flow` enters the network at `sent_ns`.
    #[inline]
    pub fn enter(&mut self, flow: u16, direction: Direction, size: u32, sent_ns: u64) -> Entered {
        match self {
            Log::Packets(log) => Entered {
                key: log.enter(flow, direction, size, sent_ns),
                flow,
                direction,
                size,
            },
            Log::Bins(log) => log.enter(flow, direction, size, sent_ns),
            Log::Nothing(entered) => {
                *entered += 1;
                Entered {
                    key: *entered,
                    flow,
                    direction,
                    size,
                }
            }
        }
    }

    /// `packet` is released to the other host at `arrived_ns`, `late_ns` after the time that the model asked for.
    #[inline]
    pub fn arrive(&mut self, packet: Entered, arrived_ns: u64, late_ns: i64) {
        match self {
            Log::Packets(log) => log.arrive(packet.key, arrived_ns, late_ns),
            Log::Bins(log) => log.arrive(packet, arrived_ns),
            Log::Nothing(_) => {}
        }
    }

    /// `packet` is released like any other, but damaged: the receiver will discard it.
    pub fn arrive_corrupt(&mut self, packet: Entered, arrived_ns: u64, late_ns: i64) {
        match self {
            Log::Packets(log) => log.arrive_corrupt(packet.key, arrived_ns, late_ns),
            Log::Bins(log) => log.arrive(packet, arrived_ns),
            Log::Nothing(_) => {}
        }
    }

    /// An element made a copy of `original`; the copy enters the network at `sent_ns`.
    pub fn copy(&mut self, original: Entered, sent_ns: u64) -> Entered {
        let Entered {
            key,
            flow,
            direction,
            size,
        } = original;
        match self {
            Log::Packets(log) => Entered {
                key: log.copy(key, flow, direction, size, sent_ns),
                ..original
            },
            Log::Bins(_) | Log::Nothing(_) => self.enter(flow, direction, size, sent_ns),
        }
    }

    /// The element with index `element` (in the list given to the log) drops `packet`.
    #[inline]
    pub fn drop(&mut self, packet: Entered, element: u16, reason: &'static str) {
        match self {
            Log::Packets(log) => log.drop(packet.key, element, reason),
            Log::Bins(log) => log.drop(packet),
            Log::Nothing(_) => {}
        }
    }

    /// At the end of the run, `packet` is held by the element with index `element`.
    pub fn hold(&mut self, packet: Entered, element: u16) {
        if let Log::Packets(log) = self {
            log.hold(packet.key, element);
        }
    }

    /// Turns all packets whose fate is still open into packets in flight. Call [`Log::hold`] for
    /// each of them first.
    pub fn finish(&mut self) {
        if let Log::Packets(log) = self {
            log.finish();
        }
    }

    /// The number of packets that entered.
    pub fn entered(&self) -> u64 {
        match self {
            Log::Packets(log) => log.entered(),
            Log::Bins(log) => log.entered(),
            Log::Nothing(entered) => *entered,
        }
    }
}
