//! A limit on how far beyond the first gap of the stream a receiver reports.
//!
//! libutp's acknowledgement is a cumulative number and a mask for the 30 packets after the first missing one
//! (utp_internal.cpp, `send_ack`). Arrivals beyond it are reported once the gap has moved.

use crate::Arrival;

/// Packets that arrived too far beyond the first gap to be reported.
#[derive(Debug)]
pub(crate) struct SackLimit {
    /// Data this far above the first gap and further are not reported; `u64::MAX` for no limit.
    max_distance_bytes: u64,
    /// Packets not yet reported and the positions of their data, in the order of their arrival.
    held: Vec<(Arrival, u64)>,
}

impl SackLimit {
    /// Reports `packets` full packets of `mss` bytes beyond the first missing one; 0 means all.
    pub(crate) fn new(packets: u64, mss: u64) -> Self {
        SackLimit {
            max_distance_bytes: match packets {
                0 => u64::MAX,
                packets => (packets + 1) * mss,
            },
            held: Vec::new(),
        }
    }

    /// True if data at `offset` is beyond the limit while the first gap begins at `gap`.
    #[inline]
    pub(crate) fn hides(&self, gap: u64, offset: u64) -> bool {
        offset.saturating_sub(gap) >= self.max_distance_bytes
    }

    /// True if no packet is stored.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Stores a packet for later; `false` if it is a duplicate of a stored one.
    pub(crate) fn hold(&mut self, arrival: Arrival, offset: u64) -> bool {
        let copy = self
            .held
            .iter()
            .any(|(held, _)| held.number == arrival.number);
        if !copy {
            self.held.push((arrival, offset));
        }
        !copy
    }

    /// Passes the packets now within the limit at `gap` to `report` and removes them.
    #[inline]
    pub(crate) fn release(&mut self, gap: u64, mut report: impl FnMut(Arrival)) {
        let bytes = self.max_distance_bytes;
        self.held.retain(|&(arrival, offset)| {
            let hidden = offset.saturating_sub(gap) >= bytes;
            if !hidden {
                report(arrival);
            }
            hidden
        });
    }
}
