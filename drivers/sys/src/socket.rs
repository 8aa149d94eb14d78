//! Socket options, and the few socket calls that the standard library does not offer.

use super::{check, check_len};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

// linux/tcp.h, as the C library may be older than the kernel.
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
    // SAFETY: `value` is valid for the given length.
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
    // SAFETY: `buffer` is writable for the given length.
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

fn open(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::socket_with(AddressFamily::INET, kind, flags, None)?)
}

/// A UDP socket that is not bound to anything.
pub fn udp_any() -> io::Result<OwnedFd> {
    open(SocketType::DGRAM)
}

/// A TCP socket, non-blocking, not connected.
pub fn tcp() -> io::Result<OwnedFd> {
    open(SocketType::STREAM)
}

/// Lets several sockets share a local address (for UDP: each connected to another peer).
pub fn share_address(fd: BorrowedFd) -> io::Result<()> {
    Ok(sockopt::set_socket_reuseaddr(fd, true)?)
}

/// Receives one datagram without waiting; returns its length and its source.
pub fn receive_from(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
    let (length, _, from) = net::recvfrom(fd, buffer, RecvFlags::DONTWAIT)?;
    let from = from.ok_or(io::ErrorKind::InvalidData)?;
    Ok((length, SocketAddrV4::try_from(from)?))
}

/// Binds to a local address.
pub fn bind(fd: BorrowedFd, address: SocketAddrV4) -> io::Result<()> {
    Ok(net::bind(fd, &address)?)
}

/// Starts connecting; a non-blocking socket becomes writable when that is done.
pub fn connect(fd: BorrowedFd, address: SocketAddrV4) -> io::Result<()> {
    match net::connect(fd, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// True if a TCP socket has been connected to its peer.
pub fn is_connected(fd: BorrowedFd) -> bool {
    net::getpeername(fd).is_ok()
}

/// The next connection of a listening socket, non-blocking.
pub fn accept(fd: BorrowedFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::accept_with(fd, flags)?)
}

/// Lets a bound TCP socket accept connections, with a queue of up to `backlog` connections.
pub fn listen(fd: BorrowedFd, backlog: i32) -> io::Result<()> {
    Ok(net::listen(fd, backlog)?)
}

/// Writes without waiting; `WouldBlock` when the send buffer is full.
pub fn send(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(net::send(fd, bytes, flags)?)
}

/// Receives without waiting; 0 at the end of the stream.
pub fn receive(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (length, _) = net::recv(fd, buffer, RecvFlags::DONTWAIT)?;
    Ok(length)
}

/// Discards up to `limit` bytes of a TCP stream from the receive buffer without copying them, and returns their number
/// (0 at the end of the stream).
pub fn discard(fd: BorrowedFd, limit: usize) -> io::Result<usize> {
    // With MSG_TRUNC the kernel discards and never touches the (null) buffer: tcp(7).
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: see above.
    check_len(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), limit, flags) })
}

/// Ends sending; the peer sees the end of the stream after all data sent before.
pub fn end_stream(fd: BorrowedFd) -> io::Result<()> {
    Ok(net::shutdown(fd, net::Shutdown::Write)?)
}

/// Makes closing this TCP socket reset the connection instead of delivering remaining data.
pub fn abort_on_close(fd: BorrowedFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(fd, Some(Duration::ZERO))?)
}

/// Takes and clears the error that is pending on a socket, such as that of a failed connect.
pub fn take_error(fd: BorrowedFd) -> io::Result<()> {
    Ok(sockopt::socket_error(fd)??)
}

/// Sets the congestion control of a TCP socket.
pub fn set_congestion(fd: BorrowedFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(fd, name)?)
}

/// The congestion control that a TCP socket really uses.
pub fn congestion(fd: BorrowedFd) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(fd)?)
}

/// The kernel's `struct tcp_info`, in the kernel's length.
pub fn tcp_info<'a>(fd: BorrowedFd, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = get_option(fd, libc::IPPROTO_TCP, TCP_INFO, buffer)?;
    Ok(&buffer[..length])
}

/// The state of the congestion control (`union tcp_cc_info`); empty if it has none.
pub fn congestion_info<'a>(fd: BorrowedFd, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = get_option(fd, libc::IPPROTO_TCP, TCP_CC_INFO, buffer)?;
    Ok(&buffer[..length])
}

/// Limits the unsent data in the send buffer.
pub fn set_unsent_limit(fd: BorrowedFd, bytes: u32) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes as i32)
}

/// Sends the rest of a message immediately, even if it does not fill a segment.
pub fn set_no_delay(fd: BorrowedFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(fd, true)?)
}

/// Limits the window offered to the peer to `bytes`.
pub fn set_window_clamp(fd: BorrowedFd, bytes: u64) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_int(fd, libc::IPPROTO_TCP, TCP_WINDOW_CLAMP, bytes)
}

/// Wakes a reader only when `bytes` wait (or the stream has ended).
pub fn set_receive_mark(fd: BorrowedFd, bytes: u32) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes as i32)
}

/// Sets DSCP and ECN bits of all packets sent on the socket (TCP chooses the ECN bits itself).
pub fn set_tos(fd: BorrowedFd, tos: u8) -> io::Result<()> {
    Ok(sockopt::set_ip_tos(fd, tos)?)
}

/// A UDP socket of a local address, bound to an interface if one is named.
pub fn bind_udp(local: SocketAddr, interface: Option<&str>) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local)?;
    if let Some(name) = interface {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
        set_option(socket.as_fd(), level, option, name.as_bytes())?;
    }
    Ok(socket)
}

/// Makes a UDP socket report arrival stamps, ECN bits and drops with each datagram, and sets buffers of `buffer_bytes`
/// if allowed; returns the receive buffer's real size.
pub fn prepare_udp(fd: BorrowedFd, buffer_bytes: i32) -> io::Result<i32> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
        sockopt::set_ipv6_recvtclass(fd, true)?;
    } else {
        sockopt::set_ip_recvtos(fd, true)?;
    }
    for (forced, ordinary) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        // The forced variants ignore the machine's limits and need root privileges.
        if set_int(fd, libc::SOL_SOCKET, forced, buffer_bytes).is_err() {
            set_int(fd, libc::SOL_SOCKET, ordinary, buffer_bytes)?;
        }
    }
    get_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF)
}

/// Datagrams on this socket are never fragmented.
pub fn never_fragment(fd: BorrowedFd) -> io::Result<()> {
    let mode = sockopt::Ipv4PathMtuDiscovery::DO;
    Ok(sockopt::set_ip_mtu_discover(fd, mode)?)
}

/// Datagrams on this socket are never fragmented, and rejected only if they exceed the interface's MTU, regardless of
/// the kernel's cached path MTU: the path itself has to answer.
pub fn set_mtu_probing(socket: &UdpSocket) -> io::Result<()> {
    let set = match socket.local_addr()? {
        SocketAddr::V4(_) => {
            sockopt::set_ip_mtu_discover(socket, sockopt::Ipv4PathMtuDiscovery::PROBE)
        }
        SocketAddr::V6(_) => {
            sockopt::set_ipv6_mtu_discover(socket, sockopt::Ipv6PathMtuDiscovery::PROBE)
        }
    };
    Ok(set?)
}
