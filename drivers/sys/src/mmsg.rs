//! Many messages per system call: sendmmsg(2) and recvmmsg(2).

use super::check;
use super::message::{Control, NO_VECTOR, came_with, no_message};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Whether an interface takes nothing right now, and may do so in a moment.
pub fn is_busy(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)
    )
}

/// Arrays for sending many messages at once, reused for every call.
pub struct SendBatch {
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers inside are overwritten before each use and mean nothing in between.
unsafe impl Send for SendBatch {}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SendBatch")
    }
}

impl Default for SendBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl SendBatch {
    /// Largest number of messages per call.
    pub const CAPACITY: usize = 64;

    /// Empty arrays.
    pub fn new() -> Self {
        SendBatch {
            vectors: vec![NO_VECTOR; Self::CAPACITY].into(),
            messages: vec![no_message(); Self::CAPACITY].into(),
        }
    }

    /// Sends `payloads` (the first [`Self::CAPACITY`] of them) on a bound or connected socket;
    /// returns how many the system took.
    #[inline]
    pub fn send<'a>(
        &mut self,
        fd: BorrowedFd,
        payloads: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for payload in payloads.take(Self::CAPACITY) {
            self.vectors[count] = libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: payload.len(),
            };
            self.messages[count].msg_hdr.msg_iov = &raw mut self.vectors[count];
            self.messages[count].msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages were just filled with one vector each; the payloads
        // are borrowed for 'a, which outlives the call, and are only read.
        let sent = check(unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        })?;
        Ok(sent as usize)
    }
}

/// One datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Payload.
    pub bytes: &'a [u8],
    /// When the kernel received it (`CLOCK_REALTIME`), if it says so.
    pub stamp_ns: Option<u64>,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
}

/// Space for receiving many datagrams at once, with stamps and ECN bits.
pub struct ReceiveBatch {
    payloads: Box<[[u8; Self::SIZE]]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    dropped: u32,
}

// SAFETY: the pointers inside are overwritten before each use and mean nothing in between.
unsafe impl Send for ReceiveBatch {}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReceiveBatch")
    }
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveBatch {
    /// Largest number of datagrams per call.
    pub const CAPACITY: usize = 64;
    /// Largest payload: that of a jumbo frame.
    pub const SIZE: usize = 9216;

    /// Empty buffers.
    pub fn new() -> Self {
        ReceiveBatch {
            payloads: vec![[0; Self::SIZE]; Self::CAPACITY].into(),
            controls: vec![Control::EMPTY; Self::CAPACITY].into(),
            vectors: vec![NO_VECTOR; Self::CAPACITY].into(),
            messages: vec![no_message(); Self::CAPACITY].into(),
            dropped: 0,
        }
    }

    /// Receives what is there, without waiting, and shows each datagram to `visit`; returns how
    /// many there were.
    #[inline]
    pub fn receive(
        &mut self,
        fd: BorrowedFd,
        mut visit: impl FnMut(Datagram),
    ) -> io::Result<usize> {
        for index in 0..Self::CAPACITY {
            self.vectors[index] = libc::iovec {
                iov_base: self.payloads[index].as_mut_ptr().cast(),
                iov_len: Self::SIZE,
            };
            let header = &mut self.messages[index].msg_hdr;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: every message was just pointed to buffers of this struct with their true sizes.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                Self::CAPACITY as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let received = match check(received) {
            Ok(received) => received as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        };
        for index in 0..received {
            let length = (self.messages[index].msg_len as usize).min(Self::SIZE);
            // SAFETY: the kernel has filled the control data of this message.
            let came = unsafe { came_with(&self.messages[index].msg_hdr) };
            if let Some(dropped) = came.dropped {
                self.dropped = dropped;
            }
            visit(Datagram {
                bytes: &self.payloads[index][..length],
                stamp_ns: came.stamp_ns,
                ecn: came.tos & 3,
            });
        }
        Ok(received)
    }

    /// The same as [`ReceiveBatch::dropped`], and forgets it, for a batch that serves many sockets.
    pub fn take_dropped(&mut self) -> u32 {
        std::mem::take(&mut self.dropped)
    }

    /// Datagrams that the socket has dropped because its buffer was full, as far as reported with
    /// the datagrams received (needs `SO_RXQ_OVFL`).
    pub fn dropped(&self) -> u32 {
        self.dropped
    }
}
