//! Logs of one end: sent and received datagrams, in columnar blocks.
//!
//! ```text
//! block  magic:32 kind:8 zero:24 rows:32 bytes:32 checksum:64 body    (little-endian)
//! body   per column, for each row, a varint:
//!        number     difference from the row before (zigzag)
//!        sent       difference from the row before, in ns (zigzag)
//!        arrived    only of arrivals: arrival less sending, difference from the row before (zigzag)
//!        size       difference from the row before (zigzag)
//!        flow       only of what was sent: difference from the row before (zigzag)
//!        what       kind of datagram, DSCP and ECN outside
//! ```
//!
//! Only the log of sent datagrams records flows: joining two logs identifies a packet by its number. Blocks of the
//! first version (magic `NTL1`) have no flows and can still be read.
//!
//! A row takes about eight bytes. Blocks are self-contained: the log of a killed process can be read up to its last
//! block. For this reason, and for its cost per packet, it is not a Parquet file; records are made from it after a run.
//! The checksum is the 64-bit xxHash (Collet) of the body.

use narrows_units::Time;

const MAGIC: [u8; 4] = *b"NTL2";
/// Of blocks without flows.
const FIRST_MAGIC: [u8; 4] = *b"NTL1";
const HEAD: usize = 24;
/// Rows of a full block: at 100 000 packets per second, ten blocks per second.
pub const BLOCK: usize = 10_000;
/// Upper bound of a block's size, whatever a file claims: ten bytes for each number.
const MAX_BODY: usize = BLOCK * 6 * 10;

/// Which of an end's two logs this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Sent datagrams.
    Sent,
    /// Arrivals.
    Arrived,
}

impl LogKind {
    /// Both of them, in the order of their numbers.
    pub const BOTH: [LogKind; 2] = [LogKind::Sent, LogKind::Arrived];
}

/// Content of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// A packet.
    #[default]
    Packet,
    /// Stamps.
    Clock,
}

/// One datagram at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelLogRow {
    /// Its number.
    pub id: u64,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// When it arrived, by the receiver's; in the log of sent datagrams, the same as `sent`.
    pub arrived: Time,
    /// Size of the IP packet that carried it, in bytes.
    pub size: u32,
    /// Its content.
    pub content: Content,
    /// DSCP and ECN of the IP packet that carried it.
    pub tos: u8,
    /// Flow of the packet that it carries; 0 without a flow, and for arrivals.
    pub flow: u16,
}

/// Collects rows and encodes them as blocks. One allocation per block, none per row.
#[derive(Clone, Debug)]
pub struct Columns {
    kind: LogKind,
    rows: Vec<TunnelLogRow>,
}

/// Reason why a log ends early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Not the start of a block.
    #[error("no block of a tunnel's log begins at byte {0}; the file is damaged or not such a log")]
    NotABlock(usize),
    /// The file ends within a block.
    #[error("the block at byte {0} is incomplete; its writer was killed, or the file was cut")]
    Truncated(usize),
    /// The checksum or the content is wrong.
    #[error("the block at byte {0} is damaged")]
    Damaged(usize),
    /// The two logs of an end were confused.
    #[error(
        "the block at byte {0} belongs to the other log of this end; sent datagrams and arrivals are in separate files"
    )]
    OtherLog(usize),
}

impl Columns {
    /// An empty block.
    pub fn new(kind: LogKind) -> Self {
        Columns {
            kind,
            rows: Vec::with_capacity(BLOCK),
        }
    }

    /// Adds a row. Take the block when it is full.
    #[inline]
    pub fn push(&mut self, row: TunnelLogRow) {
        self.rows.push(row);
    }

    /// True if the block should be written now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BLOCK
    }

    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the rows to `out` as blocks and clears them.
    pub fn drain_into(&mut self, out: &mut Vec<u8>) {
        for rows in self.rows.chunks(BLOCK) {
            encode(self.kind, rows, out);
        }
        self.rows.clear();
    }
}

fn encode(kind: LogKind, rows: &[TunnelLogRow], out: &mut Vec<u8>) {
    let head = out.len();
    out.extend([0; HEAD]);
    let column = |out: &mut Vec<u8>, value: fn(&TunnelLogRow) -> u64| {
        let mut before = 0;
        for row in rows {
            let value = value(row);
            put(out, zigzag(value.wrapping_sub(before)));
            before = value;
        }
    };
    column(out, |row| row.id);
    column(out, |row| row.sent.ns());
    if kind == LogKind::Arrived {
        column(out, |row| row.arrived.ns().wrapping_sub(row.sent.ns()));
    }
    column(out, |row| u64::from(row.size));
    if kind == LogKind::Sent {
        column(out, |row| u64::from(row.flow));
    }
    for row in rows {
        put(
            out,
            u64::from(row.content == Content::Clock) | (u64::from(row.tos) << 1),
        );
    }
    let body = head + HEAD;
    let checksum = twox_hash::XxHash64::oneshot(0, &out[body..]);
    let (count, bytes) = (rows.len() as u32, (out.len() - body) as u32);
    let fields = &mut out[head..body];
    fields[..4].copy_from_slice(&MAGIC);
    fields[4] = kind as u8;
    fields[8..12].copy_from_slice(&count.to_le_bytes());
    fields[12..16].copy_from_slice(&bytes.to_le_bytes());
    fields[16..24].copy_from_slice(&checksum.to_le_bytes());
}

/// Appends the rows of a log to `rows`, block by block.
///
/// # Errors
/// At the first unreadable block; `rows` then has all rows before it.
pub fn decode(kind: LogKind, bytes: &[u8], rows: &mut Vec<TunnelLogRow>) -> Result<(), LogError> {
    let mut at = 0;
    while at < bytes.len() {
        let Some(head) = bytes.get(at..at + HEAD) else {
            let begin = &bytes[at..bytes.len().min(at + MAGIC.len())];
            let begins_well = MAGIC.starts_with(begin) || FIRST_MAGIC.starts_with(begin);
            return Err(if begins_well {
                LogError::Truncated(at)
            } else {
                LogError::NotABlock(at)
            });
        };
        let number = |from: usize| {
            u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]])
                as usize
        };
        let (count, length) = (number(8), number(12));
        let checksum = ((number(20) as u64) << 32) | number(16) as u64;
        let has_flows = head[..4] == MAGIC;
        let is_known = has_flows || head[..4] == FIRST_MAGIC;
        if !is_known || count > BLOCK || length > MAX_BODY {
            return Err(LogError::NotABlock(at));
        }
        if head[4] != kind as u8 {
            return Err(LogError::OtherLog(at));
        }
        let from = at + HEAD;
        let body = bytes
            .get(from..from + length)
            .ok_or(LogError::Truncated(at))?;
        if twox_hash::XxHash64::oneshot(0, body) != checksum {
            return Err(LogError::Damaged(at));
        }
        let has_flows = has_flows && kind == LogKind::Sent;
        decode_body(kind, has_flows, count, body, rows).ok_or(LogError::Damaged(at))?;
        at = from + length;
    }
    Ok(())
}

fn decode_body(
    kind: LogKind,
    has_flows: bool,
    count: usize,
    mut body: &[u8],
    rows: &mut Vec<TunnelLogRow>,
) -> Option<()> {
    let first = rows.len();
    rows.resize(first + count, TunnelLogRow::default());
    let block = &mut rows[first..];
    let mut fill = || -> Option<()> {
        column(&mut body, block, |row, id| row.id = id)?;
        column(&mut body, block, |row, sent| row.sent = Time::from_ns(sent))?;
        if kind == LogKind::Arrived {
            column(&mut body, block, |row, delay| {
                row.arrived = Time::from_ns(row.sent.ns().wrapping_add(delay));
            })?;
        } else {
            for row in block.iter_mut() {
                row.arrived = row.sent;
            }
        }
        column(&mut body, block, |row, size| row.size = size as u32)?;
        if has_flows {
            column(&mut body, block, |row, flow| row.flow = flow as u16)?;
        }
        for row in block.iter_mut() {
            let what = take(&mut body)?;
            row.content = if what & 1 == 1 {
                Content::Clock
            } else {
                Content::Packet
            };
            row.tos = u8::try_from(what >> 1).ok()?;
        }
        body.is_empty().then_some(())
    };
    let done = fill();
    if done.is_none() {
        rows.truncate(first);
    }
    done
}

fn column(
    body: &mut &[u8],
    rows: &mut [TunnelLogRow],
    set: fn(&mut TunnelLogRow, u64),
) -> Option<()> {
    let mut value = 0u64;
    for row in rows {
        value = value.wrapping_add(unzigzag(take(body)?));
        set(row, value);
    }
    Some(())
}

/// Small differences of either sign become small numbers.
#[inline]
const fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

#[inline]
const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Seven bits per byte, the last byte without the eighth.
#[inline]
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn take(body: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = body.split_first()?;
        *body = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row() -> impl Strategy<Value = TunnelLogRow> {
        (any::<(u64, u64, u64, u32, bool, u8, u16)>()).prop_map(
            |(id, sent, arrived, size, is_clock, tos, flow)| TunnelLogRow {
                id,
                sent: Time::from_ns(sent),
                arrived: Time::from_ns(arrived),
                size,
                content: if is_clock {
                    Content::Clock
                } else {
                    Content::Packet
                },
                tos,
                flow,
            },
        )
    }

    /// The part of a row stored in the log of a side.
    fn kept(kind: LogKind, row: TunnelLogRow) -> TunnelLogRow {
        match kind {
            LogKind::Sent => TunnelLogRow {
                arrived: row.sent,
                ..row
            },
            LogKind::Arrived => TunnelLogRow { flow: 0, ..row },
        }
    }

    fn blocks(kind: LogKind, rows: &[TunnelLogRow], each: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut columns = Columns::new(kind);
        for part in rows.chunks(each) {
            for &row in part {
                columns.push(row);
            }
            columns.drain_into(&mut bytes);
            assert!(columns.is_empty());
        }
        bytes
    }

    proptest! {
        #[test]
        fn rows_survive_the_file(rows in prop::collection::vec(row(), 0..80), each in 1usize..30) {
            for kind in [LogKind::Sent, LogKind::Arrived] {
                let bytes = blocks(kind, &rows, each);
                let mut back = Vec::new();
                prop_assert_eq!(decode(kind, &bytes, &mut back), Ok(()));
                let expected: Vec<TunnelLogRow> = rows.iter().map(|&row| kept(kind, row)).collect();
                prop_assert_eq!(back, expected);
            }
        }

        #[test]
        fn a_cut_file_is_read_up_to_the_cut(rows in prop::collection::vec(row(), 1..60), place: prop::sample::Index) {
            let bytes = blocks(LogKind::Arrived, &rows, 10);
            let length = place.index(bytes.len());
            let mut back = Vec::new();
            let result = decode(LogKind::Arrived, &bytes[..length], &mut back);
            prop_assert!(back.len() % 10 == 0 || back.len() == rows.len());
            let expected: Vec<TunnelLogRow> = rows.iter().map(|&row| kept(LogKind::Arrived, row)).collect();
            prop_assert_eq!(&expected[..back.len()], &back[..]);
            // The truncation is detected unless it lies between two blocks.
            let whole = blocks(LogKind::Arrived, &back, 10).len() == length;
            prop_assert_eq!(result.is_ok(), whole);
            prop_assert!(matches!(result, Ok(()) | Err(LogError::Truncated(_))));
        }

        #[test]
        fn damage_is_found(rows in prop::collection::vec(row(), 1..40), place: prop::sample::Index, change in 1u8..) {
            let mut bytes = blocks(LogKind::Sent, &rows, 10);
            let at = place.index(bytes.len());
            // Bytes 5 to 7 of each block header are unused.
            bytes[at] ^= change;
            let mut back = Vec::new();
            if decode(LogKind::Sent, &bytes, &mut back).is_ok() {
                prop_assert_eq!(back.len(), rows.len());
                bytes[at] ^= change;
                let mut undamaged = Vec::new();
                decode(LogKind::Sent, &bytes, &mut undamaged).unwrap();
                prop_assert_eq!(back, undamaged);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), is_headed: bool) {
            if is_headed {
                // A correct block header makes the body be read.
                let body = bytes.clone();
                bytes = Vec::from(MAGIC);
                bytes.extend([LogKind::Arrived as u8, 0, 0, 0]);
                bytes.extend((body.len() as u32 / 5).to_le_bytes());
                bytes.extend((body.len() as u32).to_le_bytes());
                bytes.extend(twox_hash::XxHash64::oneshot(0, &body).to_le_bytes());
                bytes.extend(body);
            }
            let _ = decode(LogKind::Arrived, &bytes, &mut Vec::new());
        }
    }

    #[test]
    fn logs_of_the_first_version_are_read() {
        let sent = [
            0x4e, 0x54, 0x4c, 0x31, 0, 0, 0, 0, 2, 0, 0, 0, 12, 0, 0, 0, 0x38, 0x5c, 0xe6, 0xa0,
            0x4c, 0x48, 0x80, 0xbf, 10, 2, 0xd0, 0x0f, 0xd0, 0x0f, 0x80, 2, 0xb8, 0x15, 4, 1,
        ];
        let arrived = [
            0x4e, 0x54, 0x4c, 0x31, 1, 0, 0, 0, 2, 0, 0, 0, 15, 0, 0, 0, 0x83, 0x83, 0xb7, 0xae,
            0x2e, 0xe3, 0x0e, 0xb5, 10, 2, 0xd0, 0x0f, 0xd0, 0x0f, 0xd8, 4, 0x63, 0x80, 2, 0xb8,
            0x15, 4, 1,
        ];
        let row = |id, sent, arrived, size, content, tos| TunnelLogRow {
            id,
            sent: Time::from_ns(sent),
            arrived: Time::from_ns(arrived),
            size,
            content,
            tos,
            flow: 0,
        };
        let mut rows = Vec::new();
        decode(LogKind::Arrived, &arrived, &mut rows).unwrap();
        let expected = [
            row(5, 1000, 1300, 128, Content::Packet, 2),
            row(6, 2000, 2250, 1500, Content::Clock, 0),
        ];
        assert_eq!(rows, expected);
        rows.clear();
        // Both versions in one file, too.
        let mut both = sent.to_vec();
        both.extend(blocks(
            LogKind::Sent,
            &[TunnelLogRow {
                flow: 3,
                ..expected[0]
            }],
            1,
        ));
        decode(LogKind::Sent, &both, &mut rows).unwrap();
        let flows: Vec<u16> = rows.iter().map(|row| row.flow).collect();
        assert_eq!(flows, [0, 0, 3]);
        assert_eq!(rows[1], kept(LogKind::Sent, expected[1]));
        assert_eq!(
            decode(LogKind::Sent, &sent[..3], &mut rows),
            Err(LogError::Truncated(0))
        );
    }

    #[test]
    fn rows_of_a_steady_flow_are_small() {
        let rows: Vec<TunnelLogRow> = (0..10_000u64)
            .map(|id| TunnelLogRow {
                id,
                sent: Time::from_ns(1_000_000_000_000 + id * 8_000 + id % 97),
                arrived: Time::from_ns(3_000_000_000_000 + id * 8_000 + (id * id) % 30_000),
                size: 1500,
                content: Content::Packet,
                tos: 2,
                flow: 0,
            })
            .collect();
        let bytes = blocks(LogKind::Arrived, &rows, BLOCK);
        // One byte for the number, two for each time but the first, one for the size, one for the rest; a
        // third byte for jumps of the delay above 8192 ns.
        assert!(bytes.len() < 9 * rows.len(), "{} bytes", bytes.len());
    }
}
