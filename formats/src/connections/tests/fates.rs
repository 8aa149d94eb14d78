//! The fates of packets follow from acknowledgements at the sender, and from holes at the receiver.

use super::*;
use crate::connections::{Fates, fates};
use crate::pcapng::Sack;

const NEVER: i64 = Fates::NEVER;

fn seen_with(packets: Vec<Packet>, sacks: Vec<Sack>) -> View {
    let capture = Capture {
        packets,
        sacks,
        interfaces: vec!["eth0".into()],
        addresses: vec!["192.0.2.1".into(), "192.0.2.2".into()],
        ..Capture::default()
    };
    views(capture).0.remove(0)
}

fn stamped(packet: Packet, stamp: u32, echo: u32) -> Packet {
    Packet {
        stamp,
        echo,
        ..packet
    }
}

fn sacked(packet: Packet, sack: u32) -> Packet {
    Packet { sack, ..packet }
}

/// Five packets of 1000 bytes, of which the second is lost and sent again.
fn one_loss() -> (Vec<Packet>, Vec<Sack>) {
    let begin = |number: u32| 1 + number * 1000;
    let mut packets: Vec<Packet> = (0..5)
        .map(|number| data(i64::from(number) * MS, begin(number), 1000))
        .collect();
    packets.push(ack(40 * MS, 1001));
    let range = |from: u32, end: u32| [[from, end], [0, 0], [0, 0], [0, 0]];
    packets.push(sacked(ack(42 * MS, 1001), 1));
    packets.push(sacked(ack(43 * MS, 1001), 2));
    packets.push(data(44 * MS, 1001, 1000));
    packets.push(sacked(ack(45 * MS, 1001), 3));
    packets.push(ack(84 * MS, 5001));
    let sacks = vec![range(2001, 3001), range(2001, 4001), range(2001, 5001)];
    (packets, sacks)
}

#[test]
fn selective_acknowledgements_tell_when_each_packet_arrived() {
    let (packets, sacks) = one_loss();
    let view = seen_with(packets, sacks);
    let fates = fates(&view, &view.connections[0]).unwrap();
    assert_eq!(fates.side, Some(Side::Sender));
    let known: Vec<i64> = [40, 0, 42, 43, 45, 84]
        .map(|time| if time == 0 { NEVER } else { time * MS })
        .to_vec();
    assert_eq!(fates.known_ns, known);
    assert_eq!(fates.again, [false, false, false, false, false, true]);
    assert_eq!(fates.repeated_ns[1], 44 * MS);
    assert_eq!(
        fates
            .repeated_ns
            .iter()
            .filter(|time| **time != NEVER)
            .count(),
        1
    );
    assert_eq!(fates.answers_ns.len(), 5);
}

#[test]
fn a_duplicate_selective_acknowledgement_tells_that_the_first_transmission_arrived() {
    let (mut packets, mut sacks) = one_loss();
    packets.push(sacked(ack(86 * MS, 5001), 4));
    sacks.push([[1001, 2001], [0, 0], [0, 0], [0, 0]]);
    let view = seen_with(packets, sacks);
    let fates = fates(&view, &view.connections[0]).unwrap();
    assert_eq!(fates.known_ns[1], 86 * MS);
    assert!(!fates.known_ns.contains(&NEVER));
}

#[test]
fn an_echoed_time_stamp_tells_which_transmission_was_acknowledged() {
    let again = |echo: u32| {
        let packets = vec![
            stamped(data(0, 1, 1000), 10, 0),
            stamped(data(50 * MS, 1, 1000), 60, 0),
            stamped(ack(95 * MS, 1001), 500, echo),
        ];
        let view = seen_with(packets, Vec::new());
        fates(&view, &view.connections[0]).unwrap().known_ns
    };
    assert_eq!(again(10), [95 * MS, NEVER]);
    assert_eq!(again(60), [NEVER, 95 * MS]);
}

/// Packets that arrive every millisecond at a receiver 20 ms away, which answers each of them at once; those of `lost`
/// arrive 60 ms later by a repetition.
fn at_receiver(lost: &[u32]) -> View {
    let mut packets = vec![syn(0, 999)];
    packets.push(Packet {
        flags: 0x12,
        ..ack(1000, 1000)
    });
    packets.push(stamped(data(40 * MS, 1000, 0), 20, 0));
    let mut arrivals: Vec<(i64, u32, u32)> = Vec::new();
    for number in 0..600_u32 {
        let later = if lost.contains(&number) { 60 } else { 0 };
        arrivals.push((i64::from(100 + number + later) * MS, number, later));
    }
    arrivals.sort_unstable();
    let mut next = 0;
    let mut early = std::collections::BTreeSet::new();
    for (time, number, later) in arrivals {
        packets.push(stamped(
            data(time, 1000 + number * 1000, 1000),
            1000 + number + later,
            0,
        ));
        early.insert(number);
        while early.remove(&next) {
            next += 1;
        }
        packets.push(ack(time + 5000, 1000 + next * 1000));
    }
    seen_with(packets, Vec::new())
}

#[test]
fn a_hole_that_a_repetition_fills_is_a_loss_at_the_receiver() {
    let view = at_receiver(&[200, 201, 300]);
    let fates = fates(&view, &view.connections[0]).unwrap();
    assert_eq!(fates.side, Some(Side::Receiver));
    assert_eq!(fates.tick_ns, Some(MS));
    assert_eq!(fates.known_ns.len(), 603);
    let lost: Vec<i64> = fates
        .sent_ns
        .iter()
        .zip(&fates.known_ns)
        .filter(|it| *it.1 == NEVER)
        .map(|it| *it.0)
        .collect();
    // A packet is sent each millisecond, and needs half of the round trip of the handshake, 40 ms.
    let expected = [200, 201, 300].map(|number| (100 + number) * MS - 20 * MS);
    for (sent, expected) in lost.iter().zip(expected) {
        assert!((sent - expected).abs() < MS, "{sent} {expected}");
    }
    assert_eq!(lost.len(), 3);
    assert_eq!(fates.again.iter().filter(|again| **again).count(), 3);
    assert!(fates.sent_ns.is_sorted());
}

#[test]
fn data_that_are_late_or_acknowledged_without_being_captured_are_no_losses() {
    // The receiver acknowledges all, but the capture lacks a packet.
    let mut view = at_receiver(&[]);
    let place = view
        .packets
        .iter()
        .position(|packet| packet.sequence == 1000 + 300 * 1000 && packet.payload > 0)
        .unwrap();
    view.packets.remove(place);
    let view = seen_with(view.packets, Vec::new());
    let evaluated = fates(&view, &view.connections[0]).unwrap();
    assert_eq!((evaluated.known_ns.len(), evaluated.unclear), (599, 1));
    // A late packet has an older time stamp.
    let mut late = at_receiver(&[]).packets;
    let place = late
        .iter()
        .position(|packet| packet.sequence == 1000 + 300 * 1000 && packet.payload > 0)
        .unwrap();
    late[place].time_ns += 2 * MS + 1000;
    for packet in &mut late {
        let upto = 1000 + 300 * 1000;
        if packet.payload == 0 && (upto + 1..=upto + 2000).contains(&packet.acknowledgement) {
            packet.acknowledgement = upto;
        }
    }
    late.sort_by_key(|packet| packet.time_ns);
    let view = seen_with(late, Vec::new());
    let evaluated = fates(&view, &view.connections[0]).unwrap();
    assert_eq!((evaluated.known_ns.len(), evaluated.unclear), (600, 0));
    assert!(!evaluated.known_ns.contains(&NEVER));
}

#[test]
fn the_end_of_a_udp_connection_that_answers_at_once_is_the_one_where_it_was_captured() {
    let datagram = |packet: Packet| Packet {
        protocol: 17,
        flags: 0,
        ..packet
    };
    let seen = |answer: i64| {
        let mut packets = vec![
            datagram(data(0, 0, 500)),
            datagram(Packet {
                payload: 30,
                ..ack(answer, 0)
            }),
        ];
        for number in 0..20 {
            packets.push(datagram(data(41 * MS + number * MS, 0, 1200)));
        }
        let view = seen_with(packets, Vec::new());
        fates(&view, &view.connections[0]).unwrap()
    };
    let near = seen(40 * MS);
    assert_eq!(near.side, Some(Side::Sender));
    assert!(near.known_ns.iter().all(|time| *time == NEVER));
    let far = seen(MS);
    assert_eq!(far.side, Some(Side::Receiver));
    assert!(far.sent_ns.iter().all(|time| *time == NEVER));
    assert_eq!(seen(20 * MS).side, None);
}
