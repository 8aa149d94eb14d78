//! Both ends of a scheme that is in no registry, over two sockets of this machine.

use super::*;
use narrows_media::MediaSetup;
use narrows_sys::clock::{mono_ns, real_ns};
use narrows_tests::media::{METRONOME, PARTS};
use narrows_units::{Params, Stream};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

fn pair() -> (OwnedFd, OwnedFd) {
    let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (a, b) = (socket(), socket());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    for socket in [&a, &b] {
        socket.set_nonblocking(true).unwrap();
    }
    (a.into(), b.into())
}

fn ends() -> (End, End) {
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
    (End::Sender(sender), End::Receiver(receiver))
}

#[test]
fn messages_travel_both_ways_as_they_are() {
    let (mut sender, mut receiver) = ends();
    let (a, b) = pair();
    let (mut near, mut far) = (
        Line::new(a, 1, 0, Time::FAR).unwrap(),
        Line::new(b, 1, 0, Time::FAR).unwrap(),
    );
    let clock = RunClock::new(real_ns(), mono_ns());
    // Nine of the first ten frames are sent; without any sleep, so the machine's load only delays it.
    let wanted = 9 * u64::from(PARTS);
    let begun = Instant::now();
    while near.received[0] < wanted && begun.elapsed() < Duration::from_secs(20) {
        let now = clock.now();
        near.transmit(&mut sender, now).unwrap();
        far.receive(&mut receiver, &clock).unwrap();
        far.transmit(&mut receiver, now).unwrap();
        near.receive(&mut sender, &clock).unwrap();
    }
    assert!(near.received[0] >= wanted, "{:?}", near.received);
    assert_eq!((near.garbage, far.garbage), (0, 0));
    // IP sizes: full packets one way, 8 bytes of content the other way.
    assert_eq!(near.sending.sent[1], near.sending.sent[0] * 1500);
    assert_eq!(far.sending.sent[1], far.sending.sent[0] * (28 + 16 + 8));
    let (End::Sender(sender), End::Receiver(receiver)) = (&mut sender, &mut receiver) else {
        unreachable!("they were made as this")
    };
    assert_eq!(sender.counters().acked_packets, near.received[0]);
    assert_eq!(receiver.counters().received_packets, far.received[0]);
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    sender.take_frames(&mut sent);
    receiver.take_frames(&mut arrived);
    assert!(arrived.len() >= 9);
    for frame in &arrived {
        let captured = sent[frame.number as usize].at;
        assert!(frame.at >= captured, "{frame:?} was captured at {captured}");
    }
}

#[test]
fn what_is_no_message_of_the_peer_is_counted_and_dropped() {
    let (mut sender, mut receiver) = ends();
    let (a, b) = pair();
    let (mut near, mut far) = (
        Line::new(a, 1, 0, Time::FAR).unwrap(),
        Line::new(b, 1, 0, Time::FAR).unwrap(),
    );
    let clock = RunClock::new(real_ns(), mono_ns());
    // Media where feedback belongs, and no message at all.
    near.transmit(&mut sender, clock.now()).unwrap();
    socket::send(far.fd.as_fd(), b"hello").unwrap();
    let begun = Instant::now();
    while near.garbage + far.received[0] < 1 + u64::from(PARTS)
        && begun.elapsed() < Duration::from_secs(20)
    {
        near.receive(&mut sender, &clock).unwrap();
        far.receive(&mut receiver, &clock).unwrap();
    }
    assert_eq!((near.garbage, far.garbage), (1, 0));
    // The sender's own packets, sent back to it.
    let before = near.garbage;
    let Some(out) = sender
        .endpoint()
        .transmit(clock.now(), &mut near.body)
        .or_else(|| {
            let later = clock.now() + Span::from_ms(2);
            sender.endpoint().transmit(later, &mut near.body)
        })
    else {
        panic!("a frame is due every 2 ms")
    };
    let mut bytes = Vec::new();
    wire::encode(1, &out.header, &near.body, &mut bytes);
    socket::send(far.fd.as_fd(), &bytes).unwrap();
    while near.garbage == before && begun.elapsed() < Duration::from_secs(20) {
        near.receive(&mut sender, &clock).unwrap();
    }
    assert_eq!(near.garbage, before + 1);
}
