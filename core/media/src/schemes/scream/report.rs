//! The content of a report.
//!
//! ```text
//! highest:64 vector:64 arrived_ns:64
//! ```

use narrows_transport::wire::{Reader, WireError};
use narrows_units::Time;

/// Bytes of a report's content.
pub(super) const LENGTH: u16 = 24;

/// Report of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScreamReport {
    /// Highest packet number received.
    pub(super) highest: u64,
    /// Bit `n`: packet `highest - 1 - n` has been received.
    pub(super) vector: u64,
    /// When `highest` arrived, by the receiver's clock.
    pub(super) arrived: Time,
}

impl ScreamReport {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for field in [self.highest, self.vector, self.arrived.ns()] {
            out.extend(field.to_be_bytes());
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<ScreamReport, WireError> {
        let mut reader = Reader(bytes);
        Ok(ScreamReport {
            highest: reader.u64()?,
            vector: reader.u64()?,
            arrived: Time::from_ns(reader.u64()?),
        })
    }

    /// True if the report acknowledges packet `number`.
    #[inline]
    pub(super) fn has(&self, number: u64) -> bool {
        match self.highest.checked_sub(number) {
            Some(0) => true,
            Some(below @ 1..=64) => self.vector >> (below - 1) & 1 == 1,
            _ => false,
        }
    }
}
