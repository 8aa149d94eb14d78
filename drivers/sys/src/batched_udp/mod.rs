//! UDP sockets that are connected to nobody: each datagram has its own address and traffic class,
//! many go and come per system call, and those that come bring the kernel's stamp.

mod receiver;
mod sender;

use super::message::{Control, NO_VECTOR, came_with, no_message};
use super::socket::{set_int, set_option};
pub use receiver::{ReceivedDatagram, UdpReceiver};
pub use sender::UdpSender;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

// linux/in.h and linux/in6.h: never fragment, and send what is larger than the kernel believes the
// path to carry, so that the path itself answers.
const PMTUDISC_PROBE: i32 = 3;

/// A socket for tunnels.
#[derive(Debug)]
pub struct UdpBatchSocket {
    socket: UdpSocket,
}

impl UdpBatchSocket {
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
        // Kernels before 5.0 know no such thing and hand over one by one.
        let _ = set_int(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
        for (forced, ordinary) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            // The forced variants ignore the machine's limits and need root.
            if set_int(fd, libc::SOL_SOCKET, forced, bytes).is_err() {
                set_int(fd, libc::SOL_SOCKET, ordinary, bytes)?;
            }
        }
        Ok(UdpBatchSocket { socket })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl AsFd for UdpBatchSocket {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// Everything that arrives, until there are `count` or nothing comes for two seconds.
    fn receive(socket: &UdpBatchSocket, count: usize) -> Vec<(ReceivedDatagram, Vec<u8>)> {
        let mut inbox = UdpReceiver::new();
        let mut all = Vec::new();
        let start = clock::mono_ns();
        while all.len() < count && clock::mono_ns() - start < 2_000_000_000 {
            for index in 0..inbox.receive(socket).unwrap() {
                all.push((inbox.arrival(index), inbox.payload(index).to_vec()));
            }
        }
        all
    }

    fn datagrams_bring_address_class_and_stamp(local: &str) {
        let Ok(a) = UdpBatchSocket::bind(local.parse().unwrap(), None, 1 << 18) else {
            return narrows_skips::skip(format!("{local} cannot be used here"));
        };
        let b = UdpBatchSocket::bind(local.parse().unwrap(), None, 1 << 18).unwrap();
        let mut outbox = UdpSender::new();
        assert_eq!(UdpReceiver::new().receive(&b).unwrap(), 0);
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
            assert_eq!(arrival.length, payload.len());
            assert!(arrival.stamp_ns.unwrap() >= before);
        }
        // Groups of all kinds arrive as the datagrams of which they were made, in their order.
        let sizes = [[1000; 20].as_slice(), &[400], &[1400; 10], &[0, 1, 1]].concat();
        let mut sent = Vec::new();
        for (index, &size) in sizes.iter().enumerate() {
            let payload: Vec<u8> = (0..size).map(|at| (at * 7 + index) as u8).collect();
            outbox.room(size).unwrap().copy_from_slice(&payload);
            outbox.add(size, b.local().unwrap(), 2 + 8 * u8::from(index > 25));
            sent.push(payload);
        }
        assert_eq!(outbox.send(&a).unwrap(), sizes.len());
        let all = receive(&b, sizes.len());
        assert_eq!(all.len(), sizes.len());
        for (index, ((arrival, payload), sent)) in all.iter().zip(&sent).enumerate() {
            assert_eq!(payload, sent, "datagram {index}");
            assert_eq!(arrival.tos, 2 + 8 * u8::from(index > 25));
            assert!(arrival.stamp_ns.unwrap() >= before);
        }
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
