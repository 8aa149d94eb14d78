//! Sizes: the largest inner packet, and the largest datagram that the path carries.
//!
//! The path's limit is found as in RFC 8899 (packetization layer path MTU discovery for datagrams): padded clock
//! messages of the sizes that occur in practice are sent, largest first, none of which may be fragmented, and the other
//! end reports which arrived.

use crate::wire::OVERHEAD;
use std::net::IpAddr;

/// Bytes of UDP's header.
const UDP: u32 = 8;

/// Sizes of IP packets that real paths have as their limit: jumbo frames; Ethernet; PPPoE; tunnels
/// of many kinds; the smallest that IPv6 allows (RFC 8200, section 5).
const SIZES: [u32; 12] = [
    9000, 4352, 1500, 1492, 1480, 1460, 1440, 1420, 1400, 1380, 1320, MIN_MTU,
];
/// Every usable path carries this size unfragmented.
pub const MIN_MTU: u32 = 1280;
/// Attempts per size: with three, one size in a million is missed at 1 % loss.
const TRIES: u32 = 3;

/// Bytes that the tunnel adds to a packet sent to this address: IP, UDP, tunnel header and tag.
pub const fn overhead(to: IpAddr) -> u32 {
    let ip = match to {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    };
    ip + UDP + OVERHEAD as u32
}

/// Finds the largest datagram that reaches the other end.
#[derive(Clone, Debug)]
pub struct MtuSearch {
    /// Headers of IP and UDP.
    around: u32,
    /// Largest IP packet that the local interface can send.
    limit: u32,
    /// Next index in the list, and how often that size was tried.
    at: usize,
    tries: u32,
    /// Confirmed by the other end.
    found: u32,
}

impl MtuSearch {
    /// A search towards `to`, for an interface that sends IP packets of at most `limit` bytes.
    pub const fn new(to: IpAddr, limit: u32) -> Self {
        MtuSearch {
            around: overhead(to) - OVERHEAD as u32,
            limit,
            at: 0,
            tries: 0,
            found: 0,
        }
    }

    /// The size of the next datagram to try, as UDP's payload.
    pub fn next_size(&mut self) -> Option<usize> {
        loop {
            let size = *SIZES.get(self.at)?;
            if size <= self.found {
                return None;
            }
            if size > self.limit || self.tries == TRIES {
                self.at += 1;
                self.tries = 0;
                continue;
            }
            self.tries += 1;
            return Some((size - self.around) as usize);
        }
    }

    /// The other end has seen a datagram with this much payload. Sizes larger than the interface can send are ignored.
    pub fn confirm(&mut self, payload: u32) {
        let size = payload.saturating_add(self.around);
        if size <= self.limit {
            self.found = self.found.max(size);
        }
    }

    /// True if everything that could be tried has been tried.
    pub fn is_over(&self) -> bool {
        SIZES[self.at..]
            .iter()
            .all(|&size| size <= self.found || size > self.limit)
    }

    /// The largest IP packet size known to arrive, if any.
    pub fn found(&self) -> Option<u32> {
        SIZES.iter().copied().find(|&size| size <= self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    /// Sizes tried, and the result, on a path that carries IP packets up to `path`; the first `lost` tries of each size
    /// get lost.
    fn search(to: IpAddr, interface: u32, path: u32, lost: u32) -> (Vec<u32>, Option<u32>) {
        let around = overhead(to) - OVERHEAD as u32;
        let mut search = MtuSearch::new(to, interface);
        let mut tried = Vec::new();
        while let Some(payload) = search.next_size() {
            let size = payload as u32 + around;
            tried.push(size);
            let again = tried.iter().filter(|&&other| other == size).count() as u32;
            if size <= path && again > lost {
                search.confirm(payload as u32);
            }
        }
        assert!(search.is_over());
        (tried, search.found())
    }

    #[test]
    fn the_largest_size_that_passes_is_found() {
        for to in [V4, V6] {
            assert_eq!(search(to, 1500, 1500, 0), (vec![1500], Some(1500)));
            assert_eq!(search(to, 1500, 1499, 0).1, Some(1492));
            assert_eq!(search(to, 1500, 1400, 2).1, Some(1400));
            assert_eq!(search(to, 65_536, 1500, 0).1, Some(1500));
            assert_eq!(search(to, 1500, 1200, 0).1, None);
        }
        assert!(search(V4, 1420, 1420, 0).0.iter().all(|&size| size <= 1420));
    }

    #[test]
    fn more_than_was_sent_is_not_believed() {
        let mut search = MtuSearch::new(V4, 1500);
        search.next_size();
        search.confirm(u32::MAX);
        search.confirm(60_000);
        assert_eq!(search.found(), None);
        search.confirm(1472);
        assert_eq!(search.found(), Some(1500));
        assert_eq!(search.next_size(), None);
    }

    #[test]
    fn the_overhead_is_that_of_the_headers() {
        // 20 + 8 + 20 + 8 and 40 + 8 + 20 + 8.
        assert_eq!((overhead(V4), overhead(V6)), (56, 76));
    }
}
