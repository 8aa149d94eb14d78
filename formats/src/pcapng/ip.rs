//! Headers of IPv4, IPv6, TCP and UDP, as capturing programs see them: complete, truncated, or larger than any packet
//! because the network adapter segments (TSO, GSO) or merges (GRO, LRO).

use super::unread::Unread;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
/// Extension headers of IPv6 before the fragment header or the payload.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Bytes of a UDP payload that identify datagrams, in two parts: if few bytes were captured, the first part counts.
const PREFIX: [usize; 2] = [16, 40];

/// The selective acknowledgements of one packet (RFC 2018): up to four ranges `[begin, end)`; empty ranges mean nothing.
pub type Sack = [[u32; 2]; 4];

/// Position of a fragment in its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) id: u32,
    /// Bytes before it.
    pub(super) offset: u32,
}

/// The headers of one TCP or UDP packet, or of a later fragment (which has no ports).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ip<'a> {
    pub(super) source: &'a [u8],
    pub(super) destination: &'a [u8],
    pub(super) protocol: u8,
    pub(super) id: u16,
    /// Bytes of the IP packet.
    pub(super) total: u32,
    /// Bytes behind the header of TCP or UDP.
    pub(super) payload: u32,
    /// Bytes of that header.
    pub(super) header: u32,
    pub(super) fragment: Option<Fragment>,
    pub(super) ports: [u16; 2],
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    pub(super) options: Options,
    /// Hash of a UDP payload.
    pub(super) hash: u64,
}

/// TCP options; 0 if absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) stamp: u32,
    pub(super) echo: u32,
    pub(super) mss: u16,
    /// Ranges that are selectively acknowledged.
    pub(super) sack: Option<Sack>,
}

impl<'a> Ip<'a> {
    /// Reads the headers at the beginning of `data`; `wire` is the length of the frame from there.
    pub(super) fn parse(data: &'a [u8], wire: u32) -> Result<Self, Unread> {
        let (mut ip, at) = match byte(data, 0)? >> 4 {
            4 => version_4(data, wire)?,
            6 => version_6(data, wire)?,
            _ => return Err(Unread::Malformed),
        };
        if !matches!(ip.protocol, TCP | UDP) {
            return Err(Unread::Protocol(ip.protocol));
        }
        ip.payload = ip.total.saturating_sub(at as u32);
        if ip.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return Ok(ip);
        }
        ip.ports = [be16(data, at)?, be16(data, at + 2)?];
        ip.header = if ip.protocol == TCP {
            ip.sequence = be32(data, at + 4)?;
            ip.acknowledgement = be32(data, at + 8)?;
            let header = usize::from(byte(data, at + 12)? >> 4) * 4;
            ip.flags = byte(data, at + 13)?;
            if header < 20 {
                return Err(Unread::Malformed);
            }
            let end = (at + header).min(data.len());
            ip.options = options(data.get(at + 20..end).unwrap_or(&[]));
            header as u32
        } else {
            // Bytes beyond the packet are padding.
            let end = data.len().min(ip.total as usize);
            ip.hash = prefix_hash(
                data.get(at + 8..end).unwrap_or(&[]),
                ip.payload.saturating_sub(8),
            );
            8
        };
        ip.payload = ip.payload.saturating_sub(ip.header);
        Ok(ip)
    }
}

fn byte(data: &[u8], at: usize) -> Result<u8, Unread> {
    data.get(at).copied().ok_or(Unread::Short)
}

fn be16(data: &[u8], at: usize) -> Result<u16, Unread> {
    Ok(u16::from_be_bytes([byte(data, at)?, byte(data, at + 1)?]))
}

fn be32(data: &[u8], at: usize) -> Result<u32, Unread> {
    Ok(u32::from(be16(data, at)?) << 16 | u32::from(be16(data, at + 2)?))
}

/// The length that a header names; before segmentation it may be 0, in which case the frame's length is correct.
fn total_length(named: u32, wire: u32, empty: u32) -> u32 {
    if named <= empty {
        wire.max(empty)
    } else {
        named
    }
}

fn version_4(data: &[u8], wire: u32) -> Result<(Ip<'_>, usize), Unread> {
    let header = usize::from(data[0] & 15) * 4;
    if header < 20 {
        return Err(Unread::Malformed);
    }
    let place = be16(data, 6)?;
    let id = be16(data, 4)?;
    let named = u32::from(be16(data, 2)?);
    let ip = Ip {
        total: if named == 0 {
            total_length(0, wire, header as u32)
        } else {
            named
        },
        id,
        fragment: (place & 0x3fff != 0).then_some(Fragment {
            id: u32::from(id),
            offset: u32::from(place & 0x1fff) * 8,
        }),
        protocol: byte(data, 9)?,
        source: data.get(12..16).ok_or(Unread::Short)?,
        destination: data.get(16..20).ok_or(Unread::Short)?,
        ..Ip::default()
    };
    Ok((ip, header))
}

fn version_6(data: &[u8], wire: u32) -> Result<(Ip<'_>, usize), Unread> {
    const HEADER: u32 = 40;
    let mut ip = Ip {
        total: total_length(HEADER + u32::from(be16(data, 4)?), wire, HEADER),
        source: data.get(8..24).ok_or(Unread::Short)?,
        destination: data.get(24..40).ok_or(Unread::Short)?,
        ..Ip::default()
    };
    let mut next = byte(data, 6)?;
    let mut at = HEADER as usize;
    loop {
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(byte(data, at + 1)?) + 1) * 8,
            AUTHENTICATION => (usize::from(byte(data, at + 1)?) + 2) * 4,
            FRAGMENT => {
                let place = be16(data, at + 2)?;
                if place & 0xfff9 != 0 {
                    ip.fragment = Some(Fragment {
                        id: be32(data, at + 4)?,
                        offset: u32::from(place & 0xfff8),
                    });
                }
                8
            }
            _ => break,
        };
        next = byte(data, at)?;
        at += length;
        if ip.fragment.is_some_and(|fragment| fragment.offset > 0) {
            break;
        }
    }
    ip.protocol = next;
    Ok((ip, at))
}

fn options(bytes: &[u8]) -> Options {
    let mut options = Options::default();
    let word = |at: usize| be32(bytes, at).unwrap_or(0);
    let mut at = 0;
    while let Some(&kind) = bytes.get(at) {
        match kind {
            0 => break,
            1 => at += 1,
            _ => {
                let length = usize::from(bytes.get(at + 1).copied().unwrap_or(0));
                match kind {
                    2 => options.mss = be16(bytes, at + 2).unwrap_or(0),
                    5 => {
                        let mut sack = Sack::default();
                        let kept = length.saturating_sub(2) / 8;
                        for (number, range) in sack.iter_mut().enumerate().take(kept) {
                            *range = [word(at + 2 + 8 * number), word(at + 6 + 8 * number)];
                        }
                        options.sack = Some(sack);
                    }
                    8 => (options.stamp, options.echo) = (word(at + 2), word(at + 6)),
                    _ => {}
                }
                if length < 2 {
                    break;
                }
                at += length;
            }
        }
    }
    options
}

/// Two hashes of the first bytes of a payload of `length` bytes, of which `kept` were captured; 0 if too few were.
fn prefix_hash(kept: &[u8], length: u32) -> u64 {
    let part = |upto: usize| -> u64 {
        let upto = upto.min(length as usize);
        match kept.get(..upto) {
            Some(part) if upto > 0 => u64::from(fnv(part).max(1)),
            _ => 0,
        }
    };
    part(PREFIX[0]) << 32 | part(PREFIX[1])
}

/// FNV-1a, folded to 32 bits.
fn fnv(bytes: &[u8]) -> u32 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}
