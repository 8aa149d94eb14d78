//! The traffic class of packets (DSCP and ECN), which the tunnel copies to the outer header and back.
//!
//! A datagram has the traffic class of the packet that it carries, so that the path treats it as it would treat the
//! packet. Changes made by the path are written back into the packet: congestion marks by the rules of RFC 6040
//! (section 4.2), the DSCP as it arrived (the uniform model of RFC 2983).

/// The treatment of a packet that leaves the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decapsulation {
    /// Deliver it.
    Deliver,
    /// Its sender does not support ECN and the path marked it instead of dropping it: drop it.
    Drop,
    /// Not an IP packet.
    NotIp,
}

const ECT0: u8 = 2;
const ECT1: u8 = 1;
const CE: u8 = 3;

/// The traffic class of an IPv4 or IPv6 packet.
#[inline]
pub fn traffic_class(packet: &[u8]) -> Option<u8> {
    match (packet.first()? >> 4, packet.len()) {
        (4, 20..) => Some(packet[1]),
        (6, 40..) => Some((packet[0] << 4) | (packet[1] >> 4)),
        _ => None,
    }
}

/// Writes the changes to the outer header back into the packet.
#[inline]
pub fn decapsulate(packet: &mut [u8], outer: u8) -> Decapsulation {
    let Some(inner) = traffic_class(packet) else {
        return Decapsulation::NotIp;
    };
    if inner == outer {
        return Decapsulation::Deliver;
    }
    let ecn = match (inner & 3, outer & 3) {
        (0, CE) => return Decapsulation::Drop,
        (0, _) => 0,
        (CE, _) | (_, CE) => CE,
        (ECT0, ECT1) => ECT1,
        (inner, _) => inner,
    };
    set_tos(packet, (outer & !3) | ecn);
    Decapsulation::Deliver
}

/// [`traffic_class`] has recognised the packet.
fn set_tos(packet: &mut [u8], tos: u8) {
    if packet[0] >> 4 == 6 {
        packet[0] = 0x60 | (tos >> 4);
        packet[1] = (tos << 4) | (packet[1] & 0x0f);
        return;
    }
    // RFC 1624, equation 3: the checksum changes with the 16-bit word that holds the field.
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] = tos;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sum over a header with a correct checksum is all ones (RFC 1071).
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks_exact(2);
        let mut sum: u32 = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn v4(tos: u8, rest: [u8; 18]) -> Vec<u8> {
        let mut packet = vec![0x45, tos];
        packet.extend(rest);
        packet[10..12].fill(0);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn v6(tos: u8) -> Vec<u8> {
        let mut packet = vec![0x60 | (tos >> 4), (tos << 4) | 0x0a, 0xbc, 0xde];
        packet.resize(48, 7);
        packet
    }

    /// RFC 6040, figure 4, without the cases that only raise alarms: the forwarded field for each inner (rows: not-ECT,
    /// ECT(1), ECT(0), CE) and outer field (columns: the same).
    const TABLE: [[Option<u8>; 4]; 4] = [
        [Some(0), Some(0), Some(0), None],
        [Some(1), Some(1), Some(1), Some(3)],
        [Some(2), Some(1), Some(2), Some(3)],
        [Some(3), Some(3), Some(3), Some(3)],
    ];

    proptest! {
        #[test]
        fn marks_go_on_as_the_standard_says(inner: u8, outer: u8, rest: [u8; 18]) {
            let expected = TABLE[usize::from(inner & 3)][usize::from(outer & 3)];
            for mut packet in [v4(inner, rest), v6(inner)] {
                prop_assert_eq!(traffic_class(&packet), Some(inner));
                let before = packet.clone();
                match (decapsulate(&mut packet, outer), expected) {
                    (Decapsulation::Drop, None) => prop_assert_eq!(packet, before),
                    (Decapsulation::Deliver, Some(ecn)) => {
                        prop_assert_eq!(traffic_class(&packet), Some((outer & !3) | ecn));
                        if packet[0] >> 4 == 4 {
                            prop_assert_eq!(sum(&packet), 0xffff);
                            prop_assert_eq!(&packet[2..10], &before[2..10]);
                            prop_assert_eq!(&packet[12..], &before[12..]);
                        } else {
                            prop_assert_eq!(packet[1] & 0x0f, 0x0a);
                            prop_assert_eq!(&packet[2..], &before[2..]);
                        }
                    }
                    (passage, expected) => prop_assert!(false, "{:?} for {:?}", passage, expected),
                }
            }
        }

        #[test]
        fn any_bytes_are_looked_at(mut bytes in prop::collection::vec(any::<u8>(), 0..60), outer: u8) {
            let is_ip = traffic_class(&bytes).is_some();
            let length = bytes.len();
            prop_assert_eq!(decapsulate(&mut bytes, outer) == Decapsulation::NotIp, !is_ip);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}
