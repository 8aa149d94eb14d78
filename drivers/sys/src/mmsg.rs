//! Many messages per system call: sendmmsg(2).

use super::check;
use rustix::net::SocketAddrAny;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

/// True if an interface accepts no data now, but may shortly.
pub fn is_busy(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)
    )
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Payload, or the frame.
    pub bytes: &'a [u8],
    /// Destination; `None` on a socket that is connected, or bound to an interface.
    pub to: Option<SocketAddr>,
    /// DSCP and ECN; 0 leaves those of the socket.
    pub tos: u8,
    /// Bytes of each of the datagrams into which the kernel splits it (`UDP_SEGMENT`, udp(7)); 0 for a single datagram.
    pub segment: u16,
}

impl<'a> From<&'a [u8]> for Message<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        Message {
            bytes,
            to: None,
            tos: 0,
            segment: 0,
        }
    }
}

/// Arrays for sending many messages at once, reused for every call.
pub struct SendBatch {
    addresses: Box<[SocketAddrAny]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers inside are overwritten before each use and are not used in between.
unsafe impl Send for SendBatch {}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SendBatch")
    }
}

impl Default for SendBatch {
    /// Empty arrays.
    fn default() -> Self {
        let nowhere = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        SendBatch {
            addresses: vec![nowhere.into(); Self::CAPACITY].into(),
            controls: vec![Control::EMPTY; Self::CAPACITY].into(),
            vectors: vec![NO_VECTOR; Self::CAPACITY].into(),
            messages: vec![no_message(); Self::CAPACITY].into(),
        }
    }
}

impl SendBatch {
    /// Maximum number of messages per call.
    pub const CAPACITY: usize = 64;

    /// Sends `messages` (the first [`Self::CAPACITY`] of them) without waiting; returns how many the system accepted.
    #[inline]
    pub fn send<'a>(
        &mut self,
        fd: BorrowedFd,
        messages: impl Iterator<Item = Message<'a>>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for message in messages.take(Self::CAPACITY) {
            self.set(count, &message);
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages were just filled with pointers to payloads, which are
        // borrowed for 'a, outlive the call and are only read, and into boxes of this struct.
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

    #[inline]
    fn set(&mut self, index: usize, message: &Message) {
        self.vectors[index] = libc::iovec {
            iov_base: message.bytes.as_ptr().cast_mut().cast(),
            iov_len: message.bytes.len(),
        };
        let header = &mut self.messages[index].msg_hdr;
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        (header.msg_name, header.msg_namelen) = (std::ptr::null_mut(), 0);
        if let Some(to) = message.to {
            let address = &mut self.addresses[index];
            *address = to.into();
            header.msg_name = address.as_mut_ptr().cast();
            header.msg_namelen = address.addr_len();
        }
        let control = &mut self.controls[index];
        let mut used = 0;
        if message.tos != 0 {
            let (level, kind) = if message.to.is_none_or(|to| to.is_ipv4()) {
                (libc::IPPROTO_IP, libc::IP_TOS)
            } else {
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
            };
            used = control.push(used, level, kind, &i32::from(message.tos).to_ne_bytes());
        }
        if message.segment != 0 {
            let size = message.segment.to_ne_bytes();
            used = control.push(used, libc::SOL_UDP, libc::UDP_SEGMENT, &size);
        }
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = used as _;
    }
}

/// Control data, aligned as the headers in it need.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(super) struct Control(pub(super) [u8; 128]);

impl Control {
    pub(super) const EMPTY: Control = Control([0; 128]);

    /// Writes a header and its value behind `used` bytes; returns the new number of used bytes. The room suffices for
    /// all our messages.
    #[inline]
    #[allow(clippy::cast_ptr_alignment)] // `used` is a sum of multiples of the alignment
    fn push(&mut self, used: usize, level: libc::c_int, kind: libc::c_int, value: &[u8]) -> usize {
        let length = value.len() as libc::c_uint;
        // SAFETY: the macro computes a size from a size.
        let end = used + unsafe { libc::CMSG_SPACE(length) } as usize;
        let place = self.0[used..end].as_mut_ptr();
        // SAFETY: header and value are in the range that was just taken, which is aligned as its beginning.
        unsafe {
            let header = place.cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(length) as _;
            libc::CMSG_DATA(header).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        end
    }
}

/// No payload.
pub(super) const NO_VECTOR: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// An empty message.
pub(super) fn no_message() -> libc::mmsghdr {
    // SAFETY: an all-zero mmsghdr is valid: no name, no vectors, no control data.
    unsafe { std::mem::zeroed() }
}
