//! What Sprout's ends say to each other, as content of media messages in network byte order.
//!
//! ```text
//! data    position:64 young:32 time_to_next_ms:16 sent_ns:64
//! report  settled:64 forecast:8x16 received:64 payload:64 largest:64 sent_ns:64 held_ns:64
//! ```
//!
//! Only position, young, time to next, settled and the forecast matter to the scheme; the rest is for counters.

use super::forecast::{Forecast, HORIZON};

/// Bytes of a packet that are no payload: our header and [`HEADER`], as much as the original adds (its datagram
/// layer, encryption and fields) to the payload.
pub(super) const OVERHEAD: u32 = 50;
/// Bytes after our header that are no payload.
pub(super) const HEADER: u32 = OVERHEAD - narrows_transport::wire::MEDIA_HEADER;

/// The fields of a packet with payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Data {
    /// Bytes sent before this packet, overhead included.
    pub(super) position: u64,
    /// How many of them are so young that they may still be overtaken.
    pub(super) young: u32,
    /// How long the sender will at most be silent, in ms.
    pub(super) time_to_next_ms: u16,
    /// When it was sent, by the sender's clock in ns.
    pub(super) sent_ns: u64,
}

/// The fields of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Bytes, overhead included, that have been received or lost.
    pub(super) settled: u64,
    /// Packets that arrive at least within the next 1, 2 ... ticks.
    pub(super) forecast: Forecast,
    /// Packets received, without copies.
    pub(super) received: u64,
    /// Their payload bytes.
    pub(super) payload: u64,
    /// Largest packet number received.
    pub(super) largest: u64,
    /// `sent_ns` of the packet received last.
    pub(super) sent_ns: u64,
    /// Time since then in ns.
    pub(super) held_ns: u64,
}

/// Takes big-endian numbers from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

impl Data {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.position.to_be_bytes());
        out.extend(self.young.to_be_bytes());
        out.extend(self.time_to_next_ms.to_be_bytes());
        out.extend(self.sent_ns.to_be_bytes());
    }

    /// Reads the content of a message; `None` if it is too short.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Some(Data {
            position: reader.u64()?,
            young: reader.u32()?,
            time_to_next_ms: reader.u16()?,
            sent_ns: reader.u64()?,
        })
    }
}

impl Report {
    /// Bytes of content.
    pub(super) const SIZE: u16 = 8 + 2 * HORIZON as u16 + 5 * 8;

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.settled.to_be_bytes());
        for count in self.forecast {
            out.extend((count.min(u32::from(u16::MAX)) as u16).to_be_bytes());
        }
        for field in [
            self.received,
            self.payload,
            self.largest,
            self.sent_ns,
            self.held_ns,
        ] {
            out.extend(field.to_be_bytes());
        }
    }

    /// Reads the content of a message; `None` if it is too short.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let settled = reader.u64()?;
        let mut forecast = Forecast::default();
        for count in &mut forecast {
            *count = u32::from(reader.u16()?);
        }
        Some(Report {
            settled,
            forecast,
            received: reader.u64()?,
            payload: reader.u64()?,
            largest: reader.u64()?,
            sent_ns: reader.u64()?,
            held_ns: reader.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let data = Data {
            position: 1 << 40,
            young: 70_000,
            time_to_next_ms: 50,
            sent_ns: 5,
        };
        let mut bytes = Vec::new();
        data.write(&mut bytes);
        assert!(bytes.len() <= HEADER as usize);
        assert_eq!(Data::read(&bytes), Some(data));
        assert_eq!(Data::read(&bytes[1..]), None);
        let report = Report {
            settled: 7,
            forecast: [1, 2, 3, 5, 8, 13, 21, 34],
            received: 9,
            payload: 10,
            largest: 11,
            sent_ns: 12,
            held_ns: 13,
        };
        bytes.clear();
        report.write(&mut bytes);
        assert_eq!(bytes.len(), usize::from(Report::SIZE));
        assert_eq!(Report::read(&bytes), Some(report));
        assert_eq!(Report::read(&bytes[1..]), None);
    }
}
