//! Receives batches of datagrams and their control data.

use crate::check;
use crate::mmsg::{Control, NO_VECTOR, no_message};
use rustix::net::SocketAddrAny;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Payload.
    pub bytes: &'a [u8],
    /// Source.
    pub from: SocketAddr,
    /// When the kernel received it, in ns of `CLOCK_REALTIME`, if stamped.
    pub stamp_ns: Option<u64>,
    /// Its traffic class: DSCP and ECN.
    pub tos: u8,
}

impl Datagram<'_> {
    /// The two ECN bits of its IP header.
    pub fn ecn(&self) -> u8 {
        self.tos & 3
    }
}

/// Datagrams that arrived together, in reusable buffers.
///
/// On sockets with `UDP_GRO` (udp(7)) the kernel delivers groups of datagrams as one message: those that the sender has
/// grouped ([`UdpSender`](super::UdpSender)) and no adapter has split, and those of one address, size and traffic class
/// that an adapter delivered together. They have a common stamp.
pub struct UdpReceiver {
    /// Buffer size of one message in bytes.
    room: usize,
    bytes: Box<[u8]>,
    datagrams: Vec<ReceivedDatagram>,
    addresses: Box<[libc::sockaddr_storage]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    dropped: u32,
}

/// A datagram and the position of its payload.
#[derive(Clone, Copy)]
struct ReceivedDatagram {
    start: usize,
    end: usize,
    from: SocketAddr,
    stamp_ns: Option<u64>,
    tos: u8,
}

// SAFETY: the pointers inside are overwritten before each use and are not used in between.
unsafe impl Send for UdpReceiver {}

impl UdpReceiver {
    /// Maximum number of messages per call.
    pub const CAPACITY: usize = 64;
    /// Number of messages and bytes of each if they may be groups, which are never longer than an IP packet.
    const GROUPS: (usize, usize) = (16, 1 << 16);

    /// A receiver for sockets on which the kernel groups datagrams.
    pub fn for_groups() -> Self {
        UdpReceiver::with_room(Self::GROUPS.0, Self::GROUPS.1)
    }

    fn with_room(messages: usize, room: usize) -> Self {
        // SAFETY: an all-zero sockaddr_storage is valid.
        let nowhere: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        UdpReceiver {
            room,
            bytes: vec![0; messages * room].into(),
            // More than most kernels put into these messages; if not, it grows once.
            datagrams: Vec::with_capacity(1024),
            addresses: vec![nowhere; messages].into(),
            controls: vec![Control::EMPTY; messages].into(),
            vectors: vec![NO_VECTOR; messages].into(),
            messages: vec![no_message(); messages].into(),
            dropped: 0,
        }
    }

    /// Receives available datagrams without waiting, replacing those received before; returns their number. Datagrams
    /// with unknown address families are skipped.
    ///
    /// # Errors
    /// The kernel's error, except for an empty socket.
    pub fn receive(&mut self, socket: BorrowedFd) -> io::Result<usize> {
        self.datagrams.clear();
        for (index, bytes) in self.bytes.chunks_exact_mut(self.room).enumerate() {
            self.vectors[index] = libc::iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: bytes.len(),
            };
            let header = &mut self.messages[index].msg_hdr;
            header.msg_name = (&raw mut self.addresses[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: every message was just pointed to buffers of this struct with their true sizes.
        let received = check(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as u32,
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
        let header = &message.msg_hdr;
        let bytes = (message.msg_len as usize).min(self.room);
        // SAFETY: the kernel has filled the control data of this message.
        let control = unsafe { ControlData::read(header) };
        if let Some(dropped) = control.dropped {
            self.dropped = dropped;
        }
        if header.msg_namelen == 0 {
            return;
        }
        // SAFETY: the kernel has written an address of this length.
        let from = unsafe { SocketAddrAny::read(header.msg_name.cast(), header.msg_namelen) };
        let Ok(from) = SocketAddr::try_from(from) else {
            return;
        };
        // A datagram longer than ours can be was truncated. It is passed on unchanged, to be rejected and counted like
        // other inauthentic datagrams.
        let each = control.segment.unwrap_or(bytes).max(1);
        let end = index * self.room + bytes;
        let mut start = index * self.room;
        loop {
            let next = (start + each).min(end);
            self.datagrams.push(ReceivedDatagram {
                start,
                end: next,
                from,
                stamp_ns: control.stamp_ns,
                tos: control.tos,
            });
            start = next;
            // Checked here, because empty datagrams count as well.
            if start >= end {
                break;
            }
        }
    }

    /// Datagrams that [`UdpReceiver::receive`] has counted.
    #[inline]
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// True if the last [`UdpReceiver::receive`] found nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Datagram `index`.
    #[inline]
    pub fn datagram(&self, index: usize) -> Datagram<'_> {
        let received = &self.datagrams[index];
        Datagram {
            bytes: &self.bytes[received.start..received.end],
            from: received.from,
            stamp_ns: received.stamp_ns,
            tos: received.tos,
        }
    }

    /// The payload of datagram `index`, to be changed in place.
    #[inline]
    pub fn payload_mut(&mut self, index: usize) -> &mut [u8] {
        let received = &self.datagrams[index];
        &mut self.bytes[received.start..received.end]
    }

    /// Number of messages for which the socket's buffer had no room, as reported with received ones (`SO_RXQ_OVFL`).
    /// Each was a datagram or a group of them.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// The same as [`UdpReceiver::dropped`], and resets it, for a receiver that serves many sockets.
    pub fn take_dropped(&mut self) -> u32 {
        std::mem::take(&mut self.dropped)
    }
}

/// The control data of a received message.
#[derive(Clone, Copy, Debug, Default)]
struct ControlData {
    stamp_ns: Option<u64>,
    tos: u8,
    /// Bytes of each of the datagrams in it, if there are several.
    segment: Option<usize>,
    /// Messages that the socket has dropped so far because its buffer was full.
    dropped: Option<u32>,
}

impl ControlData {
    /// # Safety
    /// The kernel has filled the control data that the header points to, and set its length.
    #[inline]
    unsafe fn read(header: &libc::msghdr) -> ControlData {
        let mut found = ControlData::default();
        // SAFETY: the CMSG macros walk the control data within its length, and values are read unaligned.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                let data = libc::CMSG_DATA(control);
                match ((*control).cmsg_level, (*control).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        let stamp_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                        found.stamp_ns = Some(stamp_ns);
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => found.tos = *data,
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        found.tos = data.cast::<libc::c_int>().read_unaligned() as u8;
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        found.segment = Some(data.cast::<libc::c_int>().read_unaligned() as usize);
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        found.dropped = Some(data.cast::<u32>().read_unaligned());
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        found
    }
}

impl Default for UdpReceiver {
    /// For datagrams up to the size of a jumbo frame; longer ones are truncated.
    fn default() -> Self {
        UdpReceiver::with_room(Self::CAPACITY, super::UdpSender::SIZE)
    }
}
