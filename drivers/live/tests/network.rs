//! The system layer against a real kernel: namespaces, wires, rings and batches.

mod common;

use common::in_private_network;
use narrows_live::hosts::{Hosts, Side};
use narrows_live::sys::mmsg::{ReceiveBatch, SendBatch};
use narrows_live::sys::netns::NetNs;
use narrows_live::sys::poll::{Epoll, Events};
use narrows_live::sys::ring::{RxRing, TxPort};
use narrows_live::sys::{clock, socket};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

fn udp(hosts: &Hosts, side: Side, port: u16) -> OwnedFd {
    let open = || {
        let fd = socket::udp_any().unwrap();
        socket::bind(fd.as_fd(), SocketAddrV4::new(side.address(), port)).unwrap();
        socket::prepare_udp(fd.as_fd(), 1 << 22).unwrap();
        socket::connect(fd.as_fd(), SocketAddrV4::new(side.other().address(), port)).unwrap();
        fd
    };
    hosts.host(side).netns.within(open).unwrap()
}

fn wait_readable(fd: impl AsFd) {
    let epoll = Epoll::new().unwrap();
    epoll.add(fd.as_fd(), 1).unwrap();
    let mut events = Events::default();
    epoll
        .wait(&mut events, Some(Duration::from_secs(2)))
        .unwrap();
    assert_eq!(
        events.keys().count(),
        1,
        "nothing arrived within two seconds"
    );
}

#[test]
fn frames_cross_from_host_to_host_only_through_us() {
    in_private_network("frames_cross_from_host_to_host_only_through_us", || {
        let mut hosts = Hosts::build(1500, 8 << 20).unwrap();
        let mut ring = RxRing::open(hosts.host(Side::Sender).outer, 256, 1514).unwrap();
        let mut port = TxPort::open(hosts.host(Side::Receiver).outer).unwrap();
        let (near, far) = (
            udp(&hosts, Side::Sender, 5001),
            udp(&hosts, Side::Receiver, 5001),
        );
        socket::set_ecn(near.as_fd(), 2).unwrap();
        hosts.warm_up(Side::Sender).unwrap();
        wait_readable(&ring);
        assert!(ring.peek().unwrap().bytes.ends_with(b"narrows"));
        ring.release();

        let before = clock::real_ns();
        let payloads: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; 1200]).collect();
        let mut batch = SendBatch::new();
        let mut sent = 0;
        while sent < payloads.len() {
            sent += batch
                .send(near.as_fd(), payloads[sent..].iter().map(Vec::as_slice))
                .unwrap();
        }
        let mut last = before;
        for n in 0..100u8 {
            wait_readable(&ring);
            let frame = ring.peek().expect("readable means a frame");
            assert_eq!(frame.length, 14 + 20 + 8 + 1200);
            assert_eq!(frame.bytes.len(), frame.length as usize);
            assert_eq!(frame.bytes[42], n, "frames keep their order");
            assert!(frame.stamp_ns >= last && frame.stamp_ns <= clock::real_ns());
            last = frame.stamp_ns;
            assert_eq!(port.send(std::iter::once(frame.bytes)).unwrap(), 1);
            ring.release();
        }
        assert!(ring.peek().is_none());
        assert_eq!(ring.statistics().unwrap(), (101, 0));

        let mut batch = ReceiveBatch::new();
        let mut seen = 0u8;
        while seen < 100 {
            wait_readable(&far);
            batch
                .receive(far.as_fd(), |datagram| {
                    assert_eq!(datagram.bytes, vec![seen; 1200]);
                    assert_eq!(datagram.ecn, 2);
                    assert!(datagram.stamp_ns.unwrap() >= before);
                    seen += 1;
                })
                .unwrap();
        }
        assert_eq!(batch.dropped(), 0);
        let sender = hosts.counters(Side::Sender).unwrap();
        let receiver = hosts.counters(Side::Receiver).unwrap();
        assert_eq!(
            sender.inner.tx_packets, 101,
            "no ARP, no IPv6, nothing but our datagrams"
        );
        assert_eq!(receiver.inner.rx_packets, 100);
        assert_eq!(receiver.inner.tx_packets, 0);
        assert_eq!(receiver.outer.tx_dropped + sender.inner.tx_dropped, 0);
    });
}

#[test]
fn a_full_ring_counts_what_it_drops() {
    in_private_network("a_full_ring_counts_what_it_drops", || {
        let hosts = Hosts::build(1500, 8 << 20).unwrap();
        let ring = RxRing::open(hosts.host(Side::Sender).outer, 32, 1514).unwrap();
        let near = udp(&hosts, Side::Sender, 5001);
        for _ in 0..100 {
            socket::send(near.as_fd(), &[0; 100]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
        let (received, dropped) = ring.statistics().unwrap();
        assert_eq!(received + dropped, 100);
        assert_eq!(received, 32);
    });
}

#[test]
fn hosts_have_their_settings_and_nothing_else() {
    in_private_network("hosts_have_their_settings_and_nothing_else", || {
        let hosts = Hosts::build(1500, 12_345_678).unwrap();
        assert_eq!(hosts.sysctls["net.ipv4.tcp_rmem"], "4096 12345678 12345678");
        assert_eq!(hosts.sysctls["net.ipv4.tcp_no_metrics_save"], "1");
        assert_ne!(
            narrows_live::sys::netns::read_sysctl("net.ipv4.tcp_rmem").unwrap(),
            hosts.sysctls["net.ipv4.tcp_rmem"],
            "the agent's own namespace keeps its settings"
        );
        let devices = hosts
            .host(Side::Sender)
            .netns
            .within(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap())
            .unwrap();
        let names: Vec<_> = devices
            .lines()
            .skip(2)
            .filter_map(|line| line.split(':').next())
            .map(str::trim)
            .collect();
        assert!(
            names.contains(&"eth0") && names.contains(&"lo"),
            "{names:?}"
        );
    });
}

#[test]
fn kernel_schemes_can_be_chosen_inside() {
    in_private_network("kernel_schemes_can_be_chosen_inside", || {
        let netns = NetNs::create().unwrap();
        netns
            .within(|| {
                let fd = socket::tcp().unwrap();
                socket::set_congestion(fd.as_fd(), "reno").unwrap();
                assert_eq!(socket::congestion(fd.as_fd()).unwrap(), "reno");
                assert!(socket::set_congestion(fd.as_fd(), "no_such_scheme").is_err());
            })
            .unwrap();
    });
}
