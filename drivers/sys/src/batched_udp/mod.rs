//! UDP in batches: many datagrams are sent or received per system call, each with a separate traffic class, and
//! received ones with the kernel's stamp. The tunnel sends on unconnected sockets, and in groups; endpoints receive on
//! theirs.

mod receiver;
mod sender;

use super::socket::{bind_udp, prepare_udp, set_int, set_mtu_probing};
pub use receiver::{Datagram, UdpReceiver};
pub use sender::UdpSender;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// A socket for a tunnel at `address`, bound to an interface if one is named, with buffers of `buffer_bytes` if
/// allowed.
///
/// # Errors
/// The kernel's error.
pub fn bind_for_groups(
    address: SocketAddr,
    interface: Option<&str>,
    buffer_bytes: i32,
) -> io::Result<UdpSocket> {
    let socket = bind_udp(address, interface)?;
    socket.set_nonblocking(true)?;
    prepare_udp(socket.as_fd(), buffer_bytes)?;
    set_mtu_probing(&socket)?;
    // Kernels before 5.0 do not support this and deliver datagrams one by one.
    let _ = set_int(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// Calls `show` for arrivals with their index, until there are `count` or two seconds have passed.
    fn receive(socket: &UdpSocket, count: usize, mut show: impl FnMut(usize, Datagram)) {
        let mut receiver = UdpReceiver::for_groups();
        let mut received = 0;
        let start = clock::mono_ns();
        while received < count && clock::mono_ns() - start < 2_000_000_000 {
            for index in 0..receiver.receive(socket.as_fd()).unwrap() {
                show(received, receiver.datagram(index));
                received += 1;
            }
        }
        assert_eq!(received, count);
    }

    fn datagrams_bring_address_class_and_stamp(local: &str) {
        let bind = || bind_for_groups(local.parse().unwrap(), None, 1 << 18);
        let Ok(a) = bind() else {
            return narrows_skips::skip(format!("{local} cannot be used here"));
        };
        let b = bind().unwrap();
        let [from, to] = [&a, &b].map(|socket| socket.local_addr().unwrap());
        let mut sender = UdpSender::default();
        assert_eq!(UdpReceiver::default().receive(b.as_fd()).unwrap(), 0);
        let before = clock::real_ns();
        let classes = [0u8, 0x28 | 2, 0];
        for tos in classes {
            let length = 10 + usize::from(tos);
            sender.room(length).unwrap().fill(tos);
            sender.add(length, to, tos);
        }
        assert_eq!(sender.send(a.as_fd()).unwrap(), 3);
        assert!(sender.is_empty());
        receive(&b, 3, |index, datagram| {
            let tos = classes[index];
            assert_eq!((datagram.from, datagram.tos), (from, tos));
            assert_eq!(datagram.bytes, vec![tos; 10 + usize::from(tos)]);
            assert!(datagram.stamp_ns.unwrap() >= before);
        });
        // Groups of all kinds arrive as their original datagrams, in order.
        let sizes = [[1000; 20].as_slice(), &[400], &[1400; 10], &[0, 1, 1]].concat();
        let tos = |index: usize| 2 + 8 * u8::from(index > 25);
        let mut sent = Vec::new();
        for (index, &size) in sizes.iter().enumerate() {
            let payload: Vec<u8> = (0..size).map(|at| (at * 7 + index) as u8).collect();
            sender.room(size).unwrap().copy_from_slice(&payload);
            sender.add(size, to, tos(index));
            sent.push(payload);
        }
        assert_eq!(sender.send(a.as_fd()).unwrap(), sizes.len());
        receive(&b, sizes.len(), |index, datagram| {
            assert_eq!(datagram.bytes, sent[index], "datagram {index}");
            assert_eq!(datagram.tos, tos(index));
            assert!(datagram.stamp_ns.unwrap() >= before);
        });
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
