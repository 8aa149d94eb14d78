//! Datagrams of the path probe.
//!
//! ```text
//!  0  8 bytes  "narrprob"
//!  8  1 byte   kind: 1 asks for an answer, 2 answers, 3 only wants to arrive
//!  9  3 bytes  zero
//! 12 16 bytes  the token of this examination, which both ends got over ssh
//! 28  4 bytes  size of the IP packet
//! 32  8 bytes  clock of the asker when it sent
//! 40  8 bytes  clock of the other end when that arrived
//! 48  8 bytes  clock of the other end when it answered
//! 56 16 bytes  where the question came from, as the other end saw it (IPv4 mapped into IPv6)
//! 72  2 bytes  the port of that
//! 74  6 bytes  zero
//! ```
//!
//! Numbers are in network order, clocks in nanoseconds since 1970. A question is padded with zeros to the tested size;
//! an answer has exactly the size of the header, so that an open port cannot be used for amplification.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Size of the header, which is the minimum size of a datagram.
pub(super) const HEADER: usize = 80;
const MAGIC: &[u8; 8] = b"narrprob";

/// Purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeKind {
    /// A question, which is answered.
    Ask = 1,
    /// The answer to a question.
    Answer = 2,
    /// A filler, which is only counted.
    Fill = 3,
}

/// The secret of one examination: datagrams without it are foreign.
pub(super) type ProbeToken = [u8; 16];

/// The contents of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeDatagram {
    pub(super) kind: ProbeKind,
    pub(super) token: ProbeToken,
    /// Size of the IP packet of the question, in bytes.
    pub(super) ip_size: u32,
    pub(super) asked_ns: u64,
    pub(super) arrived_ns: u64,
    pub(super) answered_ns: u64,
    /// Source address of the question, as seen by the other end.
    pub(super) seen: SocketAddr,
}

impl ProbeDatagram {
    /// Writes the header; `buffer` has at least [`HEADER`] bytes.
    pub(super) fn write(&self, buffer: &mut [u8]) {
        buffer[..8].copy_from_slice(MAGIC);
        buffer[8] = self.kind as u8;
        buffer[9..12].fill(0);
        buffer[12..28].copy_from_slice(&self.token);
        buffer[28..32].copy_from_slice(&self.ip_size.to_be_bytes());
        buffer[32..40].copy_from_slice(&self.asked_ns.to_be_bytes());
        buffer[40..48].copy_from_slice(&self.arrived_ns.to_be_bytes());
        buffer[48..56].copy_from_slice(&self.answered_ns.to_be_bytes());
        let ip = match self.seen.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        buffer[56..72].copy_from_slice(&ip.octets());
        buffer[72..74].copy_from_slice(&self.seen.port().to_be_bytes());
        buffer[74..HEADER].fill(0);
    }

    /// Reads a datagram; `None` if it is not one of this examination.
    pub(super) fn read(bytes: &[u8], token: &ProbeToken) -> Option<ProbeDatagram> {
        let header: &[u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
        if &header[..8] != MAGIC || &header[12..28] != token {
            return None;
        }
        let kind = match header[8] {
            1 => ProbeKind::Ask,
            2 => ProbeKind::Answer,
            3 => ProbeKind::Fill,
            _ => return None,
        };
        let long = |at: usize| number(&header[at..at + 8]);
        let mut ip = [0; 16];
        ip.copy_from_slice(&header[56..72]);
        Some(ProbeDatagram {
            kind,
            token: *token,
            ip_size: number(&header[28..32]) as u32,
            asked_ns: long(32),
            arrived_ns: long(40),
            answered_ns: long(48),
            seen: SocketAddr::new(
                Ipv6Addr::from(ip).to_canonical(),
                number(&header[72..74]) as u16,
            ),
        })
    }
}

/// A number in network order.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

/// Bytes that IP and UDP put before the data.
pub(super) const fn overhead(address: &SocketAddr) -> usize {
    match address {
        SocketAddr::V4(_) => 20 + 8,
        SocketAddr::V6(_) => 40 + 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = ProbeKind> {
        prop_oneof![
            Just(ProbeKind::Ask),
            Just(ProbeKind::Answer),
            Just(ProbeKind::Fill)
        ]
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            kind in kinds(), token: ProbeToken, ip_size: u32, stamps: [u64; 3], v6: bool, ip: [u8; 16], port: u16,
            filling in 0usize..200,
        ) {
            let four = IpAddr::from([ip[0], ip[1], ip[2], ip[3]]);
            let ip = if v6 { IpAddr::from(ip).to_canonical() } else { four };
            let datagram = ProbeDatagram {
                kind, token, ip_size, asked_ns: stamps[0], arrived_ns: stamps[1], answered_ns: stamps[2],
                seen: SocketAddr::new(ip, port),
            };
            let mut bytes = vec![0xAA; HEADER + filling];
            datagram.write(&mut bytes);
            prop_assert_eq!(ProbeDatagram::read(&bytes, &token), Some(datagram));
            let mut other = token;
            other[usize::from(port) % 16] ^= 1;
            prop_assert_eq!(ProbeDatagram::read(&bytes, &other), None);
        }

        #[test]
        fn strangers_are_not_understood(bytes in proptest::collection::vec(any::<u8>(), 0..200), token: ProbeToken) {
            // Random bytes begin with our eight once in 2^64 cases.
            prop_assert_eq!(ProbeDatagram::read(&bytes, &token), None);
        }

        #[test]
        fn a_cut_datagram_is_not_read(token: ProbeToken, length in 0usize..HEADER) {
            let datagram = ProbeDatagram {
                kind: ProbeKind::Ask, token, ip_size: 108, asked_ns: 1, arrived_ns: 2, answered_ns: 3,
                seen: SocketAddr::from(([192, 0, 2, 1], 5000)),
            };
            let mut bytes = [0; HEADER];
            datagram.write(&mut bytes);
            prop_assert_eq!(ProbeDatagram::read(&bytes[..length], &token), None);
        }
    }
}
