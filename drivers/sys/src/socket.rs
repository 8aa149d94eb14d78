//! Socket options, and the few socket calls that the standard library does not offer.

use super::{check, check_len};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// linux/in.h, linux/tcp.h and asm-generic/socket.h, where the C library is older than the kernel.
const TCP_CONGESTION: libc::c_int = 13;
const TCP_NOTSENT_LOWAT: libc::c_int = 25;
const TCP_CC_INFO: libc::c_int = 26;
const TCP_INFO: libc::c_int = 11;
const TCP_WINDOW_CLAMP: libc::c_int = 10;
/// Connections that may wait to be accepted.
pub const BACKLOG: libc::c_int = 4096;

/// The memory of `value`, for options that are structures.
pub(super) fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: the structures used here are plain integers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Sets a socket option from raw bytes.
pub fn set_option(fd: BorrowedFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: `value` is valid for the length given.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Sets a socket option that is an integer.
pub fn set_int(fd: BorrowedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_option(fd, level, name, &value.to_ne_bytes())
}

/// Reads a socket option into `buffer` and returns the length that the kernel filled.
pub fn get_option(fd: BorrowedFd, level: i32, name: i32, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: `buffer` is writable for the length given.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    Ok((length as usize).min(buffer.len()))
}

/// Reads a socket option that is an integer.
pub fn get_int(fd: BorrowedFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = [0; 4];
    get_option(fd, level, name, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}

fn open(kind: libc::c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a successful call returns a new descriptor that nobody else owns.
    unsafe {
        Ok(OwnedFd::from_raw_fd(check(libc::socket(
            libc::AF_INET,
            kind,
            0,
        ))?))
    }
}

/// A UDP socket that is not bound to anything.
pub fn udp_any() -> io::Result<OwnedFd> {
    open(libc::SOCK_DGRAM)
}

/// A TCP socket, non-blocking, not connected.
pub fn tcp() -> io::Result<OwnedFd> {
    open(libc::SOCK_STREAM)
}

/// Lets several sockets share a local address (of UDP: each connected to another peer).
pub fn share_address(fd: BorrowedFd) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)
}

/// Receives one datagram without waiting, and tells who sent it.
pub fn receive_from(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
    // SAFETY: an all-zero sockaddr_in is valid; buffer and address are writable for their sizes.
    unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        let mut size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let length = check_len(libc::recvfrom(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
            (&raw mut address).cast(),
            &raw mut size,
        ))?;
        let ip = std::net::Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
        Ok((
            length,
            SocketAddrV4::new(ip, u16::from_be(address.sin_port)),
        ))
    }
}

/// Binds to a local address.
pub fn bind(fd: BorrowedFd, address: SocketAddrV4) -> io::Result<()> {
    let (address, size) = raw_address(address);
    // SAFETY: `address` is valid for `size` bytes.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(())
}

/// Begins to connect; a non-blocking socket becomes writable when that is done.
pub fn connect(fd: BorrowedFd, address: SocketAddrV4) -> io::Result<()> {
    let (address, size) = raw_address(address);
    // SAFETY: `address` is valid for `size` bytes.
    match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), size) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(drop),
    }
}

/// Whether a TCP socket has been connected to its peer.
pub fn is_connected(fd: BorrowedFd) -> bool {
    // SAFETY: an all-zero sockaddr_in is valid, and writable for the size given.
    unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        let mut size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        libc::getpeername(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut size) == 0
    }
}

/// The next connection of a listening socket, non-blocking.
pub fn accept(fd: BorrowedFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let none = std::ptr::null_mut();
    // SAFETY: the peer's address is not asked for; a successful call returns a new descriptor.
    unsafe {
        let fd = check(libc::accept4(
            fd.as_raw_fd(),
            none,
            std::ptr::null_mut(),
            flags,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn raw_address(address: SocketAddrV4) -> (libc::sockaddr_in, libc::socklen_t) {
    // SAFETY: an all-zero sockaddr_in is valid.
    let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    raw.sin_family = libc::AF_INET as u16;
    raw.sin_port = address.port().to_be();
    raw.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
    (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
}

/// Writes without waiting; `WouldBlock` when the send buffer is full.
pub fn send(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `bytes` is valid for its length.
    check_len(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Takes up to `limit` bytes of a TCP stream out of the receive buffer without copying them, and
/// returns how many there were (0 at the end of the stream).
pub fn discard(fd: BorrowedFd, limit: usize) -> io::Result<usize> {
    // With MSG_TRUNC the kernel discards and never touches the (null) buffer: tcp(7).
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: see above.
    check_len(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), limit, flags) })
}

/// Chooses the congestion control of a TCP socket.
pub fn set_congestion(fd: BorrowedFd, name: &str) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, TCP_CONGESTION, name.as_bytes())
}

/// The congestion control that a TCP socket really uses.
pub fn congestion(fd: BorrowedFd) -> io::Result<String> {
    let mut buffer = [0; 32];
    let length = get_option(fd, libc::IPPROTO_TCP, TCP_CONGESTION, &mut buffer)?;
    let name = &buffer[..length];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(length);
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Limits the data that waits in the send buffer without having been sent.
pub fn set_unsent_limit(fd: BorrowedFd, bytes: u32) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes as i32)
}

/// The kernel's `struct tcp_info`, as many bytes as it has.
pub fn tcp_info<'a>(fd: BorrowedFd, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = get_option(fd, libc::IPPROTO_TCP, TCP_INFO, buffer)?;
    Ok(&buffer[..length])
}

/// What the congestion control tells about itself (`union tcp_cc_info`); empty if nothing.
pub fn congestion_info<'a>(fd: BorrowedFd, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = get_option(fd, libc::IPPROTO_TCP, TCP_CC_INFO, buffer)?;
    Ok(&buffer[..length])
}

/// Closing this TCP socket resets the connection instead of delivering what is left.
pub fn abort_on_close(fd: BorrowedFd) -> io::Result<()> {
    // struct linger: on, zero seconds.
    let value = [1i32.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, &value)
}

/// Makes a UDP socket report arrival stamps, ECN bits and drops with each datagram, and gives it
/// buffers of `bytes` where that is allowed; returns the receive buffer's real size.
pub fn prepare_udp(fd: BorrowedFd, bytes: i32) -> io::Result<i32> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    set_int(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    // The forced variants ignore net.core.rmem_max and need root of the machine.
    if set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes).is_err() {
        set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
    }
    if set_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes).is_err() {
        set_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)?;
    }
    get_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF)
}

/// Datagrams on this socket are never cut into fragments.
pub fn never_fragment(fd: BorrowedFd) -> io::Result<()> {
    set_int(
        fd,
        libc::IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        libc::IP_PMTUDISC_DO,
    )
}

/// Sets DSCP and ECN bits of everything sent on the socket (TCP chooses the ECN bits itself).
pub fn set_tos(fd: BorrowedFd, tos: u8) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_IP, libc::IP_TOS, i32::from(tos))
}

/// Sends the rest of a message at once, even if it fills no segment.
pub fn set_no_delay(fd: BorrowedFd) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

/// The window offered to the peer never exceeds `bytes`.
pub fn set_window_clamp(fd: BorrowedFd, bytes: u64) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_int(fd, libc::IPPROTO_TCP, TCP_WINDOW_CLAMP, bytes)
}

/// A reader is woken only when so many bytes wait (or the stream has ended).
pub fn set_receive_mark(fd: BorrowedFd, bytes: u32) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes as i32)
}

/// Takes and clears the error that is pending on a socket, such as that of a failed connect.
pub fn take_error(fd: BorrowedFd) -> io::Result<()> {
    match get_int(fd, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Nothing more will be sent; the peer sees the end of the stream after what was sent before.
pub fn end_stream(fd: BorrowedFd) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) })?;
    Ok(())
}

/// Receives without waiting; 0 at the end of the stream.
pub fn receive(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is writable for its length.
    check_len(unsafe {
        libc::recv(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    })
}

/// Lets a bound TCP socket accept connections, with room for `backlog` that nobody has accepted.
///
/// # Errors
/// What the kernel said.
pub fn listen(fd: BorrowedFd, backlog: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}
