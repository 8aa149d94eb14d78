//! Content of our datagrams: a sequence number and the time at which it was sent.
//!
//! ```text
//! magic:16 flow:16 reserved:32 sequence:64 sent_ns:64 zeros...     (network byte order)
//! ```

use narrows_units::Time;

/// IPv4 and UDP headers.
pub const IP_UDP: u32 = 28;
/// Bytes of our header; a datagram is at least `IP_UDP + DATAGRAM_HEADER` bytes at the IP layer.
pub const DATAGRAM_HEADER: u32 = 24;
const MAGIC: u16 = 0x4e44;

/// The stamp of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Position in the flow, from 0.
    pub sequence: u64,
    /// When it was sent, in the time of the run.
    pub sent: Time,
}

impl Stamp {
    /// Writes the payload of a datagram of `size` bytes at the IP layer into `out` (cleared first).
    pub fn encode(&self, flow: u16, size: u32, out: &mut Vec<u8>) {
        out.clear();
        out.extend(MAGIC.to_be_bytes());
        out.extend(flow.to_be_bytes());
        out.extend(0u32.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.sent.ns().to_be_bytes());
        out.resize(size.saturating_sub(IP_UDP).max(DATAGRAM_HEADER) as usize, 0);
    }

    /// Reads the flow and the stamp of a payload; `None` if it is not one of ours.
    pub fn decode(payload: &[u8]) -> Option<(u16, Stamp)> {
        let word = |at: usize| {
            Some(u64::from_be_bytes(
                payload.get(at..at + 8)?.try_into().ok()?,
            ))
        };
        let first = word(0)?;
        if (first >> 48) as u16 != MAGIC {
            return None;
        }
        let stamp = Stamp {
            sequence: word(8)?,
            sent: Time::from_ns(word(16)?),
        };
        Some(((first >> 32) as u16, stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_survives_the_wire() {
        let stamp = Stamp {
            sequence: 0x0123_4567_89ab_cdef,
            sent: Time::from_ns(42),
        };
        let mut bytes = Vec::new();
        stamp.encode(7, 200, &mut bytes);
        assert_eq!(bytes.len(), 172);
        assert_eq!(Stamp::decode(&bytes), Some((7, stamp)));
        assert_eq!(Stamp::decode(&bytes[..23]), None);
        bytes[0] ^= 1;
        assert_eq!(Stamp::decode(&bytes), None);
    }
}
