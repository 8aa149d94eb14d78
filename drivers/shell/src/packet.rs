//! Headers that the far end must read, and the only packet that it generates: ICMP "destination
//! unreachable" (RFC 792).

use narrows_emulator::frame::ETHERNET;
use std::net::{Ipv4Addr, SocketAddrV4};

const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Addresses and protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tuple {
    /// TCP, UDP or another number; ports are 0 without them.
    pub(super) protocol: u8,
    /// Source.
    pub(super) from: SocketAddrV4,
    /// Destination.
    pub(super) to: SocketAddrV4,
}

impl Tuple {
    /// The tuple of packets of the other direction.
    pub(super) const fn reversed(self) -> Tuple {
        Tuple {
            protocol: self.protocol,
            from: self.to,
            to: self.from,
        }
    }

    /// The protocol's name.
    pub(super) const fn protocol_name(self) -> &'static str {
        match self.protocol {
            TCP => "tcp",
            UDP => "udp",
            ICMP => "icmp",
            _ => "other",
        }
    }
}

/// The relevant headers of an IPv4 packet in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketHeaders {
    /// IP size in bytes.
    pub(super) size: u32,
    /// DSCP and ECN.
    pub(super) tos: u8,
    /// Addresses.
    pub(super) tuple: Tuple,
    /// The condition under which it may reach the gateway.
    pub(super) kind: Admission,
    /// True if it is a pure TCP acknowledgement.
    pub(super) acknowledgement: bool,
}

/// Kinds of packets by the socket that must exist before they may reach the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It opens a TCP connection.
    Opening,
    /// It is a datagram or its first fragment.
    Datagram,
    /// Neither.
    Other,
}

/// Reads the headers of a frame; `None` if it is not an IPv4 packet.
#[inline]
pub(super) fn read(frame: &[u8]) -> Option<PacketHeaders> {
    let ip = frame.get(ETHERNET..).filter(|ip| ip.len() >= 20)?;
    let header = usize::from(ip[0] & 15) * 4;
    let size = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    // Real Ethernet pads packets that are shorter than 46 bytes.
    if frame[12..14] != [8, 0] || ip[0] >> 4 != 4 || header < 20 || size as usize > ip.len() {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let mut ports = [0, 0];
    let mut kind = Admission::Other;
    let mut acknowledgement = false;
    // Only the first fragment has ports.
    let first = u16::from_be_bytes([ip[6] & 0x1f, ip[7]]) == 0;
    if let (TCP | UDP, true, Some(next)) = (ip[9], first, ip.get(header..header + 4)) {
        ports = [
            u16::from_be_bytes([next[0], next[1]]),
            u16::from_be_bytes([next[2], next[3]]),
        ];
        kind = match ip.get(header + 12..header + 14) {
            _ if ip[9] == UDP => Admission::Datagram,
            Some(&[_, flags]) if flags & (SYN | ACK) == SYN => Admission::Opening,
            Some(&[offset, flags]) => {
                let headers = header + usize::from(offset >> 4) * 4;
                acknowledgement = flags & (SYN | FIN | RST) == 0 && headers == size as usize;
                Admission::Other
            }
            _ => Admission::Other,
        };
    }
    Some(PacketHeaders {
        size,
        tos: ip[1],
        tuple: Tuple {
            protocol: ip[9],
            from: SocketAddrV4::new(address(12), ports[0]),
            to: SocketAddrV4::new(address(16), ports[1]),
        },
        kind,
        acknowledgement,
    })
}

/// Reasons why a destination is unreachable, with the codes of RFC 792 and RFC 1122.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    /// No route to that network.
    Network = 0,
    /// The machine does not answer.
    Host = 1,
    /// The port is closed.
    Port = 3,
    /// A filter forbids it.
    Forbidden = 13,
}

/// The ICMP answer to the packet in `frame`, sent by `router`, or by the destination itself if the
/// port is unreachable.
pub(super) fn unreachable(why: Unreachable, frame: &[u8], router: Ipv4Addr) -> Option<Vec<u8>> {
    let original = frame.get(ETHERNET..)?;
    let header = usize::from(original.first()? & 15) * 4;
    let quoted = original.get(..(header + 8).min(original.len()))?;
    let from = match why {
        Unreachable::Port => original.get(16..20)?.try_into().ok()?,
        _ => router.octets(),
    };
    let size = 20 + 8 + quoted.len();
    let mut answer = Vec::with_capacity(ETHERNET + size);
    answer.extend_from_slice(&frame[6..12]);
    answer.extend_from_slice(&frame[..6]);
    answer.extend_from_slice(&[8, 0]);
    let mut ip = [0; 20];
    ip[0] = 0x45;
    // Internetwork control, as routers send such messages (RFC 1812, section 4.3.2.5).
    ip[1] = 0xc0;
    ip[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    ip[8] = 64;
    ip[9] = ICMP;
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(original.get(12..16)?);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut icmp = vec![3, why as u8, 0, 0, 0, 0, 0, 0];
    icmp.extend_from_slice(quoted);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    answer.extend_from_slice(&ip);
    answer.extend_from_slice(&icmp);
    Some(answer)
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([
            pair[0],
            pair.get(1).copied().unwrap_or(0),
        ]));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_emulator::testing::sample;

    #[test]
    fn packets_that_must_wait_are_told_apart() {
        let datagram = sample(64, UDP, 1000, 53, 1);
        let head = read(&datagram).unwrap();
        assert_eq!((head.size, head.tos), (64, 1));
        assert_eq!(head.kind, Admission::Datagram);
        assert_eq!(head.tuple.to, "10.77.0.2:53".parse().unwrap());
        assert_eq!(head.tuple.reversed().from, head.tuple.to);
        let flags = |flags: u8| {
            let mut frame = sample(60, TCP, 1000, 80, 0);
            frame[ETHERNET + 20 + 12] = 10 << 4;
            frame[ETHERNET + 20 + 13] = flags;
            let head = read(&frame).unwrap();
            // 20 bytes of IP and 40 bytes of TCP make up the 60 bytes.
            assert_eq!(head.acknowledgement, flags == ACK);
            head.kind
        };
        assert_eq!(flags(SYN), Admission::Opening);
        assert_eq!(
            flags(SYN | 0xc0),
            Admission::Opening,
            "with ECN negotiation"
        );
        assert_eq!(flags(SYN | ACK), Admission::Other);
        assert_eq!(flags(ACK), Admission::Other);
        let mut later = sample(64, UDP, 1000, 53, 0);
        later[ETHERNET + 7] = 185;
        assert_eq!(
            read(&later).unwrap().kind,
            Admission::Other,
            "a later fragment has no ports"
        );
        let mut arp = datagram.clone();
        arp[13] = 6;
        assert_eq!(read(&arp), None);
        assert_eq!(read(&[0; 20]), None);
        let mut cut = datagram;
        cut.pop();
        assert_eq!(read(&cut), None);
    }

    #[test]
    fn an_answer_quotes_the_packet() {
        let mut frame = sample(100, UDP, 1000, 53, 0);
        frame[..12].copy_from_slice(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
        let answer = unreachable(Unreachable::Port, &frame, Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(answer[..12], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]);
        let head = read(&answer).unwrap();
        assert_eq!(head.tuple.from.ip(), &Ipv4Addr::new(10, 77, 0, 2));
        assert_eq!(head.tuple.to.ip(), &Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(head.size as usize, 20 + 8 + 28);
        assert_eq!(
            checksum(&answer[ETHERNET..ETHERNET + 20]),
            0,
            "a correct checksum verifies to zero"
        );
        let icmp = &answer[ETHERNET + 20..];
        assert_eq!((icmp[0], icmp[1], checksum(icmp)), (3, 3, 0));
        assert_eq!(icmp[8..36], frame[ETHERNET..ETHERNET + 28]);
        let answer = unreachable(Unreachable::Host, &frame, Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(read(&answer).unwrap().tuple.from.ip(), &Ipv4Addr::LOCALHOST);
        assert_eq!(
            unreachable(Unreachable::Host, &frame[..20], Ipv4Addr::LOCALHOST),
            None
        );
    }
}
