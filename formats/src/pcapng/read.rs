//! Reads captures, pcapng and the older pcap, up to their end or the point of truncation.

use super::frames::{Capture, Frames, Interface};
use super::link::Way;
use super::unread::Unread;
use super::{
    BYTE_ORDER, DROPPED_BEFORE, DROPPED_BY_INTERFACE, DROPPED_BY_SYSTEM, END_OF_OPTIONS,
    ENHANCED_PACKET, FLAGS, INTERFACE, NAME, OFFSET, OLD_PACKET, PACKET_ID, RESOLUTION, SECTION,
    SIMPLE_PACKET, STATISTICS,
};
use crate::FormatError;

/// First bytes of a file of the older format: microseconds and nanoseconds.
const PCAP: u32 = 0xA1B2_C3D4;
const PCAP_NANOSECONDS: u32 = 0xA1B2_3C4D;
/// Maximum accepted time since 1970 (year 2043).
const MAX_TIME_NS: i64 = 1 << 61;
/// Maximum accepted size of blocks and packets.
const MAX_LENGTH: u32 = 1 << 26;

/// Reads the content of a capture. One that ends in the middle of a frame is read up to it.
///
/// # Errors
/// A file of another format, or one that is damaged or truncated before its first frame.
pub fn read(bytes: &[u8]) -> Result<Capture, FormatError> {
    let first = bytes.first_chunk().copied().map(u32::from_le_bytes);
    let Some(first) = first else {
        return Err(FormatError::input("the file is too short to be a capture"));
    };
    let mut reader = Reader::default();
    match (first, first.swap_bytes()) {
        (SECTION, _) => reader.pcapng(bytes)?,
        (PCAP | PCAP_NANOSECONDS, _) => reader.pcap(bytes, false, first == PCAP_NANOSECONDS)?,
        (_, swapped @ (PCAP | PCAP_NANOSECONDS)) => {
            reader.pcap(bytes, true, swapped == PCAP_NANOSECONDS)?;
        }
        _ => {
            let problem = "this is not a capture: it begins neither as pcapng nor as pcap";
            return Err(FormatError::input(problem));
        }
    }
    Ok(reader.frames.finish())
}

#[derive(Debug, Default)]
struct Reader {
    frames: Frames,
    swapped: bool,
}

fn cut(at: usize) -> FormatError {
    FormatError::input(format!(
        "the capture is damaged or cut off at byte {at}; editcap of Wireshark can save what is before"
    ))
}

impl Reader {
    fn u16(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let word: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if self.swapped {
            u16::from_be_bytes(word)
        } else {
            u16::from_le_bytes(word)
        })
    }

    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if self.swapped {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        })
    }

    fn u64(&self, bytes: &[u8]) -> Option<u64> {
        let word: [u8; 8] = bytes.try_into().ok()?;
        Some(if self.swapped {
            u64::from_be_bytes(word)
        } else {
            u64::from_le_bytes(word)
        })
    }

    /// Handles a file that ends within a frame: an error only if no frame was read before.
    fn cut_off(&mut self, at: usize) -> Result<(), FormatError> {
        if self.frames.count == 0 {
            return Err(cut(at));
        }
        self.frames.unread(Unread::CutOff, 1);
        Ok(())
    }

    fn pcapng(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let mut interfaces: Vec<Interface> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let broken = || cut(at);
            if bytes.len() - at < 12 {
                return self.cut_off(at);
            }
            let kind = self.u32(bytes, at).ok_or_else(broken)?;
            if kind == SECTION {
                let order: [u8; 4] = bytes
                    .get(at + 8..at + 12)
                    .and_then(|part| part.try_into().ok())
                    .ok_or_else(broken)?;
                self.swapped = match u32::from_le_bytes(order) {
                    BYTE_ORDER => false,
                    order if order.swap_bytes() == BYTE_ORDER => true,
                    _ => return Err(broken()),
                };
                interfaces.clear();
            }
            let length = self.u32(bytes, at + 4).ok_or_else(broken)?;
            if !(12..=MAX_LENGTH).contains(&length) || length % 4 != 0 {
                return Err(broken());
            }
            let end = at + length as usize;
            if end > bytes.len() {
                return self.cut_off(at);
            }
            let block = bytes.get(at + 8..end - 4).ok_or_else(broken)?;
            if self.u32(bytes, end - 4) != Some(length) {
                return Err(broken());
            }
            match kind {
                INTERFACE => {
                    let description = self.interface(block).ok_or_else(broken)?;
                    interfaces.push(description);
                }
                ENHANCED_PACKET => self.enhanced(block, &interfaces).ok_or_else(broken)?,
                OLD_PACKET => self.old_packet(block, &interfaces).ok_or_else(broken)?,
                STATISTICS => self.statistics(block).ok_or_else(broken)?,
                SIMPLE_PACKET => {
                    let problem = "the capture has packets without times, so it cannot be measured";
                    return Err(FormatError::input(problem));
                }
                _ => {}
            }
            at = end;
        }
        Ok(())
    }

    fn interface(&mut self, block: &[u8]) -> Option<Interface> {
        let number = u16::try_from(self.frames.capture.interfaces.len()).ok()?;
        let mut description = Interface {
            link: self.u16(block, 0)?,
            number,
            ..Interface::default()
        };
        block.get(..8)?;
        let mut name = format!("interface {number}");
        for (code, value) in self.options(block, 8)? {
            match (code, value) {
                (NAME, name_of) => name = String::from_utf8_lossy(name_of).into_owned(),
                (RESOLUTION, &[power]) => {
                    let power_of = if power & 0x80 != 0 { 2_u64 } else { 10 };
                    description.per_second = power_of.checked_pow(u32::from(power & 0x7f))?;
                }
                (OFFSET, value) => description.offset_s = self.u64(value)? as i64,
                _ => {}
            }
        }
        self.frames.capture.interfaces.push(name);
        Some(description)
    }

    fn options<'a>(&self, block: &'a [u8], start: usize) -> Option<Vec<(u16, &'a [u8])>> {
        let mut options = Vec::new();
        let mut at = start;
        while at < block.len() {
            let code = self.u16(block, at)?;
            let length = usize::from(self.u16(block, at + 2)?);
            if code == END_OF_OPTIONS {
                break;
            }
            options.push((code, block.get(at + 4..at + 4 + length)?));
            at += 4 + length.next_multiple_of(4);
        }
        Some(options)
    }

    fn enhanced(&mut self, block: &[u8], interfaces: &[Interface]) -> Option<()> {
        let interface = *interfaces.get(self.u32(block, 0)? as usize)?;
        let (data, options) = self.body(block)?;
        let time = self.time(block, interface)?;
        let (mut id, mut way, mut dropped) = (0, Way::Unknown, 0);
        for (code, value) in options {
            match code {
                PACKET_ID => id = self.u64(value).unwrap_or(0),
                DROPPED_BEFORE => dropped = self.u64(value).unwrap_or(0),
                FLAGS => {
                    way = match self.u32(value, 0).unwrap_or(0) & 3 {
                        1 => Way::In,
                        2 => Way::Out,
                        _ => Way::Unknown,
                    }
                }
                _ => {}
            }
        }
        if dropped > 0 {
            self.frames.unread(Unread::Dropped, dropped);
        }
        self.frames
            .add(time, interface, data, self.u32(block, 16)?, id, way);
        Some(())
    }

    /// A packet block of the first version, which has 16 bits for the interface.
    fn old_packet(&mut self, block: &[u8], interfaces: &[Interface]) -> Option<()> {
        let interface = *interfaces.get(usize::from(self.u16(block, 0)?))?;
        let dropped = self.u16(block, 2)?;
        if dropped != u16::MAX && dropped > 0 {
            self.frames.unread(Unread::Dropped, u64::from(dropped));
        }
        let (data, _) = self.body(block)?;
        let time = self.time(block, interface)?;
        self.frames
            .add(time, interface, data, self.u32(block, 16)?, 0, Way::Unknown);
        Some(())
    }

    /// The captured data of a packet, and its options.
    #[allow(clippy::type_complexity)] // two parts of one block
    fn body<'a>(&self, block: &'a [u8]) -> Option<(&'a [u8], Vec<(u16, &'a [u8])>)> {
        let kept = self.u32(block, 12)? as usize;
        let data = block.get(20..20 + kept)?;
        Some((data, self.options(block, 20 + kept.next_multiple_of(4))?))
    }

    fn time(&self, block: &[u8], interface: Interface) -> Option<i64> {
        let units = u64::from(self.u32(block, 4)?) << 32 | u64::from(self.u32(block, 8)?);
        let ns = u128::from(units) * 1_000_000_000 / u128::from(interface.per_second.max(1));
        let offset = interface.offset_s.checked_mul(1_000_000_000)?;
        let time = i64::try_from(ns).ok()?.checked_add(offset)?;
        (-MAX_TIME_NS..=MAX_TIME_NS).contains(&time).then_some(time)
    }

    /// Counts packets that the capturing program dropped.
    fn statistics(&mut self, block: &[u8]) -> Option<()> {
        let mut dropped: u64 = 0;
        for (code, value) in self.options(block, 12)? {
            if [DROPPED_BY_INTERFACE, DROPPED_BY_SYSTEM].contains(&code) {
                dropped = dropped.saturating_add(self.u64(value)?);
            }
        }
        if dropped > 0 {
            self.frames.unread(Unread::Dropped, dropped);
        }
        Some(())
    }

    fn pcap(&mut self, bytes: &[u8], swapped: bool, nanoseconds: bool) -> Result<(), FormatError> {
        self.swapped = swapped;
        let link = self.u32(bytes, 20).ok_or_else(|| cut(20))?;
        let interface = Interface {
            link: link as u16,
            ..Interface::default()
        };
        self.frames
            .capture
            .interfaces
            .push("interface 0".to_owned());
        let unit = if nanoseconds { 1 } else { 1000 };
        let mut at = 24;
        while at < bytes.len() {
            if bytes.len() - at < 16 {
                return self.cut_off(at);
            }
            let word = |i: usize| self.u32(bytes, at + 4 * i).ok_or_else(|| cut(at));
            let (seconds, parts, kept, size) = (word(0)?, word(1)?, word(2)?, word(3)?);
            if kept > MAX_LENGTH {
                return Err(cut(at));
            }
            let Some(data) = bytes.get(at + 16..at + 16 + kept as usize) else {
                return self.cut_off(at);
            };
            let time = i64::from(seconds) * 1_000_000_000 + i64::from(parts) * unit;
            self.frames
                .add(time, interface, data, size, 0, Way::Unknown);
            at += 16 + kept as usize;
        }
        Ok(())
    }
}
