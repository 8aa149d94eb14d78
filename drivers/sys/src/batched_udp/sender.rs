//! Sending: datagrams that wait, and how few messages they need.

use crate::mmsg::{Message, SendBatch};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Most datagrams in one message: what every kernel that can do it at all allows (linux/udp.h).
const MAX_SEGMENTS: usize = 64;
/// Most bytes of payload in one message: that of the longest IPv6 packet, which is the shorter one.
const MAX_PAYLOAD: usize = 65_535 - 48;
/// After so many refusals in a row groups are given up. Cards come and go, so one says little.
const MAX_REFUSALS: u32 = 8;

/// Datagrams that wait to be sent together.
///
/// Neighbours of one size, address and traffic class make one message, which the kernel or the card
/// takes apart again (`UDP_SEGMENT`, udp(7)). The path gets the same datagrams one behind the other as
/// without, since all of them are there already, at a fraction of the price.
pub struct UdpSender {
    /// Payloads, one behind the other, so that a group is one piece of memory.
    bytes: Box<[u8]>,
    datagrams: Vec<QueuedDatagram>,
    /// Datagrams that are gone.
    sent: usize,
    /// Datagrams before this one go alone, since the kernel has refused to take them as a group.
    alone: usize,
    /// Groups that were refused since the last one that was not.
    refusals: u32,
    /// Number of datagrams in each message.
    groups: Vec<usize>,
    batch: SendBatch,
}

/// A datagram that waits.
#[derive(Clone, Copy, Debug)]
struct QueuedDatagram {
    /// Place of its payload.
    from: usize,
    length: usize,
    to: SocketAddr,
    tos: u8,
}

impl Default for UdpSender {
    /// An empty one.
    fn default() -> Self {
        UdpSender {
            bytes: vec![0; Self::CAPACITY * Self::SIZE].into(),
            datagrams: Vec::with_capacity(Self::CAPACITY),
            sent: 0,
            alone: 0,
            refusals: 0,
            groups: Vec::with_capacity(Self::CAPACITY),
            batch: SendBatch::default(),
        }
    }
}

impl UdpSender {
    /// Datagrams per system call.
    pub const CAPACITY: usize = SendBatch::CAPACITY;
    /// Largest payload in bytes: that of a jumbo frame.
    pub const SIZE: usize = 9216;

    /// True if nothing more can be added before the rest has been sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.datagrams.len() == Self::CAPACITY
    }

    /// True if everything has been sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sent == self.datagrams.len()
    }

    /// Where the payload of the next datagram begins.
    #[inline]
    fn end(&self) -> usize {
        self.datagrams
            .last()
            .map_or(0, |last| last.from + last.length)
    }

    /// The first `length` bytes of the next datagram's payload, to be written; `None` when it is too long or
    /// nothing can be added. It counts only when [`UdpSender::add`] follows.
    #[inline]
    pub fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.is_full() || length > Self::SIZE {
            return None;
        }
        let from = self.end();
        self.bytes.get_mut(from..from + length)
    }

    /// Adds the datagram whose payload was just written.
    #[inline]
    pub fn add(&mut self, length: usize, to: SocketAddr, tos: u8) {
        if self.is_full() || length > Self::SIZE {
            return;
        }
        let from = self.end();
        self.datagrams.push(QueuedDatagram {
            from,
            length,
            to,
            tos,
        });
    }

    /// Number of datagrams from `first` on that make one message: all have the size of the first, but for
    /// the last, which may be shorter.
    #[inline]
    fn group(&self, first: usize) -> usize {
        if first < self.alone || self.refusals >= MAX_REFUSALS {
            return 1;
        }
        let one = self.datagrams[first];
        let (mut count, mut bytes) = (1, one.length);
        for next in &self.datagrams[first + 1..] {
            bytes += next.length;
            // An empty one would vanish in a group.
            let fits = (1..=one.length).contains(&next.length);
            let fits = fits && bytes <= MAX_PAYLOAD && count < MAX_SEGMENTS;
            if !fits || next.tos != one.tos || next.to != one.to {
                break;
            }
            count += 1;
            if next.length < one.length {
                break;
            }
        }
        count
    }

    /// Divides what waits into messages.
    fn find_groups(&mut self) {
        self.groups.clear();
        let mut next = self.sent;
        while next < self.datagrams.len() {
            let group = self.group(next);
            self.groups.push(group);
            next += group;
        }
    }

    /// Sends what waits, as far as the socket takes it now; returns how many datagrams it took.
    ///
    /// # Errors
    /// The kernel's answer to the first datagram that waits; see [`UdpSender::skip`].
    pub fn send(&mut self, socket: BorrowedFd) -> io::Result<usize> {
        loop {
            self.find_groups();
            let (bytes, mut datagrams) = (&self.bytes, &self.datagrams[self.sent..]);
            let messages = self.groups.iter().map(|&group| {
                let (these, rest) = datagrams.split_at(group);
                datagrams = rest;
                let (first, last) = (these[0], these[group - 1]);
                Message {
                    bytes: &bytes[first.from..last.from + last.length],
                    to: Some(first.to),
                    tos: first.tos,
                    segment: if group > 1 { first.length as u16 } else { 0 },
                }
            });
            match self.batch.send(socket, messages) {
                Ok(taken) => {
                    let groups = &self.groups[..taken];
                    if groups.iter().any(|&group| group > 1) {
                        self.refusals = 0;
                    }
                    let datagrams = groups.iter().sum();
                    self.forget(datagrams);
                    return Ok(datagrams);
                }
                // No checksums by the card, no such option, or too large for the interface: then one by one.
                Err(error) if self.groups[0] > 1 && is_about_groups(&error) => {
                    self.refusals += 1;
                    self.alone = self.sent + self.groups[0];
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives up the first datagram that waits; what was to go with it goes alone.
    pub fn skip(&mut self) {
        self.alone = self.sent + self.groups[0];
        self.forget(1);
    }

    fn forget(&mut self, datagrams: usize) {
        self.sent = (self.sent + datagrams).min(self.datagrams.len());
        if self.is_empty() {
            self.datagrams.clear();
            self.sent = 0;
            self.alone = 0;
        }
    }
}

/// True for the answers of kernels to a group that they or the card cannot take apart, while each of its datagrams may
/// well be sent.
fn is_about_groups(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: &str = "127.0.0.1:9";

    /// The groups that datagrams of these lengths and classes make.
    fn groups(outbox: &mut UdpSender, datagrams: &[(usize, u8)]) -> Vec<usize> {
        for &(length, tos) in datagrams {
            outbox.room(length).unwrap().fill(1);
            outbox.add(length, TO.parse().unwrap(), tos);
        }
        outbox.find_groups();
        let groups = outbox.groups.clone();
        assert_eq!(groups.iter().sum::<usize>(), outbox.datagrams.len());
        groups
    }

    #[test]
    fn equal_neighbours_make_a_group_that_a_shorter_one_ends() {
        let new = UdpSender::default;
        let mixed = [(1000, 0), (1000, 0), (70, 0), (70, 0), (70, 2), (80, 2)];
        assert_eq!(groups(&mut new(), &mixed), [3, 1, 1, 1]);
        assert_eq!(groups(&mut new(), &[(1472, 0); 64]), [44, 20]);
        assert_eq!(groups(&mut new(), &[(100, 0); 64]), [64]);
        assert_eq!(groups(&mut new(), &[(9216, 0); 8]), [7, 1]);
        let mut outbox = new();
        outbox.room(10).unwrap().fill(1);
        outbox.add(10, "127.0.0.1:8".parse().unwrap(), 0);
        assert_eq!(groups(&mut outbox, &[(10, 0)]), [1, 1]);
    }

    #[test]
    fn what_was_refused_goes_alone_and_after_that_groups_are_tried_again() {
        let mut outbox = UdpSender::default();
        assert_eq!(groups(&mut outbox, &[(100, 0); 5]), [5]);
        outbox.skip();
        outbox.find_groups();
        assert_eq!(
            (outbox.groups.as_slice(), outbox.is_empty()),
            ([1; 4].as_slice(), false)
        );
        outbox.forget(4);
        assert!(outbox.is_empty());
        assert_eq!(groups(&mut outbox, &[(100, 0); 5]), [5]);
        outbox.forget(5);
        outbox.refusals = MAX_REFUSALS;
        assert_eq!(groups(&mut outbox, &[(100, 0); 2]), [1, 1]);
    }

    #[test]
    fn a_full_outbox_takes_no_more() {
        let mut outbox = UdpSender::default();
        assert!(outbox.room(UdpSender::SIZE + 1).is_none());
        groups(&mut outbox, &[(UdpSender::SIZE, 0); UdpSender::CAPACITY]);
        assert!(outbox.is_full() && outbox.room(1).is_none());
    }
}
