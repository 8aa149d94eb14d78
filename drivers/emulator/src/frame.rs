//! Ethernet frames: the fields that the emulator reads, and the few that it changes.

use narrows_cell::addressing::{self, WARM_UP_PORT, flow_between, ports};
use narrows_transport::wire;

/// Bytes of the Ethernet header. Sizes of packets never include it.
pub const ETHERNET: usize = 14;
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
/// FIN, SYN and RST of the TCP flags.
const TCP_EVENTS: u8 = 0b111;

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An IPv4 packet.
    Packet(Header),
    /// One of our datagrams that only warm up the path, if the network is that of a run.
    WarmUp(Header),
    /// Anything else. The hosts send no such frames.
    Foreign,
}

/// Fields of an IPv4 packet that the emulator uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// IP size in bytes.
    pub size: u16,
    /// Flow by port; 0 for packets of no flow.
    pub flow: u16,
    /// DSCP and ECN.
    pub tos: u8,
    /// Destination address.
    pub to: [u8; 4],
    /// Hash of addresses, ports and protocol.
    pub connection: u32,
    /// True if it is a TCP segment with a pure acknowledgement.
    pub tcp_ack: bool,
    /// True if it is a datagram that our transport would interpret as an acknowledgement.
    pub udp_ack: bool,
}

/// Reads the headers of a frame.
#[inline]
pub fn classify(frame: &[u8]) -> Kind {
    let Some(ip) = frame.get(ETHERNET..).filter(|ip| ip.len() >= 20) else {
        return Kind::Foreign;
    };
    let length = usize::from(ip[0] & 15) * 4;
    let size = u16::from_be_bytes([ip[2], ip[3]]);
    if frame[12..14] != [8, 0] || ip[0] >> 4 != 4 || length < 20 || usize::from(size) < length {
        return Kind::Foreign;
    }
    // A real Ethernet pads packets that are shorter than 46 bytes.
    let Some(ip) = ip.get(..usize::from(size)) else {
        return Kind::Foreign;
    };
    let mut header = Header {
        size,
        tos: ip[1],
        to: [ip[16], ip[17], ip[18], ip[19]],
        ..Header::default()
    };
    let mut warm_up = false;
    let ports = ports(ip, length);
    if let Some(ports) = ports {
        let payload = &ip[length..];
        if ip[9] == UDP {
            warm_up = ports[2..] == WARM_UP_PORT.to_be_bytes();
            header.udp_ack = payload.get(8..).is_some_and(wire::is_ack);
        } else if let Some(&[offset, flags]) = payload.get(12..14) {
            let empty = payload.len() == usize::from(offset >> 4) * 4;
            header.tcp_ack = empty && flags & TCP_EVENTS == 0;
        }
        header.flow = flow_between(ports);
    }
    header.connection = hash(&ip[12..20], ports.unwrap_or_default(), ip[9]);
    if warm_up {
        return Kind::WarmUp(header);
    }
    Kind::Packet(header)
}

/// Protocol, ports (0 if absent) and bytes behind the headers of a frame with an IPv4 packet.
pub fn contents(frame: &[u8]) -> (u8, [u16; 2], u64) {
    addressing::contents(frame.get(ETHERNET..).unwrap_or_default())
}

/// Mixes the fields that identify connections (multiply and fold, like FxHash and wyhash; the constants are odd digits
/// of pi and of the golden ratio).
#[inline]
fn hash(addresses: &[u8], ports: [u8; 4], protocol: u8) -> u32 {
    let addresses = u64::from_ne_bytes(addresses.try_into().unwrap_or_default());
    let ports = u64::from(u32::from_ne_bytes(ports)) << 8 | u64::from(protocol);
    let mixed = u128::from(addresses ^ 0x2436_a888_5a30_8d31)
        * u128::from(ports.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let folded = (mixed as u64) ^ ((mixed >> 64) as u64);
    (folded ^ (folded >> 32)) as u32
}

/// Sets the DSCP and ECN bits of an IPv4 frame and updates its checksum (RFC 1624, equation 3).
pub fn set_tos(frame: &mut [u8], tos: u8) {
    let ip = &mut frame[ETHERNET..];
    let old = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] = tos;
    let new = u16::from_be_bytes([ip[0], ip[1]]);
    let checksum = u16::from_be_bytes([ip[10], ip[11]]);
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !(sum as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Damages an IPv4 frame (which may be followed by unused room) so that the receiver's checksum detects it: one bit
/// behind the ports is flipped, which always changes an Internet checksum (RFC 1071).
pub fn damage(frame: &mut [u8]) {
    let ip = &mut frame[ETHERNET..];
    let header = usize::from(ip[0] & 15) * 4;
    let size = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let fields = match ip[9] {
        TCP => 20,
        UDP => 8,
        _ => 0,
    };
    let at = if size > header + fields {
        // The last byte of the payload.
        size - 1
    } else if ip[9] == UDP {
        // There are only ports, length and checksum: a wrong length is discarded as well.
        header + 5
    } else {
        // The sequence number of a segment without options or payload; a byte of anything else.
        header + 4.min(size.saturating_sub(header + 1))
    };
    if at < size && at >= header {
        ip[at] ^= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{readdress, sample, sum_of};
    use narrows_cell::addressing::{FLOW_PORTS, flow_of};

    fn header(frame: &[u8]) -> Header {
        match classify(frame) {
            Kind::Packet(header) => header,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn frames_are_told_apart() {
        let port = |flow| FLOW_PORTS + flow;
        let full = header(&sample(1500, TCP, port(3), 40_000, 0xb8 | 2));
        assert_eq!((full.size, full.flow, full.tos), (1500, 3, 0xba));
        assert_eq!(full.to, [10, 77, 0, 2]);
        assert!(!full.tcp_ack && !full.udp_ack);
        assert_eq!(header(&sample(64, UDP, 50_000, port(4), 0)).flow, 4);
        assert_eq!(header(&sample(64, 1, port(3), port(3), 0)).flow, 0, "ICMP");
        assert_eq!(header(&sample(64, TCP, 50_000, 33_000, 0)).flow, 0);
        assert_eq!(header(&sample(64, TCP, 50_000, 30_001, 0)).flow, 0);
        for (size, protocol, from, to) in [
            (1500, TCP, port(3), 40_000),
            (64, UDP, 50_000, port(4)),
            (64, 1, port(3), port(3)),
            (64, TCP, 50_000, 30_001),
            (24, UDP, 50_000, port(4)),
        ] {
            let frame = sample(size, protocol, from, to, 0);
            assert_eq!(flow_of(&frame[ETHERNET..]), header(&frame).flow);
            assert_eq!(flow_of(&frame[ETHERNET..][..23]), 0, "no ports");
        }
        assert_eq!(flow_of(&[0x60; 48]), 0, "IPv6");
        assert_eq!(flow_of(&[]), 0);
        let warm_up = classify(&sample(64, UDP, 40_000, WARM_UP_PORT, 0));
        assert!(matches!(warm_up, Kind::WarmUp(_)));
        let mut padded = sample(30, UDP, 50_000, port(4), 0);
        padded.resize(60, 0);
        assert_eq!((header(&padded).size, header(&padded).flow), (30, 4));
        let mut arp = sample(64, UDP, 1, 1, 0);
        arp[13] = 6;
        assert_eq!(classify(&arp), Kind::Foreign);
        assert_eq!(classify(&[0; 20]), Kind::Foreign);
        let mut cut = sample(64, UDP, 1, 1, 0);
        cut.pop();
        assert_eq!(classify(&cut), Kind::Foreign);
    }

    #[test]
    fn the_contents_of_packets_are_told() {
        let mut segment = sample(152, TCP, 7, 9, 0);
        segment[ETHERNET + 32] = 8 << 4;
        assert_eq!(contents(&segment), (TCP, [7, 9], 100));
        assert_eq!(contents(&sample(128, UDP, 7, 9, 0)), (UDP, [7, 9], 100));
        assert_eq!(contents(&sample(120, 1, 7, 9, 0)), (1, [0, 0], 100), "ICMP");
        let mut padded = sample(30, UDP, 7, 9, 0);
        padded.resize(60, 0);
        assert_eq!(contents(&padded), (UDP, [7, 9], 2));
        assert_eq!(contents(&[0; 20]), (0, [0, 0], 0));
    }

    #[test]
    fn acknowledgements_are_known() {
        let mut segment = sample(52, TCP, 1, 2, 0);
        segment[ETHERNET + 32] = 8 << 4;
        for (flags, ack) in [(0x10, true), (0x12, false), (0x11, false), (0x14, false)] {
            segment[ETHERNET + 33] = flags;
            assert_eq!(header(&segment).tcp_ack, ack, "flags {flags:#x}");
        }
        let mut data = sample(53, TCP, 1, 2, 0);
        data[ETHERNET + 32] = 8 << 4;
        data[ETHERNET + 33] = 0x10;
        assert!(!header(&data).tcp_ack, "it carries a byte");
        let ours = |header: &narrows_transport::Header| {
            let mut bytes = Vec::new();
            wire::encode(1, header, &narrows_transport::Body::default(), &mut bytes);
            let mut frame = sample(28 + bytes.len() as u16, UDP, 1, 2, 0);
            frame[ETHERNET + 28..].copy_from_slice(&bytes);
            frame
        };
        let ack = narrows_transport::Header::Ack(narrows_transport::Ack::default());
        let data = narrows_transport::Header::Data(narrows_transport::Data::default());
        assert!(super::tests::header(&ours(&ack)).udp_ack);
        assert!(!super::tests::header(&ours(&data)).udp_ack);
    }

    #[test]
    fn connections_differ_by_each_field() {
        let key = |frame: Vec<u8>| header(&frame).connection;
        let base = key(sample(60, TCP, 5000, 20_001, 0));
        assert_eq!(base, key(sample(1500, TCP, 5000, 20_001, 3)));
        assert_ne!(base, key(sample(60, UDP, 5000, 20_001, 0)));
        assert_ne!(base, key(sample(60, TCP, 20_001, 5000, 0)));
        assert_ne!(base, key(readdress(sample(60, TCP, 5000, 20_001, 0), 1, 0)));
        // As even as random values over a power of two: 4096 connections in 256 buckets, 16 each on average with a
        // standard deviation of 4.
        let mut buckets = [0; 256];
        for port in 0..4096 {
            buckets[key(sample(60, TCP, 32_768 + port, 20_001, 0)) as usize % 256] += 1;
        }
        assert!(
            buckets.iter().all(|&n| (1..=40).contains(&n)),
            "{buckets:?}"
        );
    }

    #[test]
    fn remarking_keeps_the_checksum_right() {
        for size in 60..1500 {
            for tos in [0, 3, 0xb8, 0xff] {
                let mut frame = sample(size, TCP, size, 7, (size % 256) as u8);
                assert_eq!(sum_of(&frame[ETHERNET..ETHERNET + 20]), 0xffff);
                set_tos(&mut frame, tos);
                assert_eq!(frame[ETHERNET + 1], tos);
                assert_eq!(sum_of(&frame[ETHERNET..ETHERNET + 20]), 0xffff);
            }
        }
    }

    #[test]
    fn damage_changes_one_bit_behind_the_ports() {
        let shapes = [
            (40, TCP),
            (52, TCP),
            (1500, TCP),
            (28, UDP),
            (29, UDP),
            (84, 1),
            (24, 1),
        ];
        for (size, protocol) in shapes {
            let mut frame = sample(size, protocol, 1, 2, 0);
            let before = frame.clone();
            // Pooled frames have unused room behind them.
            frame.resize(2048, 7);
            damage(&mut frame);
            let (kept, room) = frame.split_at(before.len());
            assert!(room.iter().all(|&byte| byte == 7));
            let ip = ETHERNET + 20;
            let ports = if protocol == 1 { 0 } else { 4 };
            assert_eq!(kept[..ip + ports], before[..ip + ports]);
            let bits: u32 = kept
                .iter()
                .zip(&before)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            assert_eq!(bits, 1, "size {size}, protocol {protocol}");
            assert_ne!(sum_of(&kept[ip..]), sum_of(&before[ip..]));
        }
    }
}
