//! Receiving: datagrams that arrived together, and what came with them.

use super::{Control, NO_ADDRESS, NO_VECTOR, RawAddress, UdpBatchSocket, came_with, no_message};
use crate::check;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

/// Messages per system call.
const MESSAGES: usize = 16;
/// Bytes of the longest message: a group of datagrams is never longer than an IP packet.
const SIZE: usize = 1 << 16;

/// What came with a datagram.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagram {
    /// Who sent it.
    pub from: SocketAddr,
    /// Bytes of its payload.
    pub length: usize,
    /// When the kernel received it (`CLOCK_REALTIME`), if it says so.
    pub stamp_ns: Option<u64>,
    /// Its traffic class: DSCP and ECN.
    pub tos: u8,
}

/// Datagrams that arrived together.
///
/// The kernel hands over as one message what reached it as one: datagrams that the sender has grouped
/// ([`UdpSender`](super::UdpSender)) and no card has taken apart, and those of one address, size and traffic class
/// that a card delivered in one go (`UDP_GRO`, udp(7)). They have one stamp.
pub struct UdpReceiver {
    bytes: Box<[u8]>,
    datagrams: Vec<(usize, ReceivedDatagram)>,
    addresses: Box<[RawAddress]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    dropped: u32,
}

// SAFETY: the pointers inside are overwritten before each use and mean nothing in between.
unsafe impl Send for UdpReceiver {}

impl std::fmt::Debug for UdpReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inbox")
    }
}

impl Default for UdpReceiver {
    fn default() -> Self {
        Self::new()
    }
}

impl UdpReceiver {
    /// An empty one.
    pub fn new() -> Self {
        UdpReceiver {
            bytes: vec![0; MESSAGES * SIZE].into(),
            // More than most kernels put into these messages; if not, it grows once.
            datagrams: Vec::with_capacity(MESSAGES * 64),
            addresses: vec![NO_ADDRESS; MESSAGES].into(),
            controls: vec![Control::EMPTY; MESSAGES].into(),
            vectors: vec![NO_VECTOR; MESSAGES].into(),
            messages: vec![no_message(); MESSAGES].into(),
            dropped: 0,
        }
    }

    /// Receives what is there, without waiting, in place of what was received before; returns how many datagrams
    /// there are. What is of no kind of address that we know is left out; what was longer than any datagram is cut.
    ///
    /// # Errors
    /// What the kernel said, apart from there being nothing.
    pub fn receive(&mut self, socket: &UdpBatchSocket) -> io::Result<usize> {
        self.datagrams.clear();
        for (index, bytes) in self.bytes.chunks_exact_mut(SIZE).enumerate() {
            self.vectors[index] = libc::iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: SIZE,
            };
            self.addresses[index] = NO_ADDRESS;
            let header = &mut self.messages[index].msg_hdr;
            header.msg_name = (&raw mut self.addresses[index]).cast();
            header.msg_namelen = size_of::<RawAddress>() as libc::socklen_t;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: every message was just pointed to buffers of this struct with their true sizes.
        let received = check(unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.messages.as_mut_ptr(),
                MESSAGES as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        });
        let received = match received {
            Ok(received) => received as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for index in 0..received {
            self.take_apart(index);
        }
        Ok(self.datagrams.len())
    }

    fn take_apart(&mut self, index: usize) {
        let message = &self.messages[index];
        let bytes = (message.msg_len as usize).min(SIZE);
        // SAFETY: the kernel has filled the control data of this message.
        let came = unsafe { came_with(&message.msg_hdr) };
        if let Some(dropped) = came.dropped {
            self.dropped = dropped;
        }
        let each = came.each.unwrap_or(bytes);
        let Some(from) = self.addresses[index].get() else {
            return;
        };
        // What was longer than any datagram of ours came without its end. It is handed over as it is, to be refused
        // and counted with all else that is not authentic.
        let mut at = 0;
        // An empty datagram is one, too.
        while at < bytes || (bytes == 0 && at == 0) {
            let length = each.clamp(1, SIZE).min(bytes - at);
            let arrival = ReceivedDatagram {
                from,
                length,
                stamp_ns: came.stamp_ns,
                tos: came.tos,
            };
            self.datagrams.push((index * SIZE + at, arrival));
            at += length.max(1);
        }
    }

    /// Datagrams that [`UdpReceiver::receive`] has counted.
    #[inline]
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether the last [`UdpReceiver::receive`] found nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// What came with datagram `index`.
    #[inline]
    pub fn arrival(&self, index: usize) -> ReceivedDatagram {
        self.datagrams[index].1
    }

    /// The payload of datagram `index`.
    #[inline]
    pub fn payload(&self, index: usize) -> &[u8] {
        let (from, ReceivedDatagram { length, .. }) = self.datagrams[index];
        &self.bytes[from..from + length]
    }

    /// The same, to be changed in place.
    #[inline]
    pub fn payload_mut(&mut self, index: usize) -> &mut [u8] {
        let (from, ReceivedDatagram { length, .. }) = self.datagrams[index];
        &mut self.bytes[from..from + length]
    }

    /// Messages that the socket's buffer had no room for, as far as reported. Each was a datagram or a group
    /// of them.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }
}
