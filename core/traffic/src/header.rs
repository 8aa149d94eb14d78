//! Header that the client writes at the start of each transfer over a real connection, as part of its upstream bytes,
//! so that a generic server knows what to expect and what to answer.
//!
//! ```text
//! magic:64 up:64 down:64 started_ns:64 connection:32 transfer:32     (network byte order)
//! ```

use crate::Transfer;
use narrows_units::Time;

const MAGIC: u64 = 0x4e61_7272_6f77_7354;

/// The header of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferHeader {
    /// The transfer.
    pub transfer: Transfer,
    /// When the client requested it, relative to the start of the run.
    pub started: Time,
}

impl TransferHeader {
    /// Bytes of the header: the minimum that a transfer sends upstream.
    pub const LENGTH: usize = 40;

    /// The header as bytes.
    pub fn encode(&self) -> [u8; TransferHeader::LENGTH] {
        let mut bytes = [0; TransferHeader::LENGTH];
        let transfer = &self.transfer;
        let ids = (u64::from(transfer.connection) << 32) | u64::from(transfer.transfer);
        let words = [MAGIC, transfer.up, transfer.down, self.started.ns(), ids];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads a header; `None` if the bytes are not a header.
    pub fn decode(bytes: &[u8; TransferHeader::LENGTH]) -> Option<Self> {
        let mut words = [0; 5];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_be_bytes(chunk.try_into().ok()?);
        }
        let [magic, up, down, started, ids] = words;
        (magic == MAGIC && up >= TransferHeader::LENGTH as u64).then_some(TransferHeader {
            transfer: Transfer {
                connection: (ids >> 32) as u32,
                transfer: ids as u32,
                up,
                down,
            },
            started: Time::from_ns(started),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let header = TransferHeader {
            transfer: Transfer {
                connection: 70_000,
                transfer: 3,
                up: 300,
                down: 12_345_678_901,
            },
            started: Time::from_ns(5),
        };
        let mut bytes = header.encode();
        assert_eq!(TransferHeader::decode(&bytes), Some(header));
        bytes[3] ^= 1;
        assert_eq!(TransferHeader::decode(&bytes), None);
    }
}
