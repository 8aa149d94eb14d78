//! Reads captures, pcapng and the older pcap, of IPv4 and IPv6 over Ethernet, Linux "any" or nothing at all.

use super::{
    BYTE_ORDER, END_OF_OPTIONS, ENHANCED_PACKET, ETHERNET, INTERFACE, NAME, OFFSET, PACKET_ID, RAW,
    RESOLUTION, SECTION, SIMPLE_PACKET,
};
use crate::FormatError;

/// First bytes of a file of the older format: microseconds and nanoseconds.
const PCAP: u32 = 0xA1B2_C3D4;
const PCAP_NANOSECONDS: u32 = 0xA1B2_3C4D;
/// Other link types: BSD loopback, Linux "any" (cooked) in two versions, raw IP by other numbers.
const NULL: u16 = 0;
const COOKED: u16 = 113;
const COOKED_2: u16 = 276;
const OTHER_RAW: [u16; 5] = [RAW, 12, 14, 228, 229];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Blocks and packets beyond this are not believed.
const MAX_LENGTH: u32 = 1 << 26;

/// The TCP and UDP packets of a capture, as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Since 1970.
    pub time_ns: Vec<i64>,
    /// Index into [`Capture::interfaces`].
    pub interface: Vec<u16>,
    /// Index into [`Capture::addresses`].
    pub source: Vec<u32>,
    /// Index into [`Capture::addresses`].
    pub destination: Vec<u32>,
    /// Port of the host that sent it.
    pub source_port: Vec<u16>,
    /// Port of the host that receives it.
    pub destination_port: Vec<u16>,
    /// Protocol number of IP.
    pub protocol: Vec<u8>,
    /// Identification of IPv4; 0 of IPv6.
    pub ip_id: Vec<u16>,
    /// Bytes of the IP packet as it was on the wire.
    pub size_bytes: Vec<u32>,
    /// Payload of TCP or UDP.
    pub payload_bytes: Vec<u32>,
    /// Sequence number of TCP.
    pub sequence: Vec<u32>,
    /// Acknowledgement number of TCP.
    pub acknowledgement: Vec<u32>,
    /// Flags of TCP.
    pub flags: Vec<u8>,
    /// Time stamp of TCP's options, 0 if there is none.
    pub stamp: Vec<u32>,
    /// Number that the packet has at every interface, if the file tells; else 0.
    pub packet_id: Vec<u64>,
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// Addresses, as text.
    pub addresses: Vec<String>,
    /// Packets that were left out: not TCP or UDP, fragments, or cut before their ports.
    pub others: u64,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    /// Units per second, and seconds that are added.
    per_second: u64,
    offset_s: i64,
    number: u16,
}

impl Default for Interface {
    fn default() -> Self {
        Interface {
            link: RAW,
            per_second: 1_000_000,
            offset_s: 0,
            number: 0,
        }
    }
}

/// Reads the content of a capture.
///
/// # Errors
/// A file of another format, or one that is damaged or cut off.
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
            let problem = "this is no capture: it begins neither as pcapng nor as pcap does";
            return Err(FormatError::input(problem));
        }
    }
    Ok(reader.capture)
}

#[derive(Debug, Default)]
struct Reader {
    capture: Capture,
    addresses: std::collections::BTreeMap<Vec<u8>, u32>,
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

    fn pcapng(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let mut interfaces: Vec<Interface> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let broken = || cut(at);
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
            let block = bytes.get(at + 8..end - 4).ok_or_else(broken)?;
            if self.u32(bytes, end - 4) != Some(length) {
                return Err(broken());
            }
            match kind {
                INTERFACE => {
                    let one = self.interface(block).ok_or_else(broken)?;
                    interfaces.push(one);
                }
                ENHANCED_PACKET => self.enhanced(block, &interfaces).ok_or_else(broken)?,
                SIMPLE_PACKET => {
                    let problem =
                        "the capture has packets without times, so nothing can be measured";
                    return Err(FormatError::input(problem));
                }
                _ => {}
            }
            at = end;
        }
        Ok(())
    }

    fn interface(&mut self, block: &[u8]) -> Option<Interface> {
        let number = u16::try_from(self.capture.interfaces.len()).ok()?;
        let mut one = Interface {
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
                    one.per_second = power_of.checked_pow(u32::from(power & 0x7f))?;
                }
                (OFFSET, value) => {
                    let word: [u8; 8] = value.try_into().ok()?;
                    one.offset_s = if self.swapped {
                        i64::from_be_bytes(word)
                    } else {
                        i64::from_le_bytes(word)
                    };
                }
                _ => {}
            }
        }
        self.capture.interfaces.push(name);
        Some(one)
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
        let units = u64::from(self.u32(block, 4)?) << 32 | u64::from(self.u32(block, 8)?);
        let kept = self.u32(block, 12)? as usize;
        let size = self.u32(block, 16)?;
        let data = block.get(20..20 + kept)?;
        let per = interface.per_second;
        let ns = u128::from(units) * 1_000_000_000 / u128::from(per.max(1));
        let offset = interface.offset_s.checked_mul(1_000_000_000)?;
        let time = i64::try_from(ns).ok()?.checked_add(offset)?;
        let options = self.options(block, 20 + kept.next_multiple_of(4))?;
        let id = options.iter().find(|(code, _)| *code == PACKET_ID);
        let id = id.and_then(|(_, value)| <[u8; 8]>::try_from(*value).ok());
        let id = id.map_or(0, |word| {
            if self.swapped {
                u64::from_be_bytes(word)
            } else {
                u64::from_le_bytes(word)
            }
        });
        self.frame(time, interface, data, size, id);
        Some(())
    }

    fn pcap(&mut self, bytes: &[u8], swapped: bool, nanoseconds: bool) -> Result<(), FormatError> {
        self.swapped = swapped;
        let link = self.u32(bytes, 20).ok_or_else(|| cut(20))?;
        let interface = Interface {
            link: link as u16,
            ..Interface::default()
        };
        self.capture.interfaces.push("interface 0".to_owned());
        let unit = if nanoseconds { 1 } else { 1000 };
        let mut at = 24;
        while at < bytes.len() {
            let word = |i: usize| self.u32(bytes, at + 4 * i).ok_or_else(|| cut(at));
            let (seconds, parts, kept, size) = (word(0)?, word(1)?, word(2)?, word(3)?);
            if kept > MAX_LENGTH {
                return Err(cut(at));
            }
            let data = bytes.get(at + 16..at + 16 + kept as usize);
            let data = data.ok_or_else(|| cut(at))?;
            let time = i64::from(seconds) * 1_000_000_000 + i64::from(parts) * unit;
            self.frame(time, interface, data, size, 0);
            at += 16 + kept as usize;
        }
        Ok(())
    }

    /// One captured frame of `size` bytes, of which `data` were kept.
    fn frame(&mut self, time: i64, interface: Interface, data: &[u8], size: u32, id: u64) {
        let begin = link_header(interface.link, data);
        let packet = begin.and_then(|begin| Some((begin as u32, Ip::parse(data.get(begin..)?)?)));
        let Some((begin, ip)) = packet else {
            self.capture.others += 1;
            return;
        };
        let source = self.address(ip.source);
        let destination = self.address(ip.destination);
        let capture = &mut self.capture;
        capture.time_ns.push(time);
        capture.interface.push(interface.number);
        capture.source.push(source);
        capture.destination.push(destination);
        capture.source_port.push(ip.ports[0]);
        capture.destination_port.push(ip.ports[1]);
        capture.protocol.push(ip.protocol);
        capture.ip_id.push(ip.id);
        // Frames of our own exports may be longer than their IP packet: they tell the size. Ethernet pads short ones.
        let frame = size.saturating_sub(begin);
        let padded = interface.link == ETHERNET || frame < ip.total;
        capture
            .size_bytes
            .push(if padded { ip.total } else { frame });
        capture.payload_bytes.push(ip.payload);
        capture.sequence.push(ip.sequence);
        capture.acknowledgement.push(ip.acknowledgement);
        capture.flags.push(ip.flags);
        capture.stamp.push(ip.stamp);
        capture.packet_id.push(id);
    }

    fn address(&mut self, bytes: &[u8]) -> u32 {
        if let Some(&known) = self.addresses.get(bytes) {
            return known;
        }
        let text = match <[u8; 4]>::try_from(bytes) {
            Ok(four) => std::net::Ipv4Addr::from(four).to_string(),
            Err(_) => <[u8; 16]>::try_from(bytes)
                .map_or(String::new(), |it| std::net::Ipv6Addr::from(it).to_string()),
        };
        let number = self.capture.addresses.len() as u32;
        self.capture.addresses.push(text);
        self.addresses.insert(bytes.to_vec(), number);
        number
    }
}

/// Bytes before the IP packet.
fn link_header(link: u16, data: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
    match link {
        ETHERNET => {
            let mut at = 12;
            while VLAN.contains(&word(at)?) {
                at += 4;
            }
            [IPV4, IPV6].contains(&word(at)?).then_some(at + 2)
        }
        NULL => Some(4),
        COOKED => [IPV4, IPV6].contains(&word(14)?).then_some(16),
        COOKED_2 => [IPV4, IPV6].contains(&word(0)?).then_some(20),
        raw if OTHER_RAW.contains(&raw) => Some(0),
        _ => None,
    }
}

#[derive(Default)]
struct Ip<'a> {
    source: &'a [u8],
    destination: &'a [u8],
    protocol: u8,
    id: u16,
    total: u32,
    payload: u32,
    ports: [u16; 2],
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    stamp: u32,
}

impl<'a> Ip<'a> {
    /// The headers of a TCP or UDP packet; `None` for others, for fragments, and if they were cut off.
    fn parse(data: &'a [u8]) -> Option<Self> {
        let be16 = |at: usize| Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
        let be32 = |at: usize| Some(u32::from(be16(at)?) << 16 | u32::from(be16(at + 2)?));
        let (header, total, protocol, id, source, destination) = match data.first()? >> 4 {
            4 => {
                let header = usize::from(data[0] & 15) * 4;
                if header < 20 || be16(6)? & 0x3fff != 0 {
                    return None;
                }
                let total = u32::from(be16(2)?);
                (
                    header,
                    total,
                    *data.get(9)?,
                    be16(4)?,
                    data.get(12..16)?,
                    data.get(16..20)?,
                )
            }
            6 => {
                let total = 40 + u32::from(be16(4)?);
                (
                    40,
                    total,
                    *data.get(6)?,
                    0,
                    data.get(8..24)?,
                    data.get(24..40)?,
                )
            }
            _ => return None,
        };
        let ports = [be16(header)?, be16(header + 2)?];
        let mut ip = Ip {
            source,
            destination,
            protocol,
            id,
            total,
            payload: total.saturating_sub(header as u32 + 8),
            ports,
            ..Ip::default()
        };
        match protocol {
            TCP => {
                ip.sequence = be32(header + 4)?;
                ip.acknowledgement = be32(header + 8)?;
                let length = usize::from(data.get(header + 12)? >> 4) * 4;
                ip.flags = *data.get(header + 13)?;
                ip.payload = total.saturating_sub((header + length) as u32);
                ip.stamp = stamp(data.get(header + 20..header + length).unwrap_or(&[]));
                Some(ip)
            }
            UDP => Some(ip),
            _ => None,
        }
    }
}

/// The time stamp among the options of TCP.
fn stamp(options: &[u8]) -> u32 {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match kind {
            0 => break,
            1 => at += 1,
            _ => {
                let length = usize::from(options.get(at + 1).copied().unwrap_or(0));
                if kind == 8 {
                    let value = options.get(at + 2..at + 6);
                    let value = value.and_then(|value| value.try_into().ok());
                    return value.map_or(0, u32::from_be_bytes);
                }
                if length < 2 {
                    break;
                }
                at += length;
            }
        }
    }
    0
}
