//! Connections are split, measured and matched by their bytes. Packets here are made by hand, so that expected results
//! follow from their times and bytes.

use super::ranges::Ranges;
use super::{Relation, Side, View, compare_captures, one_end, views};
use crate::pcapng::{Capture, Packet, Unread};

mod fates;
mod translation;

const MS: i64 = 1_000_000;
const MSS: u32 = 1448;

fn data(time_ns: i64, begin: u32, bytes: u32) -> Packet {
    Packet {
        time_ns,
        sequence: begin,
        size: bytes + 52,
        payload: bytes,
        source_port: 40_000,
        destination_port: 5201,
        destination: 1,
        protocol: 6,
        flags: 0x18,
        ..Packet::default()
    }
}

fn ack(time_ns: i64, upto: u32) -> Packet {
    Packet {
        time_ns,
        acknowledgement: upto,
        size: 52,
        source: 1,
        source_port: 5201,
        destination_port: 40_000,
        protocol: 6,
        flags: 0x10,
        ..Packet::default()
    }
}

fn syn(time_ns: i64, sequence: u32) -> Packet {
    Packet {
        flags: 0x02,
        ..data(time_ns, sequence, 0)
    }
}

fn view(packets: Vec<Packet>) -> View {
    let capture = Capture {
        packets,
        interfaces: vec!["eth0".into()],
        addresses: vec!["192.0.2.1".into(), "192.0.2.2".into()],
        ..Capture::default()
    };
    let (mut views, unread) = views(capture);
    assert_eq!(unread.values().sum::<u64>(), 0);
    views.remove(0)
}

#[test]
fn a_round_trip_time_ends_when_the_last_byte_of_a_frame_is_acknowledged() {
    let mut packets = Vec::new();
    for k in 0..20_u32 {
        let (at, begin) = (i64::from(k) * 200 * MS, 1000 + k * 10 * MSS);
        packets.push(data(at, begin, 10 * MSS));
        for part in 1..=10 {
            let arrives = at + 40 * MS + i64::from(part) * 10_000;
            packets.push(ack(arrives, begin + part * MSS));
        }
    }
    let view = view(packets);
    let end = one_end(&view, &view.connections[0]).unwrap();
    let samples: Vec<f64> = end
        .rtt_ns
        .into_iter()
        .filter(|rtt| rtt.is_finite())
        .collect();
    assert_eq!(samples, vec![40.1e6; 20]);
    assert_eq!(end.large_frames, 20);
    // On the wire each of the ten packets of a frame has headers.
    assert_eq!(end.sent_packets, 200);
    assert_eq!(end.sent_bytes.last(), Some(&f64::from(200 * 1500)));
    assert_eq!(end.arrived_bytes.last(), end.sent_bytes.last());
}

#[test]
fn repeated_data_give_no_round_trip_time_without_time_stamps() {
    let again = |stamp: u32| {
        let mut packets = vec![
            data(0, 1, 100),
            data(MS, 101, 100),
            data(50 * MS, 1, 100),
            ack(70 * MS, 201),
        ];
        for (packet, value) in packets.iter_mut().zip([1_u32, 2, 51, 0]) {
            packet.stamp = value * stamp;
        }
        packets[3].echo = 51 * stamp;
        let view = view(packets);
        one_end(&view, &view.connections[0]).unwrap()
    };
    assert!(again(0).rtt_ns.iter().all(|rtt| rtt.is_nan()));
    assert_eq!(again(1).rtt_ns, vec![20e6]);
    assert_eq!(again(1).retransmitted_packets, 1);
}

#[test]
fn data_that_a_sender_captured_out_of_order_are_not_repeated() {
    let packets = vec![data(0, 101, 100), data(5 * MS, 1, 100), ack(40 * MS, 201)];
    let view = view(packets);
    assert_eq!(
        one_end(&view, &view.connections[0])
            .unwrap()
            .retransmitted_packets,
        0
    );
}

#[test]
fn a_syn_on_used_ports_begins_a_connection_whatever_its_number() {
    for second in [5_000_000, 20, 999, 0xffff_fff0_u32] {
        let mut packets = Vec::new();
        for (start, initial) in [(0, 999_u32), (1000 * MS, second)] {
            packets.push(syn(start, initial));
            for k in 0..5 {
                let at = start + (1 + i64::from(k)) * MS;
                packets.push(data(at, initial.wrapping_add(1 + k * 100), 100));
                packets.push(ack(at + 20 * MS, initial.wrapping_add(101 + k * 100)));
            }
        }
        packets.sort_by_key(|packet| packet.time_ns);
        let view = view(packets);
        assert_eq!(view.connections.len(), 2, "{second}");
        for connection in &view.connections {
            let end = one_end(&view, connection).unwrap();
            assert_eq!(
                (end.retransmitted_packets, end.goodput_bytes),
                (0, 500),
                "{second}"
            );
        }
    }
}

#[test]
fn a_repeated_syn_begins_no_connection() {
    let packets = vec![syn(0, 999), syn(1000 * MS, 999), data(1040 * MS, 1000, 100)];
    assert_eq!(view(packets).connections.len(), 1);
}

#[test]
fn a_clock_that_is_set_back_moves_later_packets_behind_earlier_ones() {
    for step in [3_600_000, 300, 150] {
        let shifted = |k: i64| {
            if k < 200 {
                k * 5 * MS
            } else {
                (k * 5 - step) * MS
            }
        };
        let mut packets = Vec::new();
        for k in 0..400_u32 {
            packets.push(data(shifted(i64::from(k)), 1 + k * 100, 100));
        }
        let view = view(packets);
        assert_eq!(view.clock.set_back_ns.len(), 1, "{step}");
        let last = view.packets.last().unwrap();
        assert_eq!(last.sequence, 1 + 399 * 100);
        assert!((last.time_ns - 399 * 5 * MS).abs() <= MS, "{step}");
        assert_eq!(
            one_end(&view, &view.connections[0])
                .unwrap()
                .retransmitted_packets,
            0
        );
    }
}

#[test]
fn packets_a_little_out_of_order_are_sorted_without_a_word() {
    let mut packets: Vec<Packet> = (0..50)
        .map(|k| data(i64::from(k) * MS, 1 + k * 100, 100))
        .collect();
    packets.swap(10, 12);
    packets.swap(30, 31);
    let view = view(packets);
    assert_eq!(view.clock, super::Clock::default());
    assert!(view.packets.is_sorted_by_key(|packet| packet.sequence));
}

#[test]
fn an_end_that_answers_at_once_is_the_one_where_the_capture_was_taken() {
    let packets = |there: i64| {
        let mut packets = vec![syn(0, 0)];
        packets.push(Packet {
            flags: 0x12,
            ..ack(there, 1)
        });
        packets.push(Packet {
            flags: 0x10,
            ..data(40 * MS, 1, 0)
        });
        for k in 0..50 {
            let at = (50 + i64::from(k)) * MS;
            packets.push(data(at, 1 + k * 100, 100));
            packets.push(ack(at + there, 101 + k * 100));
        }
        packets.sort_by_key(|packet| packet.time_ns);
        view(packets)
    };
    for (there, side) in [
        (39_900_000, Side::Sender),
        (100_000, Side::Receiver),
        (20 * MS, Side::Between),
    ] {
        let view = packets(there);
        let end = one_end(&view, &view.connections[0]).unwrap();
        assert_eq!(end.side, Some(side));
        assert_eq!(end.sample_ns.is_empty(), side == Side::Receiver);
    }
}

#[test]
fn acknowledged_data_that_were_not_captured_are_counted() {
    let packets = vec![
        syn(0, 0),
        data(10 * MS, 1, 100),
        data(12 * MS, 301, 100),
        ack(50 * MS, 401),
    ];
    let view = view(packets);
    let end = one_end(&view, &view.connections[0]).unwrap();
    assert_eq!((end.missed_bytes, end.goodput_bytes), (200, 400));
}

/// Frames of twenty packets at the sender, of ten at the receiver 20 ms later; `lost` frames are sent again.
fn both(lost: &[u32], merged: u32) -> (View, View) {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let mut id = 1;
    for k in 0..100_u32 {
        let at = i64::from(k) * 20 * MS;
        let begin = 1000 + k * 20 * MSS;
        near.push(Packet {
            ip_id: id,
            ..data(at, begin, 20 * MSS)
        });
        let mut part = 0;
        while part < 20 {
            let number = k * 20 + part;
            if lost.contains(&number) {
                part += 1;
                continue;
            }
            let together = (part..20)
                .take_while(|it| !lost.contains(&(k * 20 + it)))
                .take(merged as usize);
            let count = together.count() as u32;
            far.push(Packet {
                ip_id: id + part as u16,
                ..data(at + 20 * MS, begin + part * MSS, count * MSS)
            });
            part += count;
        }
        id += 20;
        for &number in lost.iter().filter(|&&number| number / 20 == k) {
            let again = Packet {
                ip_id: id,
                ..data(at + 10 * MS, 1000 + number * MSS, MSS)
            };
            near.push(again);
            far.push(Packet {
                time_ns: at + 30 * MS,
                ..again
            });
            id += 1;
        }
        near.push(ack(at + 41 * MS, begin + 20 * MSS));
        far.push(ack(at + 21 * MS, begin + 20 * MSS));
    }
    for packets in [&mut near, &mut far] {
        packets.sort_by_key(|packet| packet.time_ns);
    }
    (view(near), view(far))
}

#[test]
fn both_ends_are_matched_by_bytes_whatever_adapters_make_of_packets() {
    for merged in [1, 3, 10] {
        for lost in [vec![], vec![5, 777, 778, 1999]] {
            let (near, far) = both(&lost, merged);
            for turned in [false, true] {
                let (first, second) = if turned { (&far, &near) } else { (&near, &far) };
                let ends = compare_captures(
                    (first, &first.connections[0]),
                    (second, &second.connections[0]),
                );
                let Relation::Ends(place, matched) = ends else {
                    panic!("{ends:?}");
                };
                assert_eq!(place, usize::from(turned));
                let data = &matched.data;
                assert_eq!(data.sent_ns.len(), 2000 + lost.len(), "{merged} {lost:?}");
                assert_eq!(data.matched(), 2000);
                assert!(data.size_bytes.iter().all(|&size| size == 1500));
                assert!(data.delays().all(|delay| delay == 20 * MS));
                assert_eq!(
                    (matched.strangers, matched.goodput_bytes),
                    (0, 2000 * u64::from(MSS))
                );
                assert!(matched.back.delays().all(|delay| delay == 20 * MS));
            }
        }
    }
}

#[test]
fn one_capture_twice_is_of_one_place_and_other_runs_are_unrelated() {
    let (near, _) = both(&[], 1);
    let (other, _) = both(&[5, 777], 1);
    let first = (&near, &near.connections[0]);
    assert!(matches!(
        compare_captures(first, first),
        Relation::SamePlace
    ));
    // The same ports and numbers, at a third of the speed.
    let slow = near.packets.iter().map(|packet| Packet {
        time_ns: packet.time_ns * 3,
        ..*packet
    });
    let slow = view(slow.collect());
    assert!(matches!(
        compare_captures(first, (&slow, &slow.connections[0])),
        Relation::Unrelated
    ));
    // Other numbers at the same time: one connection whose numbers were changed on the way.
    let changed = other.packets.iter().map(|packet| Packet {
        sequence: packet.sequence.wrapping_add(1 << 31),
        acknowledgement: packet.acknowledgement.wrapping_add(1 << 31),
        ..*packet
    });
    let changed = view(changed.collect());
    assert!(matches!(
        compare_captures(first, (&changed, &changed.connections[0])),
        Relation::Unmatched
    ));
}

#[test]
fn ranges_count_each_byte_once() {
    let mut ranges = Ranges::default();
    let mut bytes = [false; 300];
    let mut state = 7_u32;
    for _ in 0..500 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let begin = (state >> 8) as usize % 280;
        let end = begin + (state >> 20) as usize % 20;
        let known = bytes[begin..end].iter().filter(|known| **known).count();
        assert_eq!(ranges.insert(begin as i64, end as i64), known as i64);
        bytes[begin..end].fill(true);
        assert_eq!(
            ranges.length(),
            bytes.iter().filter(|known| **known).count() as i64
        );
        let covered = bytes[50..150].iter().filter(|known| **known).count();
        assert_eq!(ranges.covered(50, 150), covered as i64);
    }
}

#[test]
fn frames_captured_twice_count_once() {
    let frame = Packet {
        ip_id: 9,
        ..data(0, 1, 100)
    };
    let packets = vec![
        frame,
        Packet {
            time_ns: 3_000,
            ..frame
        },
        Packet {
            ip_id: 10,
            ..data(MS, 101, 100)
        },
    ];
    let capture = Capture {
        packets,
        interfaces: vec!["any".into()],
        addresses: vec!["192.0.2.1".into(), "192.0.2.2".into()],
        ..Capture::default()
    };
    let (views, unread) = views(capture);
    assert_eq!(views[0].packets.len(), 2);
    assert_eq!(unread.get(&Unread::Copies), Some(&1));
}
