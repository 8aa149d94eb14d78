//! IPv4, TCP and UDP headers for packets of a record, which contains none.
//!
//! Headers follow the emulator's addressing: host 10.77.0.1 sends the data, 10.77.0.2 receives them, and flow k is
//! served at port 20000 + k. Reliable flows are written as TCP, including those of our transport (which ran over UDP),
//! so that TCP analysers can process them; media and datagrams are UDP.

use crate::streams::{IP, IP_UDP, Segment};

/// Hosts at both ends of a flow: sender and receiver of its data.
pub(super) const HOSTS: [[u8; 4]; 2] = [[10, 77, 0, 1], [10, 77, 0, 2]];
/// The server of flow k has the port `SERVER + k`.
const SERVER: u16 = 20_000;
/// Its client has the port `CLIENT + k % (65536 - CLIENT)`.
const CLIENT: u16 = 49_152;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Shift of the windows that SYNs announce, and the window itself, which thus never limits.
const WINDOW_SHIFT: u8 = 14;
const WINDOW: u16 = 65_535;
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

/// Facts for the headers of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading<'a> {
    pub(super) flow: u16,
    /// Index into [`HOSTS`] of the host that sent it.
    pub(super) from: usize,
    pub(super) uid: u32,
    pub(super) sent_ns: u64,
    pub(super) size: u32,
    /// Its part of the stream; `None` for UDP.
    pub(super) segment: Option<&'a Segment>,
    /// Set for the packets that open a connection.
    pub(super) opens: Option<Opening>,
}

/// The first packets of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// SYN.
    Asks,
    /// SYN and ACK.
    Answers,
}

/// Appends the headers of a packet, without its payload.
pub(super) fn append(out: &mut Vec<u8>, heading: &Heading<'_>) {
    let start = out.len();
    let stream = heading.segment.filter(|_| heading.size >= 40);
    let (protocol, total) = match stream {
        Some(segment) if segment.length == 0 => {
            // The kernel's headers are multiples of four bytes, at most sixty. Larger acknowledgements of our transport
            // do not fit into a TCP header, so that such frames are longer than their IP packet.
            (TCP, IP + ((heading.size - IP) / 4 * 4).min(60))
        }
        Some(_) => (TCP, heading.size),
        None => (UDP, heading.size.max(IP_UDP)),
    };
    ip(out, heading, protocol, total);
    match stream {
        Some(segment) => tcp(out, heading, segment, total),
        None => udp(out, heading, total),
    }
    let sum = checksum(&out[start..start + IP as usize], 0);
    out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

fn ip(out: &mut Vec<u8>, heading: &Heading<'_>, protocol: u8, total: u32) {
    let total = u16::try_from(total).unwrap_or(u16::MAX);
    out.extend([0x45, 0]);
    out.extend(total.to_be_bytes());
    out.extend((heading.uid as u16).to_be_bytes());
    out.extend([0x40, 0, 64, protocol, 0, 0]);
    out.extend(HOSTS[heading.from]);
    out.extend(HOSTS[1 - heading.from]);
}

/// Port of the host that sends the data of a flow.
pub(crate) fn client_port(flow: u16) -> u16 {
    CLIENT + flow % (u16::MAX - CLIENT)
}

/// Port of the host that receives them.
pub(crate) fn server_port(flow: u16) -> u16 {
    SERVER.saturating_add(flow)
}

fn ports(out: &mut Vec<u8>, heading: &Heading<'_>) {
    let both = [client_port(heading.flow), server_port(heading.flow)];
    out.extend(both[heading.from].to_be_bytes());
    out.extend(both[1 - heading.from].to_be_bytes());
}

fn udp(out: &mut Vec<u8>, heading: &Heading<'_>, total: u32) {
    ports(out, heading);
    let length = u16::try_from(total - IP).unwrap_or(u16::MAX);
    out.extend(length.to_be_bytes());
    out.extend([0, 0]); // no checksum
}

fn tcp(out: &mut Vec<u8>, heading: &Heading<'_>, segment: &Segment, total: u32) {
    let start = out.len();
    let length = if segment.length > 0 {
        32
    } else {
        (total - IP) as usize
    };
    ports(out, heading);
    out.extend((segment.position as u32).to_be_bytes());
    out.extend((segment.ack as u32).to_be_bytes());
    let syn = heading.opens.map_or(0, |_| SYN);
    let ack = if heading.opens == Some(Opening::Asks) {
        0
    } else {
        ACK
    };
    out.extend([(length as u8 / 4) << 4, syn | ack]);
    out.extend(WINDOW.to_be_bytes());
    out.extend([0, 0, 0, 0]);
    let stamps = |out: &mut Vec<u8>| {
        out.extend([8, 10]);
        out.extend(milliseconds(heading.sent_ns).to_be_bytes());
        out.extend(milliseconds(segment.echo_ns).to_be_bytes());
    };
    if heading.opens.is_some() {
        out.extend([2, 4]);
        out.extend(1460_u16.to_be_bytes());
        out.extend([4, 2]);
        stamps(out);
        out.extend([1, 3, 3, WINDOW_SHIFT]);
    } else if length >= 32 {
        out.extend([1, 1]);
        stamps(out);
    }
    // The rest of the header were selective acknowledgements, whose ranges were not recorded.
    out.resize(start + length, 1);
    let mut pseudo = 0_u32;
    for part in HOSTS.concat().chunks_exact(2) {
        pseudo += u32::from(u16::from_be_bytes([part[0], part[1]]));
    }
    // The absent payload counts as zeros.
    pseudo += u32::from(TCP) + (total - IP);
    let sum = checksum(&out[start..], pseudo);
    out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
}

fn milliseconds(ns: u64) -> u32 {
    (ns / 1_000_000 + 1) as u32
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for part in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([part[0], *part.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
