//! Finds the IP packet of a captured frame: Ethernet with VLAN tags, MPLS and PPPoE, Linux "any", loopback, PPP, 802.11,
//! or nothing before it.

use super::unread::{MPLS, MPLS_MULTICAST, Unread};
use super::{ETHERNET, RAW};

/// Other link types: BSD loopback in two byte orders, PPP, 802.11, Linux "any" (cooked) in two versions, raw IP.
const NULL: u16 = 0;
const LOOP: u16 = 108;
const PPP: [u16; 3] = [9, 50, 166];
const PPP_ETHERNET: u16 = 51;
const WIRELESS: u16 = 105;
const PRISM: u16 = 119;
const RADIOTAP: u16 = 127;
const AVS: u16 = 163;
const COOKED: u16 = 113;
const COOKED_2: u16 = 276;
const OTHER_RAW: [u16; 5] = [RAW, 12, 14, 228, 229];

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the EtherTypes that were used before it.
const VLAN: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];
const PPPOE_SESSION: u16 = 0x8864;
/// Maximum value of the field that is a length (802.3) and not an EtherType.
const MAX_LENGTH_FIELD: u16 = 1500;
/// LLC and SNAP before an EtherType.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Direction in which a packet passed the interface, if the file contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Not recorded.
    #[default]
    Unknown,
    /// Received by this host.
    In,
    /// Sent by this host.
    Out,
}

/// Position of the IP packet in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Where the IP packet begins.
    pub(super) begin: usize,
    pub(super) way: Way,
    /// Number of the interface, if frames of several are mixed.
    pub(super) index: Option<u32>,
}

impl Link {
    /// Finds the IP packet of a frame of link type `link`.
    pub(super) fn parse(link: u16, data: &[u8]) -> Result<Self, Unread> {
        let mut way = Way::Unknown;
        let mut index = None;
        let begin = match link {
            ETHERNET => ether(data, 12)?,
            NULL | LOOP => family(data)?,
            COOKED => {
                way = cooked_way(word(data, 0)?);
                ether(data, 14)?
            }
            COOKED_2 => {
                way = cooked_way(u16::from(byte(data, 10)?));
                index = Some(u32::from(word(data, 4)?) << 16 | u32::from(word(data, 6)?));
                // The type is first here; the type after a VLAN tag follows the header.
                match word(data, 0)? {
                    IPV4 | IPV6 => 20,
                    tag if VLAN.contains(&tag) => ether(data, 22)?,
                    other => return Err(Unread::NotIp(other)),
                }
            }
            WIRELESS => wireless(data, 0, false)?,
            RADIOTAP => {
                let length = usize::from(little(data, 2)?);
                if byte(data, 0)? != 0 || length < 8 {
                    return Err(Unread::Link(link));
                }
                wireless(data, length, radiotap_pads(data).unwrap_or(false)).map_err(|unread| {
                    // A header beyond the frame is invalid.
                    if length > data.len() {
                        Unread::Link(link)
                    } else {
                        unread
                    }
                })?
            }
            PRISM => wireless(data, 144, false)?,
            AVS => wireless(data, 64, false)?,
            PPP_ETHERNET => ppp(data, 6)?,
            ppp_link if PPP.contains(&ppp_link) => {
                ppp(data, if data.starts_with(&[0xff, 3]) { 2 } else { 0 })?
            }
            raw if OTHER_RAW.contains(&raw) => 0,
            other => return Err(Unread::Link(other)),
        };
        Ok(Link { begin, way, index })
    }
}

fn byte(data: &[u8], at: usize) -> Result<u8, Unread> {
    data.get(at).copied().ok_or(Unread::Short)
}

fn word(data: &[u8], at: usize) -> Result<u16, Unread> {
    Ok(u16::from_be_bytes([byte(data, at)?, byte(data, at + 1)?]))
}

fn little(data: &[u8], at: usize) -> Result<u16, Unread> {
    Ok(word(data, at)?.swap_bytes())
}

/// Packet types of Linux: 4 was sent by this host, 3 is for another one.
fn cooked_way(kind: u16) -> Way {
    match kind {
        0..=2 => Way::In,
        4 => Way::Out,
        _ => Way::Unknown,
    }
}

/// Skips headers starting with the EtherType at `at`.
fn ether(data: &[u8], mut at: usize) -> Result<usize, Unread> {
    loop {
        let kind = word(data, at)?;
        at += 2;
        match kind {
            IPV4 | IPV6 => return Ok(at),
            tag if VLAN.contains(&tag) => at += 2,
            MPLS | MPLS_MULTICAST => {
                while byte(data, at + 2)? & 1 == 0 {
                    at += 4;
                }
                at += 4;
                let is_ip = matches!(byte(data, at)? >> 4, 4 | 6);
                return is_ip.then_some(at).ok_or(Unread::NotIp(kind));
            }
            PPPOE_SESSION => return ppp(data, at + 6).map_err(|_| Unread::NotIp(kind)),
            0..=MAX_LENGTH_FIELD => {
                if data.get(at..at + 6) != Some(&SNAP) {
                    return Err(Unread::NotIp(0));
                }
                at += 6;
            }
            other => return Err(Unread::NotIp(other)),
        }
    }
}

/// Skips the protocol number of PPP, which may be compressed to one byte.
fn ppp(data: &[u8], at: usize) -> Result<usize, Unread> {
    match (byte(data, at)?, word(data, at)?) {
        (_, 0x0021 | 0x0057) => Ok(at + 2),
        (0x21 | 0x57, _) => Ok(at + 1),
        _ => Err(Unread::NotIp(0)),
    }
}

/// Skips the address family of BSD's loopback, in the byte order of the host that captured.
fn family(data: &[u8]) -> Result<usize, Unread> {
    let value = u32::from(word(data, 0)?) << 16 | u32::from(word(data, 2)?);
    let known = [2, 10, 24, 28, 30];
    if known.contains(&value) || known.contains(&value.swap_bytes()) {
        Ok(4)
    } else {
        Err(Unread::NotIp(0))
    }
}

/// Skips the header of 802.11 at `at`; `pads` says that it is padded to four bytes.
fn wireless(data: &[u8], at: usize, pads: bool) -> Result<usize, Unread> {
    let (kind, flags) = (byte(data, at)?, byte(data, at + 1)?);
    let (quality, empty) = (kind & 0x80 != 0, kind & 0x40 != 0);
    if kind & 0x0c != 0x08 || empty {
        return Err(Unread::Management);
    }
    if flags & 0x40 != 0 {
        return Err(Unread::Encrypted);
    }
    let mut length = if flags & 3 == 3 { 30 } else { 24 };
    if quality {
        if byte(data, at + length)? & 0x80 != 0 {
            return Err(Unread::Aggregated);
        }
        length += if flags & 0x80 != 0 { 6 } else { 2 };
    }
    if pads {
        length = length.next_multiple_of(4);
    }
    let begin = at + length;
    match data.get(begin..begin + 6) {
        Some(part) if part == SNAP => ether(data, begin + 6),
        Some(_) => Err(Unread::NotIp(0)),
        None => Err(Unread::Short),
    }
}

/// True if the flags of a radiotap header say that headers of 802.11 are padded.
fn radiotap_pads(data: &[u8]) -> Option<bool> {
    const MORE: u8 = 0x80;
    let mut at = 4;
    while *data.get(at + 3)? & MORE != 0 {
        at += 4;
    }
    at += 4;
    let present = *data.get(4)?;
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    Some(present & 2 != 0 && *data.get(at)? & 0x20 != 0)
}
