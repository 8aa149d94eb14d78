//! Messages of Sprout's ends, as content of media messages in network byte order.
//!
//! ```text
//! data    position:64 young:32 time_to_next_ms:15 forecast:1 payload:16
//! report  settled:32 steps:8x8 received:16 missing:16 payload:32 held:16
//! ```
//!
//! Only position, young, time to next, settled and the forecast matter to the scheme; the rest is for counters. Packet
//! sizes are the original's: the content of data lies within the payload, and reports carry the low bits of growing
//! counts, which the sender completes from its own counters.

use super::forecast::{Forecast, HORIZON};
use narrows_transport::wire::{Reader, WireError};

/// Bytes added to each packet's payload when counting bytes in flight, as in the original.
pub(super) const COUNTED: u32 = 50;
/// Overhead in bytes after the transport header: 46 on the wire together with it, IP and UDP.
pub(super) const HEADER: u32 = 2;
/// Bytes that the sender's own forecast adds to a packet every 20 ms.
pub(super) const OWN_FORECAST: u32 = 18;
/// Shortest content of a packet with payload.
pub(super) const MIN_CONTENT: u32 = 16;

/// Unit of the waiting time in a report.
const HELD_UNIT: u64 = 100_000;

/// The fields of a packet with payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SproutData {
    /// Bytes sent before this packet, including the per-packet overhead.
    pub(super) position: u64,
    /// Number of them that are so young that they may still be overtaken.
    pub(super) young: u32,
    /// Longest time of silence that the sender announces, in ms.
    pub(super) time_to_next_ms: u16,
    /// True if there is room for the sender's own forecast.
    pub(super) forecast: bool,
    /// Bytes of payload.
    pub(super) payload: u16,
}

/// The fields of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SproutReport {
    /// Low bits of the bytes that have been received or lost, counted like positions.
    pub(super) settled: u32,
    /// Minimum number of packets that arrive within the next 1, 2 ... ticks.
    pub(super) forecast: Forecast,
    /// Low bits of the number of packets received, without copies.
    pub(super) received: u16,
    /// Low bits of the number of those missing before the one with the largest number.
    pub(super) missing: u16,
    /// Low bits of the payload bytes received.
    pub(super) payload: u32,
    /// Time since the packet with the largest number arrived, in tenths of a millisecond.
    pub(super) held: u16,
}

/// The largest count up to `most` with these low bits, if any.
pub(super) fn complete(most: u64, low: u32, bits: u32) -> Option<u64> {
    let back = most.wrapping_sub(u64::from(low)) & ((1 << bits) - 1);
    most.checked_sub(back)
}

impl SproutData {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.position.to_be_bytes());
        out.extend(self.young.to_be_bytes());
        out.extend((self.time_to_next_ms << 1 | u16::from(self.forecast)).to_be_bytes());
        out.extend(self.payload.to_be_bytes());
    }

    /// Bytes after the transport header.
    pub(super) fn length(&self) -> u32 {
        let own = if self.forecast { OWN_FORECAST } else { 0 };
        (HEADER + own + u32::from(self.payload)).max(MIN_CONTENT)
    }

    /// Reads the content of a message of `length` bytes after the transport header; `None` if it is invalid.
    pub(super) fn read(bytes: &[u8], length: u32) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let (position, young, time) = (reader.u64()?, reader.u32()?, reader.u16()?);
        let payload = reader.u16()?;
        let data = SproutData {
            position,
            young,
            time_to_next_ms: time >> 1,
            forecast: time & 1 != 0,
            payload,
        };
        (data.length() == length).then_some(data).ok_or(WireError::Inconsistent)
    }
}

impl SproutReport {
    /// Bytes of content: 66 on the wire.
    pub(super) const SIZE: u16 = 4 + HORIZON as u16 + 2 + 2 + 4 + 2;

    /// Encoding of the time `held`.
    pub(super) fn held(ns: u64) -> u16 {
        (ns / HELD_UNIT).min(u64::from(u16::MAX)) as u16
    }

    /// The time encoded by `held`, in ns; `None` if it was too long to encode.
    pub(super) fn held_ns(&self) -> Option<u64> {
        (self.held < u16::MAX).then(|| u64::from(self.held) * HELD_UNIT)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.settled.to_be_bytes());
        let mut before = 0;
        for count in self.forecast {
            // At most 30 per tick are forecast.
            let step = count.saturating_sub(before).min(u32::from(u8::MAX));
            out.push(step as u8);
            before += step;
        }
        out.extend(self.received.to_be_bytes());
        out.extend(self.missing.to_be_bytes());
        out.extend(self.payload.to_be_bytes());
        out.extend(self.held.to_be_bytes());
    }

    /// Reads the content of a message; `None` if it is too short.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let settled = reader.u32()?;
        let mut forecast = Forecast::default();
        let mut before = 0;
        for count in &mut forecast {
            before += u32::from(reader.u8()?);
            *count = before;
        }
        Ok(SproutReport {
            settled,
            forecast,
            received: reader.u16()?,
            missing: reader.u16()?,
            payload: reader.u32()?,
            held: reader.u16()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        for (forecast, payload, length) in
            [(false, 1400, 1402), (true, 1400, 1420), (false, 0, 16), (true, 0, 20)]
        {
            let data = SproutData {
                position: 1 << 40,
                young: 70_000,
                time_to_next_ms: 50,
                forecast,
                payload,
            };
            let mut bytes = Vec::new();
            data.write(&mut bytes);
            assert_eq!((bytes.len(), data.length()), (MIN_CONTENT as usize, length));
            assert_eq!(SproutData::read(&bytes, length), Ok(data));
            assert!(SproutData::read(&bytes, length + 1).is_err());
            assert!(SproutData::read(&bytes[1..], length).is_err());
        }
        // Inconsistent headers and payload.
        let endless = SproutData { payload: u16::MAX, ..SproutData::default() };
        let mut bytes = Vec::new();
        endless.write(&mut bytes);
        assert!(SproutData::read(&bytes, endless.length() & 0xffff).is_err());
        let report = SproutReport {
            settled: 7,
            forecast: [1, 2, 3, 5, 8, 13, 21, 34],
            received: 9,
            missing: 10,
            payload: 11,
            held: SproutReport::held(1_250_000),
        };
        let mut bytes = Vec::new();
        report.write(&mut bytes);
        assert_eq!(bytes.len(), usize::from(SproutReport::SIZE));
        assert_eq!(SproutReport::read(&bytes), Ok(report));
        assert!(SproutReport::read(&bytes[1..]).is_err());
        assert_eq!(report.held_ns(), Some(1_200_000));
        let late = SproutReport { held: SproutReport::held(u64::MAX), ..report };
        assert_eq!(late.held_ns(), None);
    }

    #[test]
    fn low_bits_are_completed_from_what_was_sent() {
        for (most, count) in [(10, 10), (70_000, 65_535), (70_000, 65_536), (70_000, 69_999), (1 << 40, (1 << 40) - 5)] {
            assert_eq!(complete(most, u32::from(count as u16), 16), Some(count));
            assert_eq!(complete(most, count as u32, 32), Some(count));
        }
        assert_eq!(complete(10, 11, 16), None);
    }
}
