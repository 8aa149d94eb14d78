//! Frames for tests.

use crate::frame::{ETHERNET, TCP};
use narrows_cell::addressing;

/// An Ethernet frame with an IPv4 packet, for tests.
pub fn sample(size: u16, protocol: u8, from: u16, to: u16, tos: u8) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + usize::from(size)];
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[ETHERNET..];
    ip[0] = 0x45;
    ip[1] = tos;
    ip[2..4].copy_from_slice(&size.to_be_bytes());
    ip[8] = 64;
    ip[9] = protocol;
    ip[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
    ip[20..22].copy_from_slice(&from.to_be_bytes());
    ip[22..24].copy_from_slice(&to.to_be_bytes());
    if protocol == TCP {
        ip[32] = 5 << 4;
    }
    let sum = sum_of(&ip[..20]);
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
    frame
}

/// The same frame to another host.
pub fn readdress(mut frame: Vec<u8>, from: u16, to: u16) -> Vec<u8> {
    let ip = &mut frame[ETHERNET..];
    ip[12..16].copy_from_slice(&addressing::address(from).octets());
    ip[16..20].copy_from_slice(&addressing::address(to).octets());
    ip[10..12].fill(0);
    let sum = sum_of(&ip[..20]);
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
    frame
}

/// One's complement sum: all ones if the checksum included is correct.
pub(crate) fn sum_of(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
