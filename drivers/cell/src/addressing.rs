//! The plan of addresses and ports, by which hosts find each other and the flow of a packet is known anywhere.

use std::net::Ipv4Addr;

/// Datagrams to this port ("discard") only warm up the path before a run and are never delivered.
pub const WARM_UP_PORT: u16 = 9;
/// The server of flow k listens on port `FLOW_PORTS + k`; its peer may use any ephemeral port.
pub const FLOW_PORTS: u16 = 20_000;
/// Maximum flow number.
const MAX_FLOWS: u16 = 10_000;

/// Maximum number of hosts of a run.
pub const MAX_HOSTS: usize = 64;

/// Protocol numbers of IP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Address of the host with this index.
pub const fn address(host: u16) -> Ipv4Addr {
    let [high, low] = (host + 1).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// Index of the host with this address, if it is a host of the run.
#[inline]
pub const fn host_of(address: [u8; 4]) -> Option<u16> {
    match address {
        [10, 77, high, low] => u16::from_be_bytes([high, low]).checked_sub(1),
        _ => None,
    }
}

/// The Ethernet header of an IPv4 packet from one host to another.
pub const fn ethernet(from: u16, to: u16) -> [u8; 14] {
    let (a, b) = (mac(to, false), mac(from, false));
    [
        a[0], a[1], a[2], a[3], a[4], a[5], b[0], b[1], b[2], b[3], b[4], b[5], 0x08, 0x00,
    ]
}

/// Locally administered Ethernet address of one end of a host's wire.
pub const fn mac(host: u16, outside: bool) -> [u8; 6] {
    let [high, low] = (host + 1).to_be_bytes();
    [0x02, 0, 0x77, outside as u8, high, low]
}

/// The flow of an IP packet, by its ports; 0 for packets of no flow.
#[inline]
pub fn flow_of(packet: &[u8]) -> u16 {
    let length = usize::from(packet.first().map_or(0, |first| first & 15)) * 4;
    if packet.len() < 20 || packet[0] >> 4 != 4 || length < 20 {
        return 0;
    }
    ports(packet, length).map_or(0, flow_between)
}

/// Source and destination port of an IPv4 packet whose header has `length` bytes.
#[inline]
pub fn ports(ip: &[u8], length: usize) -> Option<[u8; 4]> {
    // Only the first fragment has ports; the hosts never fragment.
    let first = u16::from_be_bytes([ip[6] & 0x1f, ip[7]]) == 0;
    let known = first && matches!(ip[9], TCP | UDP);
    ip.get(length..)?.first_chunk().copied().filter(|_| known)
}

/// Protocol, ports (0 if absent) and bytes behind the headers of an IPv4 packet.
pub fn contents(ip: &[u8]) -> (u8, [u16; 2], u64) {
    if ip.len() < 20 {
        return (0, [0, 0], 0);
    }
    let length = usize::from(ip[0] & 15) * 4;
    let size = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let inner = ip.get(length..size.min(ip.len())).unwrap_or_default();
    let ports = ports(ip, length);
    let header = match (ip[9], ports) {
        (TCP, Some(_)) => inner
            .get(12)
            .map_or(20, |offset| usize::from(offset >> 4) * 4),
        (UDP, Some(_)) => 8,
        _ => 0,
    };
    let payload = inner.len().saturating_sub(header) as u64;
    let ports = ports.unwrap_or_default();
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    (ip[9], [port(0), port(2)], payload)
}

/// The flow whose server port is one of these two.
#[inline]
pub fn flow_between(ports: [u8; 4]) -> u16 {
    let flow = |port: [u8; 2]| {
        u16::from_be_bytes(port)
            .checked_sub(FLOW_PORTS)
            .filter(|k| (1..=MAX_FLOWS).contains(k))
    };
    flow([ports[0], ports[1]])
        .or_else(|| flow([ports[2], ports[3]]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_by_their_addresses() {
        for host in [0, 1, 63, 254, 255, 1000] {
            assert_eq!(host_of(address(host).octets()), Some(host));
        }
        assert_eq!(address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(host_of([10, 77, 0, 0]), None);
        assert_eq!(host_of([10, 78, 0, 1]), None);
    }
}
