//! Both ends of an unregistered scheme, over two sockets of this machine.

use super::*;
use narrows_media::MediaSetup;
use narrows_sys::clock::{mono_ns, real_ns};
use narrows_tests::media::{METRONOME, PARTS};
use narrows_transport::{Endpoint, wire};
use narrows_units::{Params, Span, Stream};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

fn sockets() -> (OwnedFd, OwnedFd) {
    let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (a, b) = (socket(), socket());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    for socket in [&a, &b] {
        socket.set_nonblocking(true).unwrap();
    }
    (a.into(), b.into())
}

/// Both ends of a flow.
fn ends() -> (Linked, Linked) {
    // Ten frames in 20 ms.
    let beat = METRONOME.params[0].parse("2000000").unwrap();
    let params = Params::resolve(METRONOME.params, [("beat".to_owned(), beat)]).unwrap();
    let setup = || MediaSetup {
        now: Time::ZERO,
        packet_size: 1500,
        random: Stream::new(1, "test"),
    };
    let sender = (METRONOME.sender)(&params, setup()).unwrap();
    let receiver = (METRONOME.receiver)(&params, setup()).unwrap();
    let (a, b) = sockets();
    (
        Linked::new(a, Machine::MediaSender(sender)),
        Linked::new(b, Machine::MediaReceiver(receiver)),
    )
}

/// An endpoint with its buffers.
struct Linked {
    link: Link<Machine>,
    buffers: SocketBuffers,
}

impl Linked {
    fn new(fd: OwnedFd, machine: Machine) -> Self {
        socket::prepare_udp(fd.as_fd(), 1 << 20).unwrap();
        Linked {
            link: Link::new(fd, machine),
            buffers: SocketBuffers::new(1, 0, Time::FAR),
        }
    }

    fn receive(&mut self, clock: &RunClock) {
        self.link.receive(&mut self.buffers, clock).unwrap();
    }

    fn transmit(&mut self, now: Time) {
        self.link.transmit(&mut self.buffers, now).unwrap();
    }
}

#[test]
fn messages_travel_both_ways_as_they_are() {
    let (mut near, mut far) = ends();
    let clock = RunClock::new(real_ns(), mono_ns());
    // Nine of the first ten frames are sent; without any sleep, so the machine's load only delays it.
    let wanted = 9 * u64::from(PARTS);
    let begun = Instant::now();
    while near.buffers.received[0] < wanted && begun.elapsed() < Duration::from_mins(1) {
        let now = clock.now();
        near.transmit(now);
        far.receive(&clock);
        far.transmit(now);
        near.receive(&clock);
    }
    let (sent, received) = (near.buffers.sending.sent, near.buffers.received);
    assert!(received[0] >= wanted, "{received:?}");
    assert_eq!((near.buffers.garbage, far.buffers.garbage), (0, 0));
    // IP sizes: full packets one way, 8 bytes of content the other way.
    assert_eq!(sent[1], sent[0] * 1500);
    let answers = far.buffers.sending.sent;
    assert_eq!(answers[1], answers[0] * (28 + 16 + 8));
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    near.link.endpoint.take_frames(&mut sent, &mut arrived);
    far.link.endpoint.take_frames(&mut sent, &mut arrived);
    let (Machine::MediaSender(sender), Machine::MediaReceiver(receiver)) =
        (&near.link.endpoint, &far.link.endpoint)
    else {
        unreachable!("they were made as this")
    };
    assert_eq!(sender.counters().acked_packets, received[0]);
    let counters = receiver.counters();
    assert_eq!(counters.received_packets, far.buffers.received[0]);
    assert!(arrived.len() >= 9);
    for frame in &arrived {
        let captured = sent[frame.number as usize].at;
        assert!(frame.at >= captured, "{frame:?} was captured at {captured}");
    }
}

#[test]
fn what_is_no_message_of_the_peer_is_counted_and_dropped() {
    let (mut near, mut far) = ends();
    let clock = RunClock::new(real_ns(), mono_ns());
    // Media in place of feedback, and an invalid message.
    near.transmit(clock.now());
    socket::send(far.link.socket(), b"hello").unwrap();
    let begun = Instant::now();
    while near.buffers.garbage + far.buffers.received[0] < 1 + u64::from(PARTS)
        && begun.elapsed() < Duration::from_mins(1)
    {
        near.receive(&clock);
        far.receive(&clock);
    }
    assert_eq!((near.buffers.garbage, far.buffers.garbage), (1, 0));
    // The sender's own packets, sent back to it.
    let before = near.buffers.garbage;
    let (sender, body) = (&mut near.link.endpoint, &mut near.buffers.body);
    let Some(out) = sender.transmit(clock.now(), body).or_else(|| {
        let later = clock.now() + Span::from_ms(2);
        sender.transmit(later, body)
    }) else {
        panic!("a frame is due every 2 ms")
    };
    let mut bytes = Vec::new();
    wire::encode(1, &out.header, &near.buffers.body, &mut bytes);
    socket::send(far.link.socket(), &bytes).unwrap();
    while near.buffers.garbage == before && begun.elapsed() < Duration::from_mins(1) {
        near.receive(&clock);
    }
    assert_eq!(near.buffers.garbage, before + 1);
}
