//! Headers of transfers inside the streams of our transport, whose other bytes are all zero.
//!
//! The client writes a [`TransferHeader`] where each transfer begins. The server does not know these positions before
//! the preceding transfers have arrived completely, so it keeps all non-zero bytes until then.

use narrows_traffic::TransferHeader;
use std::collections::BTreeMap;

/// The transfer headers in a client's stream, which is zero elsewhere.
#[derive(Debug, Default)]
pub(super) struct HeaderWriter {
    /// Positions and headers, in increasing order.
    heads: Vec<(u64, [u8; TransferHeader::LENGTH])>,
}

impl HeaderWriter {
    /// A transfer begins at `offset`.
    pub(super) fn push(&mut self, offset: u64, header: &TransferHeader) {
        self.heads.push((offset, header.encode()));
    }

    /// Fills in the content of the stream from `offset`; `payload` is initially zero.
    pub(super) fn fill(&self, offset: u64, payload: &mut [u8]) {
        let length = TransferHeader::LENGTH as u64;
        let end = offset + payload.len() as u64;
        let first = self.heads.partition_point(|(at, _)| at + length <= offset);
        for (at, bytes) in self.heads[first..].iter().take_while(|(at, _)| *at < end) {
            let (from, to) = ((*at).max(offset), (at + length).min(end));
            payload[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
        }
    }
}

/// The transfer headers that a server finds in a client's stream.
#[derive(Debug, Default)]
pub(super) struct HeaderReader {
    /// Bytes that are not zero, by position.
    chunks: BTreeMap<u64, Vec<u8>>,
    /// Start of the transfer that is arriving.
    start: u64,
    current: Option<TransferHeader>,
}

impl HeaderReader {
    /// Data that start at `offset` have arrived.
    pub(super) fn note(&mut self, offset: u64, payload: &[u8]) {
        // Nothing follows the header of an endless transfer.
        if self.current.is_some_and(|header| header.transfer.is_open()) {
            return;
        }
        let Some(first) = payload.iter().position(|&byte| byte != 0) else {
            return;
        };
        let last = payload.iter().rposition(|&byte| byte != 0).unwrap_or(first);
        if offset + last as u64 >= self.start {
            let chunk = payload[first..=last].to_vec();
            self.chunks.insert(offset + first as u64, chunk);
        }
    }

    /// The next transfer that is complete when everything below `contiguous` has arrived; `Err` if the data are not a
    /// transfer.
    pub(super) fn next(&mut self, contiguous: u64) -> Result<Option<TransferHeader>, ()> {
        let length = TransferHeader::LENGTH as u64;
        if self.current.is_none() && contiguous >= self.start + length {
            let mut bytes = [0; TransferHeader::LENGTH];
            for (&at, chunk) in self.chunks.range(..self.start + length) {
                for (index, &byte) in (at..).zip(chunk) {
                    if (self.start..self.start + length).contains(&index) {
                        bytes[(index - self.start) as usize] = byte;
                    }
                }
            }
            self.current = Some(TransferHeader::decode(&bytes).ok_or(())?);
        }
        let Some(header) = self.current else {
            return Ok(None);
        };
        if header.transfer.is_open() || contiguous < self.start + header.transfer.up {
            return Ok(None);
        }
        self.start += header.transfer.up;
        self.current = None;
        // Chunks may reach into the next header.
        let start = self.start;
        self.chunks
            .retain(|&at, chunk| at + chunk.len() as u64 > start);
        Ok(Some(header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_traffic::Transfer;
    use narrows_units::Time;

    #[test]
    fn heads_survive_packets_of_any_size_in_any_order() {
        let transfer = |number: u32, up: u64| TransferHeader {
            transfer: Transfer {
                connection: 3,
                transfer: number,
                up,
                down: 1000 * u64::from(number),
            },
            started: Time::from_ns(5),
        };
        let transfers = [
            transfer(0, 40),
            transfer(1, 77),
            transfer(2, 5000),
            transfer(3, 41),
        ];
        let mut written = HeaderWriter::default();
        let mut end = 0;
        for header in &transfers {
            written.push(end, header);
            end += header.transfer.up;
        }
        for size in [1, 7, 39, 40, 41, 1448, 6000] {
            let mut packets = Vec::new();
            let mut offset = 0;
            while offset < end {
                let mut payload = vec![0; size.min((end - offset) as usize)];
                written.fill(offset, &mut payload);
                packets.push((offset, payload));
                offset = packets
                    .last()
                    .map_or(0, |(at, bytes)| at + bytes.len() as u64);
            }
            // The first packet arrives last, and every packet twice.
            let mut seen = HeaderReader::default();
            for (at, payload) in packets.iter().skip(1).chain(&packets).rev() {
                seen.note(*at, payload);
            }
            assert_eq!(seen.next(39), Ok(None));
            let mut found = Vec::new();
            while let Ok(Some(header)) = seen.next(end) {
                found.push(header);
            }
            assert_eq!(found, transfers, "packets of {size} bytes");
        }
    }

    #[test]
    fn a_stream_that_is_none_of_ours_is_told() {
        let mut seen = HeaderReader::default();
        seen.note(0, &[7; 100]);
        assert_eq!(seen.next(100), Err(()));
    }
}
