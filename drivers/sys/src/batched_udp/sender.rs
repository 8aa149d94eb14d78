//! Sends waiting datagrams in as few messages as possible.

use crate::mmsg::{Message, SendBatch};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Maximum number of datagrams in one message, which all kernels with this feature allow (linux/udp.h).
const MAX_SEGMENTS: usize = 64;
/// Maximum payload of one message: that of the longest IPv6 packet, which is shorter than that of IPv4.
const MAX_PAYLOAD: usize = 65_535 - 48;
/// Number of consecutive refusals after which groups are no longer used. Adapters may change, so a single one is not
/// conclusive.
const MAX_REFUSALS: u32 = 8;

/// Datagrams that wait to be sent together.
///
/// Adjacent datagrams of one size, address and traffic class form one message, which the kernel or the adapter splits
/// again (`UDP_SEGMENT`, udp(7)). The path carries the same consecutive datagrams as without groups, since all of them
/// are waiting already, at a fraction of the cost.
pub struct UdpSender {
    /// Payloads, consecutive, so that a group is contiguous.
    bytes: Box<[u8]>,
    datagrams: Vec<QueuedDatagram>,
    /// Number of datagrams that have been sent.
    sent: usize,
    /// Datagrams before this index are sent singly, since the kernel has refused them as a group.
    alone: usize,
    /// Consecutive refused groups.
    refusals: u32,
    /// Number of datagrams in each message.
    groups: Vec<usize>,
    batch: SendBatch,
}

/// A datagram that waits.
#[derive(Clone, Copy, Debug)]
struct QueuedDatagram {
    /// Start of its payload.
    from: usize,
    length: usize,
    to: SocketAddr,
    tos: u8,
}

impl Default for UdpSender {
    /// An empty sender.
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
    /// Maximum payload in bytes: that of a jumbo frame.
    pub const SIZE: usize = 9216;

    /// True if no datagram can be added before the rest has been sent.
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

    /// The first `length` bytes of the next datagram's payload, to be written; `None` if it is too long or no datagram
    /// can be added. It counts only when [`UdpSender::add`] follows.
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

    /// Number of datagrams from `first` that form one message: all have the size of the first, except the last, which
    /// may be shorter.
    #[inline]
    fn group(&self, first: usize) -> usize {
        if first < self.alone || self.refusals >= MAX_REFUSALS {
            return 1;
        }
        let one = self.datagrams[first];
        let (mut count, mut bytes) = (1, one.length);
        for next in &self.datagrams[first + 1..] {
            bytes += next.length;
            // An empty datagram would vanish in a group.
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

    /// Divides waiting datagrams into messages.
    fn find_groups(&mut self) {
        self.groups.clear();
        let mut next = self.sent;
        while next < self.datagrams.len() {
            let group = self.group(next);
            self.groups.push(group);
            next += group;
        }
    }

    /// Sends waiting datagrams that the socket accepts now; returns their number.
    ///
    /// # Errors
    /// The kernel's error for the first waiting datagram; see [`UdpSender::skip`].
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
                // No checksum offload, no such option, or too large for the interface: send one by one.
                Err(error) if self.groups[0] > 1 && is_about_groups(&error) => {
                    self.refusals += 1;
                    self.alone = self.sent + self.groups[0];
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Drops the first waiting datagram; the others of its group are sent singly.
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

/// True for errors of kernels about a group that they or the adapter cannot split, although each of its datagrams may
/// be sendable.
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

    /// The groups formed by datagrams of these lengths and classes.
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
