//! UDP sockets that are connected to nobody: each datagram has its own address and traffic class,
//! many go and come per system call, and those that come bring the kernel's stamp.

use super::check;
use super::socket::{set_int, set_option};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

// linux/in.h and linux/in6.h: never fragment, and send what is larger than the kernel believes the
// path to carry, so that the path itself answers.
const PMTUDISC_PROBE: i32 = 3;

/// A socket for tunnels.
#[derive(Debug)]
pub struct Carriage {
    socket: UdpSocket,
}

impl Carriage {
    /// Binds to `address`, and to an interface if one is named, with buffers of `bytes` where that is
    /// allowed.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn bind(address: SocketAddr, interface: Option<&str>, bytes: i32) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let fd = socket.as_fd();
        if let Some(interface) = interface {
            let level = libc::SOL_SOCKET;
            set_option(fd, level, libc::SO_BINDTODEVICE, interface.as_bytes())?;
        }
        set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        if address.is_ipv4() {
            set_int(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
            set_int(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, PMTUDISC_PROBE)?;
        } else {
            set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            let name = libc::IPV6_MTU_DISCOVER;
            set_int(fd, libc::IPPROTO_IPV6, name, PMTUDISC_PROBE)?;
        }
        for (forced, ordinary) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            // The forced variants ignore the machine's limits and need root.
            if set_int(fd, libc::SOL_SOCKET, forced, bytes).is_err() {
                set_int(fd, libc::SOL_SOCKET, ordinary, bytes)?;
            }
        }
        Ok(Carriage { socket })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl AsFd for Carriage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An address as the kernel writes it.
#[derive(Clone, Copy)]
#[repr(C)]
union RawAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    family: libc::sa_family_t,
}

const NO_ADDRESS: RawAddress = RawAddress {
    // The largest member, so that every byte has a value.
    v6: libc::sockaddr_in6 {
        sin6_family: 0,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
        sin6_scope_id: 0,
    },
};

impl RawAddress {
    fn new(address: SocketAddr) -> (RawAddress, libc::socklen_t) {
        let mut raw = NO_ADDRESS;
        match address {
            SocketAddr::V4(address) => {
                raw.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(address) => {
                raw.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.ip().octets(),
                    },
                    sin6_scope_id: address.scope_id(),
                };
                (raw, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }

    fn get(&self) -> Option<SocketAddr> {
        // SAFETY: every member of the union is plain integers, all bytes are initialised
        // (NO_ADDRESS), and the family says which member the kernel has written.
        unsafe {
            match i32::from(self.family) {
                libc::AF_INET => {
                    let ip = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    let port = u16::from_be(self.v4.sin_port);
                    Some(SocketAddr::V4(SocketAddrV4::new(ip, port)))
                }
                libc::AF_INET6 => {
                    let raw = self.v6;
                    let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                    let port = u16::from_be(raw.sin6_port);
                    let (flow, scope) = (raw.sin6_flowinfo, raw.sin6_scope_id);
                    Some(SocketAddr::V6(SocketAddrV6::new(ip, port, flow, scope)))
                }
                _ => None,
            }
        }
    }
}

/// Control data, aligned as the headers in it need.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Control([u8; 128]);

/// Datagrams that wait to be sent together.
pub struct Outbox {
    payloads: Box<[[u8; Outbox::SIZE]]>,
    addresses: Box<[RawAddress]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    filled: usize,
    sent: usize,
}

// SAFETY: the pointers inside are overwritten before each use and mean nothing in between.
unsafe impl Send for Outbox {}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outbox")
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

const NO_VECTOR: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

fn no_message() -> libc::mmsghdr {
    // SAFETY: an all-zero mmsghdr is valid: no name, no vectors, no control data.
    unsafe { std::mem::zeroed() }
}

impl Outbox {
    /// Datagrams per system call.
    pub const CAPACITY: usize = 32;
    /// Largest payload: that of a jumbo frame.
    pub const SIZE: usize = 9216;

    /// An empty one.
    pub fn new() -> Self {
        Outbox {
            payloads: vec![[0; Self::SIZE]; Self::CAPACITY].into(),
            addresses: vec![NO_ADDRESS; Self::CAPACITY].into(),
            controls: vec![Control([0; 128]); Self::CAPACITY].into(),
            vectors: vec![NO_VECTOR; Self::CAPACITY].into(),
            messages: vec![no_message(); Self::CAPACITY].into(),
            filled: 0,
            sent: 0,
        }
    }

    /// Whether nothing more can be added before the rest has been sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.filled == Self::CAPACITY
    }

    /// Whether everything has been sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sent == self.filled
    }

    /// The first `length` bytes of the next datagram's payload, to be written; `None` when it is too long or
    /// nothing can be added. It counts only when [`Outbox::add`] follows.
    #[inline]
    pub fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        self.payloads.get_mut(self.filled)?.get_mut(..length)
    }

    /// Adds the datagram whose payload was just written.
    #[inline]
    pub fn add(&mut self, length: usize, to: SocketAddr, tos: u8) {
        let index = self.filled;
        if index == Self::CAPACITY || length > Self::SIZE {
            return;
        }
        let (address, size) = RawAddress::new(to);
        self.addresses[index] = address;
        self.vectors[index] = libc::iovec {
            iov_base: self.payloads[index].as_mut_ptr().cast(),
            iov_len: length,
        };
        let header = &mut self.messages[index].msg_hdr;
        header.msg_name = (&raw mut self.addresses[index]).cast();
        header.msg_namelen = size;
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
        if tos != 0 {
            let (level, kind) = if to.is_ipv4() {
                (libc::IPPROTO_IP, libc::IP_TOS)
            } else {
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
            };
            // SAFETY: the control buffer is aligned and larger than one header with an integer;
            // the macros compute places within it.
            unsafe {
                let length = size_of::<libc::c_int>() as libc::c_uint;
                header.msg_control = self.controls[index].0.as_mut_ptr().cast();
                header.msg_controllen = libc::CMSG_SPACE(length) as _;
                let control = libc::CMSG_FIRSTHDR(header);
                (*control).cmsg_level = level;
                (*control).cmsg_type = kind;
                (*control).cmsg_len = libc::CMSG_LEN(length) as _;
                let value = libc::c_int::from(tos).to_ne_bytes();
                libc::CMSG_DATA(control).copy_from_nonoverlapping(value.as_ptr(), value.len());
            }
        }
        self.filled += 1;
    }

    /// Sends what waits, as far as the socket takes it now; returns how many it took.
    ///
    /// # Errors
    /// What the kernel said about the first datagram that waits; see [`Outbox::skip`].
    pub fn send(&mut self, carriage: &Carriage) -> io::Result<usize> {
        if self.is_empty() {
            return Ok(0);
        }
        // SAFETY: the messages from `sent` to `filled` were filled by `add` with pointers into boxes of
        // this struct, which have not moved since.
        let taken = check(unsafe {
            libc::sendmmsg(
                carriage.as_fd().as_raw_fd(),
                self.messages[self.sent..].as_mut_ptr(),
                (self.filled - self.sent) as u32,
                libc::MSG_DONTWAIT,
            )
        })? as usize;
        self.sent += taken;
        self.clear_if_empty();
        Ok(taken)
    }

    /// Gives up the first datagram that waits.
    pub fn skip(&mut self) {
        self.sent = (self.sent + 1).min(self.filled);
        self.clear_if_empty();
    }

    fn clear_if_empty(&mut self) {
        if self.is_empty() {
            self.sent = 0;
            self.filled = 0;
        }
    }
}

/// What came with a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
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
pub struct Inbox {
    payloads: Box<[[u8; Inbox::SIZE]]>,
    addresses: Box<[RawAddress]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    dropped: u32,
}

// SAFETY: the pointers inside are overwritten before each use and mean nothing in between.
unsafe impl Send for Inbox {}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inbox")
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    /// Datagrams per system call.
    pub const CAPACITY: usize = 32;
    /// Largest payload: that of a jumbo frame.
    pub const SIZE: usize = 9216;

    /// An empty one.
    pub fn new() -> Self {
        Inbox {
            payloads: vec![[0; Self::SIZE]; Self::CAPACITY].into(),
            addresses: vec![NO_ADDRESS; Self::CAPACITY].into(),
            controls: vec![Control([0; 128]); Self::CAPACITY].into(),
            vectors: vec![NO_VECTOR; Self::CAPACITY].into(),
            messages: vec![no_message(); Self::CAPACITY].into(),
            dropped: 0,
        }
    }

    /// Receives what is there, without waiting; returns how many datagrams there were.
    ///
    /// # Errors
    /// What the kernel said, apart from there being nothing.
    pub fn receive(&mut self, carriage: &Carriage) -> io::Result<usize> {
        for index in 0..Self::CAPACITY {
            self.vectors[index] = libc::iovec {
                iov_base: self.payloads[index].as_mut_ptr().cast(),
                iov_len: Self::SIZE,
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
                carriage.as_fd().as_raw_fd(),
                self.messages.as_mut_ptr(),
                Self::CAPACITY as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        });
        match received {
            Ok(received) => Ok(received as usize),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// What came with datagram `index` of those that [`Inbox::receive`] has counted. `None` if its
    /// address is of no kind that we know, or it was longer than any datagram of ours and cut.
    pub fn arrival(&mut self, index: usize) -> Option<Arrival> {
        let message = &self.messages[index];
        let header = &raw const message.msg_hdr;
        let mut stamp_ns = None;
        let mut tos = 0;
        // SAFETY: the kernel has filled the control data of this message; the CMSG macros walk it
        // within the length it set, and values are read unaligned.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                let data = libc::CMSG_DATA(control);
                match ((*control).cmsg_level, (*control).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        stamp_ns = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => tos = *data,
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        tos = data.cast::<libc::c_int>().read_unaligned() as u8;
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        self.dropped = data.cast::<u32>().read_unaligned();
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        Some(Arrival {
            from: self.addresses[index].get()?,
            length: (message.msg_len as usize).min(Self::SIZE),
            stamp_ns,
            tos,
        })
    }

    /// The payload of datagram `index`.
    #[inline]
    pub fn payload(&self, index: usize, length: usize) -> &[u8] {
        &self.payloads[index][..length]
    }

    /// The same, to be changed in place.
    #[inline]
    pub fn payload_mut(&mut self, index: usize, length: usize) -> &mut [u8] {
        &mut self.payloads[index][..length]
    }

    /// Datagrams that the socket has dropped because its buffer was full, as far as reported.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock;

    /// Everything that arrives, until there are `count` or nothing comes for two seconds.
    fn receive(carriage: &Carriage, count: usize) -> Vec<(Arrival, Vec<u8>)> {
        let mut inbox = Inbox::new();
        let mut all = Vec::new();
        let start = clock::mono_ns();
        while all.len() < count && clock::mono_ns() - start < 2_000_000_000 {
            for index in 0..inbox.receive(carriage).unwrap() {
                let arrival = inbox.arrival(index).unwrap();
                all.push((arrival, inbox.payload(index, arrival.length).to_vec()));
            }
        }
        all
    }

    fn datagrams_bring_address_class_and_stamp(local: &str) {
        let Ok(a) = Carriage::bind(local.parse().unwrap(), None, 1 << 18) else {
            return eprintln!("skipped: {local} cannot be used here");
        };
        let b = Carriage::bind(local.parse().unwrap(), None, 1 << 18).unwrap();
        let mut outbox = Outbox::new();
        assert_eq!(Inbox::new().receive(&b).unwrap(), 0);
        let before = clock::real_ns();
        let classes = [0u8, 0x28 | 2, 0];
        for tos in classes {
            let length = 10 + usize::from(tos);
            outbox.room(length).unwrap().fill(tos);
            outbox.add(length, b.local().unwrap(), tos);
        }
        assert_eq!(outbox.send(&a).unwrap(), 3);
        assert!(outbox.is_empty());
        let all = receive(&b, 3);
        assert_eq!(all.len(), 3);
        for ((arrival, payload), tos) in all.iter().zip(classes) {
            assert_eq!((arrival.from, arrival.tos), (a.local().unwrap(), tos));
            assert_eq!(payload, &vec![tos; 10 + usize::from(tos)]);
            assert!(arrival.stamp_ns.unwrap() >= before);
        }
        assert!(outbox.room(Outbox::SIZE + 1).is_none());
    }

    #[test]
    fn datagrams_of_ip_version_4() {
        datagrams_bring_address_class_and_stamp("127.0.0.1:0");
    }

    #[test]
    fn datagrams_of_ip_version_6() {
        datagrams_bring_address_class_and_stamp("[::1]:0");
    }
}
