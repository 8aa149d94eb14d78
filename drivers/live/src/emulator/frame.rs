//! What the emulator reads from an Ethernet frame, and the one thing that it changes in it.

use crate::hosts::WARM_UP_PORT;

/// Bytes of the Ethernet header. Sizes of packets never include it.
pub const ETHERNET: usize = 14;
/// Flow k uses port `FLOW_PORTS + k` on both hosts.
pub const FLOW_PORTS: u16 = 20_000;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An IPv4 packet.
    Packet {
        /// IP size in bytes.
        size: u32,
        /// Flow by port; 0 for packets of no flow.
        flow: u16,
        /// The two ECN bits.
        ecn: u8,
    },
    /// One of our own datagrams that only wake up the path.
    WarmUp,
    /// Anything else. The hosts send nothing of the kind.
    Foreign,
}

/// Reads the headers of a frame.
#[inline]
pub fn classify(frame: &[u8]) -> Kind {
    let Some(ip) = frame.get(ETHERNET..).filter(|ip| ip.len() >= 20) else {
        return Kind::Foreign;
    };
    let header = usize::from(ip[0] & 15) * 4;
    let size = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    if frame[12..14] != [8, 0] || ip[0] >> 4 != 4 || header < 20 || size as usize != ip.len() {
        return Kind::Foreign;
    }
    let mut flow = 0;
    // Only the first fragment has ports; the hosts never fragment.
    let first = u16::from_be_bytes([ip[6] & 0x1f, ip[7]]) == 0;
    if let (TCP | UDP, true, Some(ports)) = (ip[9], first, ip.get(header..header + 4)) {
        let from = u16::from_be_bytes([ports[0], ports[1]]);
        let to = u16::from_be_bytes([ports[2], ports[3]]);
        if ip[9] == UDP && to == WARM_UP_PORT {
            return Kind::WarmUp;
        }
        if from == to && from > FLOW_PORTS {
            flow = from - FLOW_PORTS;
        }
    }
    Kind::Packet {
        size,
        flow,
        ecn: ip[1] & 3,
    }
}

/// Sets the ECN bits of an IPv4 frame to congestion experienced and keeps its checksum right
/// (RFC 1624, equation 3).
pub fn mark(frame: &mut [u8]) {
    let ip = &mut frame[ETHERNET..];
    let old = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= 3;
    let new = u16::from_be_bytes([ip[0], ip[1]]);
    let checksum = u16::from_be_bytes([ip[10], ip[11]]);
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !(sum as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// An Ethernet frame with an IPv4 packet, for tests.
#[cfg(test)]
pub(crate) fn sample(size: u16, protocol: u8, from: u16, to: u16, ecn: u8) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + usize::from(size)];
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[ETHERNET..];
    ip[0] = 0x45;
    ip[1] = ecn;
    ip[2..4].copy_from_slice(&size.to_be_bytes());
    ip[8] = 64;
    ip[9] = protocol;
    ip[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
    ip[20..22].copy_from_slice(&from.to_be_bytes());
    ip[22..24].copy_from_slice(&to.to_be_bytes());
    let sum = header_sum(ip);
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
    frame
}

/// One's complement sum of an IP header: all ones when the checksum in it is right.
#[cfg(test)]
fn header_sum(ip: &[u8]) -> u16 {
    let sum: u32 = ip[..20]
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart() {
        let port = |flow| FLOW_PORTS + flow;
        let packet = |size, flow, ecn| Kind::Packet { size, flow, ecn };
        assert_eq!(
            classify(&sample(1500, TCP, port(3), port(3), 2)),
            packet(1500, 3, 2)
        );
        assert_eq!(
            classify(&sample(64, UDP, port(3), port(4), 0)),
            packet(64, 0, 0)
        );
        assert_eq!(
            classify(&sample(64, 1, port(3), port(3), 0)),
            packet(64, 0, 0)
        );
        assert_eq!(
            classify(&sample(64, UDP, 40_000, WARM_UP_PORT, 0)),
            Kind::WarmUp
        );
        let mut arp = sample(64, UDP, 1, 1, 0);
        arp[13] = 6;
        assert_eq!(classify(&arp), Kind::Foreign);
        assert_eq!(classify(&[0; 20]), Kind::Foreign);
        let mut cut = sample(64, UDP, 1, 1, 0);
        cut.pop();
        assert_eq!(classify(&cut), Kind::Foreign);
    }

    #[test]
    fn marking_keeps_the_checksum_right() {
        for size in 60..1500 {
            for ecn in [1, 2, 3] {
                let mut frame = sample(size, TCP, size, 7, ecn);
                assert_eq!(header_sum(&frame[ETHERNET..]), 0xffff);
                mark(&mut frame);
                assert_eq!(frame[ETHERNET + 1], 3);
                assert_eq!(
                    header_sum(&frame[ETHERNET..]),
                    0xffff,
                    "size {size}, ecn {ecn}"
                );
            }
        }
    }
}
