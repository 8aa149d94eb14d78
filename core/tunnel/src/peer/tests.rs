mod attacks;

use super::*;
use crate::keys::{Secret, TAG};
use crate::wire::HEADER;
use narrows_units::Stream;
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddrV4};

const GAP: Span = Span::from_ms(100);

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, last), port))
}

fn dialer_address() -> SocketAddr {
    address(1, 1000)
}

fn listener_address() -> SocketAddr {
    address(2, 2000)
}

fn config(role: Role, secret: u8, salt: u64) -> PeerConfig {
    PeerConfig {
        role,
        secret: Secret::new([secret; 32]),
        salt,
        clock_gap: GAP,
        silence: Span::from_ms(5_000),
        interface_mtu: 1500,
    }
}

fn dialer(secret: u8, salt: u64) -> Peer {
    Peer::new(
        config(Role::Dialer(listener_address()), secret, salt),
        Time::ZERO,
    )
}

fn listener(secret: u8, salt: u64) -> Peer {
    Peer::new(config(Role::Listener, secret, salt), Time::ZERO)
}

fn ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// All datagrams that a peer has to send now.
fn drain(peer: &mut Peer, now: Time) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    let mut bytes = Vec::new();
    while peer.transmit(now, &mut bytes).is_some() {
        sent.push(bytes.clone());
    }
    sent
}

fn packet(peer: &mut Peer, now: Time, content: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = vec![0; HEADER];
    buffer.extend(content);
    buffer.extend([0; TAG]);
    peer.seal(now, &mut buffer)?;
    Some(buffer)
}

/// Runs both over a perfect path until `until`, and returns all datagrams sent.
fn talk(a: &mut Peer, b: &mut Peer, from: Time, until: Time) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut now = from;
    while now <= until {
        loop {
            let (there, back) = (drain(a, now), drain(b, now));
            for bytes in &there {
                b.receive(now, dialer_address(), bytes);
            }
            for bytes in &back {
                a.receive(now, listener_address(), bytes);
            }
            if there.is_empty() && back.is_empty() {
                break;
            }
            all.extend(there.into_iter().chain(back));
        }
        now += Span::from_ms(5);
    }
    all
}

fn open_pair() -> (Peer, Peer, Vec<Vec<u8>>) {
    let (mut a, mut b) = (dialer(1, 10), listener(1, 20));
    let all = talk(&mut a, &mut b, ms(1), ms(300));
    assert_eq!((a.state(), b.state()), (PeerState::Open, PeerState::Open));
    (a, b, all)
}

#[test]
fn two_ends_with_the_same_secret_exchange_packets_and_stamps() {
    let (mut a, mut b, _) = open_pair();
    assert_eq!(b.to(), Some(dialer_address()));
    let bytes = packet(&mut a, ms(400), b"forward").unwrap();
    let ReceivedDatagram::Packet {
        sent,
        packet: inner,
        id,
    } = b.receive(ms(401), dialer_address(), &bytes)
    else {
        panic!("the packet was refused")
    };
    assert_eq!((sent, inner), (ms(400), &b"forward"[..]));
    let bytes = packet(&mut b, ms(402), b"backward").unwrap();
    assert!(matches!(
        a.receive(ms(403), listener_address(), &bytes),
        ReceivedDatagram::Packet {
            packet: b"backward",
            ..
        }
    ));
    // The listener's next clock message returns the stamps of the packet.
    let clock = drain(&mut b, ms(410)).pop().unwrap();
    let ReceivedDatagram::Clock { exchange, .. } = a.receive(ms(411), listener_address(), &clock)
    else {
        panic!("the clock message was refused")
    };
    let expected = ClockExchange {
        sent: ms(400),
        arrived_there: ms(401),
        sent_there: ms(410),
        arrived: ms(411),
    };
    assert_eq!(exchange, Some(expected));
    assert!(id > 0);
    assert_eq!(a.counts().all_refused() + b.counts().all_refused(), 0);
    assert_eq!(a.search().unwrap().found(), Some(1500));
    assert_eq!(b.search().unwrap().found(), Some(1500));
}

#[test]
fn numbers_are_never_used_twice_and_count_on_over_sessions() {
    let (mut a, mut b, _) = open_pair();
    let mut last = None;
    for step in 0..3u64 {
        let from = ms(1_000 + 10_000 * step);
        let mut buffer = vec![0; HEADER + TAG];
        let (_, id) = a.seal(from, &mut buffer).unwrap();
        assert!(last.is_none_or(|last| id > last));
        last = Some(id);
        // After a silence of this length it calls again.
        talk(
            &mut a,
            &mut b,
            ms(9_000 + 10_000 * step),
            ms(9_500 + 10_000 * step),
        );
        assert_eq!(a.state(), PeerState::Open);
    }
    assert_eq!(b.counts().sessions, 4);
}

#[test]
fn what_was_recorded_is_never_taken_again() {
    let (mut a, mut b, all) = open_pair();
    let mut recorded = all;
    recorded.extend((0..50).map(|index| packet(&mut a, ms(500), &[index; 40]).unwrap()));
    for bytes in recorded.iter().rev().take(50) {
        assert!(matches!(
            b.receive(ms(501), dialer_address(), bytes),
            ReceivedDatagram::Packet { .. }
        ));
    }
    let (state_a, state_b) = (a.counts().clone(), b.counts().clone());
    // To both, in the same session, from anywhere: also their own datagrams.
    for bytes in &recorded {
        assert!(matches!(
            a.receive(ms(502), address(9, 9), bytes),
            ReceivedDatagram::Refused(_)
        ));
        assert!(matches!(
            b.receive(ms(502), address(9, 9), bytes),
            ReceivedDatagram::Refused(_)
        ));
    }
    assert_eq!(
        (a.counts().packets, a.counts().sessions),
        (state_a.packets, state_a.sessions)
    );
    assert_eq!(
        (b.counts().packets, b.counts().sessions),
        (state_b.packets, state_b.sessions)
    );
    assert_eq!(b.to(), Some(dialer_address()));
    // To another listener with the same secret, and to this one after a new call.
    let mut other = listener(1, 30);
    for bytes in &recorded {
        assert!(!matches!(
            other.receive(ms(503), dialer_address(), bytes),
            ReceivedDatagram::Packet { .. }
        ));
    }
    assert_eq!(other.state(), PeerState::Waiting);
    let mut again = dialer(1, 11);
    talk(&mut again, &mut b, ms(600), ms(700));
    assert_eq!(b.counts().sessions, 2);
    for bytes in &recorded {
        assert!(!matches!(
            b.receive(ms(701), dialer_address(), bytes),
            ReceivedDatagram::Packet { .. }
        ));
    }
    let fresh = packet(&mut again, ms(702), b"still here").unwrap();
    assert!(matches!(
        b.receive(ms(703), dialer_address(), &fresh),
        ReceivedDatagram::Packet { .. }
    ));
}

#[test]
fn an_old_hello_does_not_close_the_session() {
    let mut first = dialer(1, 10);
    let hello = drain(&mut first, ms(1)).pop().unwrap();
    // Lost then; the dialer was started anew and has a session.
    let (mut a, mut b) = (dialer(1, 11), listener(1, 20));
    talk(&mut a, &mut b, ms(1), ms(300));
    b.receive(ms(400), address(9, 9), &hello);
    let answer = drain(&mut b, ms(400));
    // The answer goes to the stranger, who cannot use it, and is not longer than the call.
    assert!(answer.iter().all(|bytes| bytes.len() <= hello.len()));
    let bytes = packet(&mut a, ms(401), b"packet").unwrap();
    assert!(matches!(
        b.receive(ms(402), dialer_address(), &bytes),
        ReceivedDatagram::Packet { .. }
    ));
    let bytes = packet(&mut b, ms(403), b"packet").unwrap();
    assert!(matches!(
        a.receive(ms(404), listener_address(), &bytes),
        ReceivedDatagram::Packet { .. }
    ));
}

#[test]
fn another_secret_is_refused_by_both() {
    let (mut a, mut b) = (dialer(1, 10), listener(2, 20));
    talk(&mut a, &mut b, ms(1), ms(2_000));
    assert_eq!(
        (a.state(), b.state()),
        (PeerState::Waiting, PeerState::Waiting)
    );
    // One hello every 250 ms from 1 ms on.
    assert_eq!(b.counts().refused(DatagramRefusal::Forged), 8);
    assert!(packet(&mut a, ms(3_000), b"no listener").is_none());
}

#[test]
fn another_version_is_named_at_both_ends() {
    let (mut a, mut b) = (dialer(1, 10), listener(1, 20));
    let hello = Body::Hello {
        version: 9,
        dialer: a.calling.unwrap(),
    };
    let mut bytes = Vec::new();
    a.write_handshake(ms(1), listener_address(), &hello, &mut bytes);
    assert_eq!(
        b.receive(ms(2), dialer_address(), &bytes),
        ReceivedDatagram::Refused(DatagramRefusal::Incompatible)
    );
    assert_eq!(b.state(), PeerState::Incompatible(9));
    // A caller of version 9 would learn ours from the answer.
    assert_eq!(drain(&mut b, ms(2)).len(), 1);
    // A listener of another version answers with that.
    let welcome = Body::Welcome {
        version: 9,
        dialer: a.calling.unwrap(),
        listener: [0; 16],
    };
    b.write_handshake(ms(3), dialer_address(), &welcome, &mut bytes);
    a.receive(ms(4), listener_address(), &bytes);
    assert_eq!(a.state(), PeerState::Incompatible(9));
    // Neither is disturbed by it.
    talk(&mut a, &mut b, ms(300), ms(600));
    assert_eq!((a.state(), b.state()), (PeerState::Open, PeerState::Open));
}

#[test]
fn a_farewell_ends_the_session_at_both_ends() {
    let (mut a, mut b, _) = open_pair();
    let overtaken = packet(&mut a, ms(399), b"overtaken").unwrap();
    a.close();
    assert_eq!(a.next_wakeup(), Time::ZERO);
    let bye = drain(&mut a, ms(400)).pop().unwrap();
    assert_eq!(
        b.receive(ms(401), dialer_address(), &bye),
        ReceivedDatagram::Control
    );
    assert_eq!((a.state(), b.state()), (PeerState::Ended, PeerState::Ended));
    // It was in flight when the farewell overtook it.
    assert!(matches!(
        b.receive(ms(402), dialer_address(), &overtaken),
        ReceivedDatagram::Packet { .. }
    ));
    // Farewells may get lost, so there are three.
    assert_eq!(
        (
            drain(&mut a, ms(410)).len(),
            drain(&mut a, ms(420)).len(),
            drain(&mut a, ms(430)).len()
        ),
        (1, 1, 0)
    );
    assert_eq!((a.next_wakeup(), b.next_wakeup()), (Time::FAR, Time::FAR));
    assert!(packet(&mut a, ms(440), b"late").is_none());
    assert!(packet(&mut b, ms(440), b"late").is_none());
    // Another call opens another session.
    let mut again = dialer(1, 11);
    talk(&mut again, &mut b, ms(500), ms(600));
    assert_eq!(b.state(), PeerState::Open);
}

#[test]
fn stamps_from_the_future_are_refused() {
    let (mut a, mut b, _) = open_pair();
    b.echo = Some((ms(90_000), ms(1)));
    let clock = drain(&mut b, ms(500)).pop().unwrap();
    assert_eq!(
        a.receive(ms(501), listener_address(), &clock),
        ReceivedDatagram::Refused(DatagramRefusal::Implausible)
    );
}

/// Effects of a path on a datagram.
#[derive(Clone, Copy, Debug)]
enum Accident {
    None,
    Lost,
    Twice,
    Changed,
    Cut,
    /// Delivered 25 ms later than others.
    Late,
    /// Delivered to the other end, too.
    Reflected,
}

fn accident() -> impl Strategy<Value = Accident> {
    prop_oneof![
        6 => Just(Accident::None),
        2 => Just(Accident::Lost),
        1 => Just(Accident::Twice),
        1 => Just(Accident::Changed),
        1 => Just(Accident::Cut),
        2 => Just(Accident::Late),
        1 => Just(Accident::Reflected),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// For any behaviour of the path and any injected datagrams: packets arrive at most once, unchanged, and the ends
    /// connect once the path works.
    #[test]
    fn a_hostile_path_neither_confuses_nor_crashes(
        accidents in prop::collection::vec(accident(), 200),
        noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 20),
        seed: u64,
    ) {
        let mut chance = Stream::new(seed, "hostile");
        let (mut a, mut b) = (dialer(1, 10), listener(1, 20));
        // Time, whether to the dialer, and content.
        let mut way: Vec<(Time, bool, Vec<u8>)> = Vec::new();
        let mut sent = [Vec::new(), Vec::new()];
        let mut taken = [Vec::new(), Vec::new()];
        let mut accidents = accidents.into_iter();
        for step in 0..600u64 {
            let now = ms(1 + 5 * step);
            for (to_dialer, peer) in [(false, &mut a), (true, &mut b)] {
                let mut out = drain(peer, now);
                if step % 3 == 0 {
                    let content = (step * 2 + u64::from(to_dialer)).to_be_bytes();
                    if let Some(bytes) = packet(peer, now, &content) {
                        sent[usize::from(to_dialer)].push(content.to_vec());
                        out.push(bytes);
                    }
                }
                for bytes in out {
                    let soon = now + Span::from_ms(2);
                    // From the middle on the path is perfect.
                    let accident = if step < 300 { accidents.next() } else { None };
                    match accident.unwrap_or(Accident::None) {
                        Accident::None => way.push((soon, to_dialer, bytes)),
                        Accident::Lost => {}
                        Accident::Twice => {
                            way.push((soon, to_dialer, bytes.clone()));
                            way.push((soon + Span::from_ms(9), to_dialer, bytes));
                        }
                        Accident::Changed => {
                            let mut bytes = bytes;
                            let at = chance.below(bytes.len() as u64) as usize;
                            bytes[at] ^= 1 + chance.below(255) as u8;
                            way.push((soon, to_dialer, bytes));
                        }
                        Accident::Cut => {
                            let length = chance.below(bytes.len() as u64) as usize;
                            way.push((soon, to_dialer, bytes[..length].to_vec()));
                        }
                        Accident::Late => way.push((soon + Span::from_ms(25), to_dialer, bytes)),
                        Accident::Reflected => {
                            way.push((soon, to_dialer, bytes.clone()));
                            way.push((soon, !to_dialer, bytes));
                        }
                    }
                }
            }
            if let Some(bytes) = noise.get(chance.below(200) as usize) {
                way.push((now, chance.chance(0.5), bytes.clone()));
            }
            let (due, later): (Vec<_>, Vec<_>) = way.into_iter().partition(|(time, ..)| *time <= now);
            way = later;
            for (_, to_dialer, bytes) in due {
                let (peer, from) = if to_dialer { (&mut a, listener_address()) } else { (&mut b, dialer_address()) };
                if let ReceivedDatagram::Packet { packet, .. } = peer.receive(now, from, &bytes) {
                    taken[usize::from(to_dialer)].push(packet.to_vec());
                }
            }
        }
        prop_assert_eq!((a.state(), b.state()), (PeerState::Open, PeerState::Open));
        for (sent, taken) in sent.iter().zip(&mut taken) {
            // Calls are 250 ms apart, so both are open long before the last 300 ms; datagrams still in flight are not
            // counted.
            let recent = sent.len().saturating_sub(20);
            let arrived = sent[recent..sent.len() - 2].iter().all(|content| taken.contains(content));
            prop_assert!(arrived);
            let all = taken.len();
            taken.sort();
            taken.dedup();
            prop_assert_eq!(all, taken.len());
            prop_assert!(taken.iter().all(|content| sent.contains(content)));
        }
    }
}
