//! The system layer on a real kernel: namespaces, wires, rings and batches.

mod common;

use common::in_private_network;
use narrows_cell::addressing::address;
use narrows_netns::{HostDefaults, HostPlan, Hosts};
use narrows_sys::batched_udp::UdpReceiver;
use narrows_sys::mmsg::{Message, SendBatch};
use narrows_sys::netns::NetNs;
use narrows_sys::poll::{Epoll, Events};
use narrows_sys::ring::{RxRing, TxPort};
use narrows_sys::{clock, socket};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Far above what anything here takes, on a busy machine too.
const LIMIT: Duration = Duration::from_mins(1);

const SENDER: u16 = 0;
const RECEIVER: u16 = 1;

/// Hosts with these names and settings.
fn build(plans: &[HostPlan], buffer: u64) -> Result<Hosts, narrows_cell::RunError> {
    let common = HostDefaults {
        mtu: 1500,
        buffer,
        verify_checksums: false,
        receive_cpus: 0,
    };
    Hosts::build(plans, common)
}

fn two() -> Hosts {
    build(&["sender", "receiver"].map(HostPlan::named), 8 << 20).unwrap()
}

/// A UDP socket on a host, connected to the same port of `peer`.
fn udp(hosts: &Hosts, host: u16, peer: u16, port: u16) -> OwnedFd {
    let open = || {
        let fd = socket::udp_any().unwrap();
        socket::bind(fd.as_fd(), SocketAddrV4::new(address(host), port)).unwrap();
        socket::prepare_udp(fd.as_fd(), 1 << 22).unwrap();
        socket::connect(fd.as_fd(), SocketAddrV4::new(address(peer), port)).unwrap();
        fd
    };
    hosts.host(host).netns.within(open).unwrap()
}

fn wait_readable(fd: impl AsFd) {
    let epoll = Epoll::new().unwrap();
    epoll.add(fd.as_fd(), 1).unwrap();
    let mut events = Events::default();
    epoll.wait(&mut events, Some(LIMIT)).unwrap();
    assert_eq!(events.keys().count(), 1, "nothing arrived within {LIMIT:?}");
}

/// Sends datagrams from a host until some arrive, and takes them out of the ring; returns how many have crossed. A
/// worker of the kernel activates a wire after it was set up, late on a busy machine; until then what is sent is
/// dropped, and counted nowhere.
fn wake(hosts: &mut Hosts, host: u16, ring: &mut RxRing) -> u64 {
    let limit = Instant::now() + LIMIT;
    let mut seen = 0;
    loop {
        if seen == 0 {
            hosts.warm_up(host).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
        while let Some(frame) = ring.peek() {
            assert!(frame.bytes.ends_with(b"narrows"));
            ring.release();
            seen += 1;
        }
        let crossed = hosts.counters().unwrap()[usize::from(host)]
            .inner
            .tx_packets;
        if seen > 0 && seen == crossed {
            return seen;
        }
        assert!(
            Instant::now() < limit,
            "{seen} of {crossed} datagrams arrived within {LIMIT:?}"
        );
    }
}

#[test]
fn frames_cross_from_host_to_host_only_through_us() {
    in_private_network("frames_cross_from_host_to_host_only_through_us", || {
        let mut hosts = two();
        let mut ring = RxRing::open(hosts.host(SENDER).outer, 256, 1514).unwrap();
        let mut port = TxPort::open(hosts.host(RECEIVER).outer).unwrap();
        let (near, far) = (
            udp(&hosts, SENDER, RECEIVER, 5001),
            udp(&hosts, RECEIVER, SENDER, 5001),
        );
        socket::set_tos(near.as_fd(), 2).unwrap();
        let woken = wake(&mut hosts, SENDER, &mut ring);

        let before = clock::real_ns();
        let payloads: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; 1200]).collect();
        let mut batch = SendBatch::default();
        let mut sent = 0;
        while sent < payloads.len() {
            let left = payloads[sent..].iter().map(Vec::as_slice);
            sent += batch.send(near.as_fd(), left.map(Message::from)).unwrap();
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
        let all = woken + 100;
        assert_eq!(ring.statistics().unwrap(), (u32::try_from(all).unwrap(), 0));

        let mut receiver = UdpReceiver::default();
        let mut seen = 0u8;
        while seen < 100 {
            wait_readable(&far);
            for index in 0..receiver.receive(far.as_fd()).unwrap() {
                let datagram = receiver.datagram(index);
                assert_eq!(datagram.bytes, vec![seen; 1200]);
                assert_eq!(datagram.ecn(), 2);
                assert!(datagram.stamp_ns.unwrap() >= before);
                seen += 1;
            }
        }
        assert_eq!(receiver.dropped(), 0);
        let counters = hosts.counters().unwrap();
        let (sender, receiver) = (counters[0], counters[1]);
        assert_eq!(
            sender.inner.tx_packets, all,
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
        let mut hosts = two();
        let mut ring = RxRing::open(hosts.host(SENDER).outer, 32, 1514).unwrap();
        wake(&mut hosts, SENDER, &mut ring);
        // Each reading of the counters clears them.
        ring.statistics().unwrap();
        let near = udp(&hosts, SENDER, RECEIVER, 5001);
        for _ in 0..100 {
            socket::send(near.as_fd(), &[0; 100]).unwrap();
        }
        // The kernel moves frames asynchronously.
        let (mut received, mut dropped) = (0, 0);
        let limit = Instant::now() + LIMIT;
        while received + dropped < 100 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
            let (more, lost) = ring.statistics().unwrap();
            (received, dropped) = (received + more, dropped + lost);
        }
        assert_eq!(received + dropped, 100);
        assert_eq!(received, 32);
    });
}

#[test]
fn hosts_have_their_settings_and_nothing_else() {
    in_private_network("hosts_have_their_settings_and_nothing_else", || {
        let special = HostPlan {
            mtu: Some(1000),
            settings: [
                ("tcp_sack", "0"),
                ("tcp_wmem", "4096 16384 65536"),
                ("tcp_congestion_control", "reno"),
            ]
            .map(|(name, value)| (format!("net.ipv4.{name}"), value.to_owned()))
            .into(),
            ..HostPlan::named("special")
        };
        let plans = [HostPlan::named("plain"), special];
        let hosts = build(&plans, 12_345_678).unwrap();
        let (plain, special) = (&hosts.hosts[0], &hosts.hosts[1]);
        assert_eq!(plain.sysctls["net.ipv4.tcp_rmem"], "4096 12345678 12345678");
        assert_eq!(plain.sysctls["net.ipv4.tcp_no_metrics_save"], "1");
        assert_eq!(plain.sysctls["net.ipv4.tcp_sack"], "1");
        // Independent of this machine's default.
        let default = &plain.sysctls["net.ipv4.tcp_congestion_control"];
        assert!(default == "cubic" || default == "reno", "{default}");
        assert_eq!(special.sysctls["net.ipv4.tcp_congestion_control"], "reno");
        assert_eq!(special.sysctls["net.ipv4.tcp_sack"], "0");
        assert_eq!(special.sysctls["net.ipv4.tcp_wmem"], "4096 16384 65536");
        // The kernel derives the segment size that it offers from the interface.
        let offered = || {
            let socket = socket::udp_any().unwrap();
            socket::connect(socket.as_fd(), SocketAddrV4::new(address(0), 9)).unwrap();
            socket::get_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU).unwrap()
        };
        assert_eq!(special.netns.within(offered).unwrap(), 1000);
        assert_eq!((plain.mtu, special.mtu), (1500, 1000));
        assert_ne!(
            narrows_sys::netns::read_sysctl("net.ipv4.tcp_rmem").unwrap(),
            plain.sysctls["net.ipv4.tcp_rmem"],
            "the agent's own namespace keeps its settings"
        );
        let devices = hosts
            .host(SENDER)
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

#[test]
fn settings_that_a_host_cannot_have_are_refused_in_one_sentence() {
    in_private_network(
        "settings_that_a_host_cannot_have_are_refused_in_one_sentence",
        || {
            let refused = |key: &str, value: &str| {
                let plan = HostPlan {
                    settings: vec![(format!("net.ipv4.{key}"), value.to_owned())],
                    ..HostPlan::named("h")
                };
                build(&[plan], 8 << 20).expect_err("it must be refused")
            };
            let unknown = refused("tcp_sakc", "0").to_string();
            assert!(
                unknown.contains("has no setting net.ipv4.tcp_sakc"),
                "{unknown}"
            );
            let absent = refused("tcp_congestion_control", "swift").to_string();
            assert!(
                absent.contains("has no congestion control 'swift'"),
                "{absent}"
            );
            for (key, value) in [
                ("tcp_sack", "maybe"),
                ("tcp_reordering", "1000000000000000"),
            ] {
                let error = refused(key, value);
                let unavailable = matches!(error, narrows_cell::RunError::Unavailable(_));
                assert!(unavailable && error.to_string().contains(value), "{error}");
            }
        },
    );
}

#[test]
fn every_host_reaches_every_other_by_its_address() {
    in_private_network("every_host_reaches_every_other_by_its_address", || {
        let names: Vec<String> = (0..20).map(|n| format!("h{n}")).collect();
        let plans: Vec<HostPlan> = names.iter().map(|name| HostPlan::named(name)).collect();
        let mut hosts = build(&plans, 8 << 20).unwrap();
        let mut near = RxRing::open(hosts.host(7).outer, 64, 1514).unwrap();
        let mut port = TxPort::open(hosts.host(19).outer).unwrap();
        wake(&mut hosts, 7, &mut near);
        let (from, to) = (udp(&hosts, 7, 19, 5001), udp(&hosts, 19, 7, 5001));
        socket::send(from.as_fd(), b"hello").unwrap();
        wait_readable(&near);
        assert_eq!(
            port.send(std::iter::once(near.peek().unwrap().bytes))
                .unwrap(),
            1
        );
        near.release();
        wait_readable(&to);
        let mut receiver = UdpReceiver::default();
        assert_eq!(receiver.receive(to.as_fd()).unwrap(), 1);
        assert_eq!(receiver.datagram(0).bytes, b"hello");
    });
}
