//! Captures are read as they were written.

use super::{End, Packet, Unread, read, write};
use crate::Traffic;
use crate::testing::record;
use narrows_record::Direction;

/// Data every millisecond, each acknowledged after 20 ms; number 5 is lost and sent again at the end.
fn traffic() -> Traffic {
    let mut packets = Vec::new();
    for k in 0..40_u64 {
        let at = k * 1_000_000;
        let arrived = (k != 5).then_some(at + 10_000_000);
        packets.push((Direction::Forward, 1500, at, arrived));
        if k != 5 {
            packets.push((
                Direction::Backward,
                84,
                at + 10_000_000,
                Some(at + 20_000_000),
            ));
        }
    }
    let record = record(packets, 1);
    Traffic::read(&record, "a test").unwrap()
}

#[test]
fn what_is_written_is_read() {
    let mut file = Vec::new();
    let written = write(&traffic(), End::Sender, 1_000_000_000, "a test", &mut file).unwrap();
    let capture = read(&file).unwrap();
    assert_eq!(written.packets, 79);
    assert_eq!(written.repeated, 1);
    // Three more packets open the connection.
    assert_eq!(capture.packets.len(), 82);
    assert_eq!(capture.interfaces, ["sender"]);
    assert_eq!(capture.addresses, ["10.77.0.1", "10.77.0.2"]);
    let packets = &capture.packets;
    assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
    assert_eq!(packets.iter().filter(|packet| packet.uid == 0).count(), 3);
    let data = packets
        .iter()
        .filter(|packet| packet.source == 0 && packet.uid > 0);
    let sizes: Vec<u32> = data.clone().map(|packet| packet.size).collect();
    assert_eq!(sizes, vec![1500; 40]);
    let mut positions: Vec<u32> = data.map(|packet| packet.sequence).collect();
    let next = positions.len();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions.len(), next - 1, "one of them repeats another");
}

#[test]
fn the_receivers_end_lacks_what_was_lost() {
    let mut file = Vec::new();
    let written = write(
        &traffic(),
        End::Receiver,
        1_000_000_000,
        "a test",
        &mut file,
    )
    .unwrap();
    assert_eq!(written.packets, 78);
    let capture = read(&file).unwrap();
    let sequence = |id| {
        let packet = capture.packets.iter().find(|packet| packet.uid == id);
        packet.map(|packet| packet.sequence)
    };
    assert!(sequence(1).is_some());
    // Packets are numbered in the order of sending, 5 being the sixth of the data before acknowledgements begin.
    assert_eq!(sequence(6), None);
}

#[test]
fn acknowledgements_stop_at_what_is_missing() {
    let mut file = Vec::new();
    write(&traffic(), End::Sender, 1_000_000_000, "a test", &mut file).unwrap();
    let capture = read(&file).unwrap();
    let packets = capture.packets.iter();
    let acks: Vec<u32> = packets
        .filter(|packet| packet.source == 1 && packet.uid > 0)
        .map(|packet| packet.acknowledgement)
        .collect();
    assert!(acks.is_sorted());
    let missing = 1 + 5 * 1448;
    assert!(acks.iter().filter(|&&ack| ack == missing).count() > 3);
    assert!(*acks.last().unwrap() > missing, "it was repeated");
}

#[test]
fn damaged_captures_are_errors_and_never_panics() {
    let mut file = Vec::new();
    write(&traffic(), End::Sender, 1_000_000_000, "a test", &mut file).unwrap();
    for place in 0..file.len().min(1500) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut other = file.clone();
            other[place] = value;
            let _ = read(&other);
        }
        let _ = read(&file[..place]);
    }
}

/// A pcap of frames, one per millisecond, of which all bytes were kept.
fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (number, frame) in (0_u32..).zip(frames) {
        let length = frame.len() as u32;
        for word in [1, number * 1000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// An IPv4 packet of 20 bytes of TCP header and `payload` bytes.
fn tcp(payload: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((40 + payload as u16).to_be_bytes());
    packet.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.extend([
        0x9c, 0x40, 0x14, 0x51, 0, 0, 0, 9, 0, 0, 0, 8, 0x50, 0x18, 255, 255, 0, 0, 0, 0,
    ]);
    packet.resize(40 + payload, 0);
    packet
}

fn behind(header: &[u8]) -> Vec<u8> {
    [header, &tcp(100)[..]].concat()
}

#[test]
fn packets_are_found_behind_every_header_that_is_read() {
    let ethernet = |rest: &[u8]| [&[0; 12], rest].concat();
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let wireless = |kind: u8, flags: u8, length: usize| {
        let mut header = vec![kind, flags];
        header.resize(length, 0);
        [&header[..], &snap[..]].concat()
    };
    let mut radiotap = vec![0, 0, 12, 0, 0x02, 0, 0, 0, 0x20, 0, 0, 0];
    radiotap.extend(wireless(0x88, 0, 28));
    let mut timed = vec![0, 0, 24, 0, 0x03, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0];
    timed.extend([0; 8]);
    timed[4] = 0x03;
    let headers: Vec<(u32, Vec<u8>)> = vec![
        (1, ethernet(&[8, 0])),
        (1, ethernet(&[0x81, 0, 0, 5, 8, 0])),
        (1, ethernet(&[0x88, 0xa8, 0, 2, 0x81, 0, 0, 5, 8, 0])),
        (1, ethernet(&[0x91, 0, 0, 2, 0x81, 0, 0, 5, 8, 0])),
        (1, ethernet(&[0x92, 0, 0, 2, 0x91, 0, 0, 5, 8, 0])),
        (1, ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64])),
        (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 142, 0, 0x21])),
        (1, ethernet(&[&[0, 148][..], &snap[..]].concat())),
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (108, vec![0, 0, 0, 2]),
        (9, vec![0xff, 3, 0, 0x21]),
        (9, vec![0x21]),
        (51, vec![0x11, 0, 0, 1, 0, 142, 0, 0x21]),
        (105, wireless(0x08, 1, 24)),
        (105, wireless(0x08, 3, 30)),
        (105, wireless(0x88, 1, 26)),
        (105, wireless(0x88, 0x81, 30)),
        (127, radiotap),
        (113, [&[0; 14][..], &[8, 0]].concat()),
        (113, [&[0; 14][..], &[0x81, 0, 0, 5, 8, 0]].concat()),
        (276, [&[8, 0][..], &[0; 18]].concat()),
        (276, [&[0x81, 0][..], &[0; 18], &[0, 5, 8, 0]].concat()),
        (101, vec![]),
        (12, vec![]),
        (228, vec![]),
    ];
    for (link, header) in headers {
        let capture = read(&pcap(link, &[behind(&header)])).unwrap();
        assert_eq!(
            capture.unread.len(),
            0,
            "{link} {header:x?} {:?}",
            capture.unread
        );
        let packet = capture.packets[0];
        let told = (
            packet.size,
            packet.payload,
            packet.sequence,
            packet.source_port,
        );
        assert_eq!(told, (140, 100, 9, 40_000), "{link} {header:x?}");
    }
}

#[test]
fn frames_that_are_not_read_are_counted_by_kind() {
    let ethernet = |kind: [u8; 2], rest: &[u8]| [&[0; 12][..], &kind, rest].concat();
    let mut icmp = tcp(8);
    icmp[9] = 1;
    let cases = [
        (
            1,
            ethernet([8, 6], &[0; 28]),
            Unread::NotIp(0x0806),
            "ARP",
            false,
        ),
        (
            1,
            ethernet([8, 0], &icmp),
            Unread::Protocol(1),
            "ICMP",
            false,
        ),
        (
            1,
            ethernet([8, 0], &tcp(0)[..30]),
            Unread::Short,
            "cut off",
            true,
        ),
        (
            1,
            ethernet([8, 0], &[0x15; 40]),
            Unread::Malformed,
            "malformed",
            true,
        ),
        (
            1,
            ethernet([0x88, 0xe5], &[0; 40]),
            Unread::NotIp(0x88e5),
            "MACsec",
            true,
        ),
        (105, vec![0x80; 30], Unread::Management, "802.11", false),
        (
            105,
            [&[0x08, 0x41][..], &[0; 60]].concat(),
            Unread::Encrypted,
            "encrypted",
            true,
        ),
        (147, vec![0; 60], Unread::Link(147), "147", true),
        (127, tcp(10), Unread::Link(127), "radiotap", true),
    ];
    for (link, frame, kind, text, matters) in cases {
        let capture = read(&pcap(link, &[frame.clone(), frame])).unwrap();
        assert_eq!(capture.packets, [], "{kind:?}");
        assert_eq!(capture.unread.into_iter().collect::<Vec<_>>(), [(kind, 2)]);
        assert!(kind.text().contains(text), "{}", kind.text());
        assert_eq!(kind.matters(), matters, "{kind:?}");
    }
}

#[test]
fn a_length_of_zero_is_that_of_the_frame() {
    let mut packet = tcp(30_000);
    packet[2..4].fill(0);
    let read_back = read(&pcap(101, &[packet])).unwrap().packets[0];
    assert_eq!((read_back.size, read_back.payload), (30_040, 30_000));
}

/// A datagram of 2008 bytes in two fragments.
fn fragments() -> [Vec<u8>; 2] {
    let mut first = tcp(1460);
    first[6..8].copy_from_slice(&[0x20, 0]);
    first[9] = 17;
    let mut last = tcp(0)[..20].to_vec();
    last[2..4].copy_from_slice(&548_u16.to_be_bytes());
    last[6..8].copy_from_slice(&185_u16.to_be_bytes());
    last[9] = 17;
    last.resize(548, 0);
    [first, last]
}

#[test]
fn later_fragments_have_the_ports_of_the_first() {
    let [first, last] = fragments();
    for frames in [
        vec![first.clone(), last.clone()],
        vec![last.clone(), first.clone()],
    ] {
        let capture = read(&pcap(101, &frames)).unwrap();
        let sum = |part: fn(&Packet) -> u32| capture.packets.iter().map(part).sum::<u32>();
        assert_eq!((sum(|it| it.size), sum(|it| it.payload)), (2048, 2000));
        assert!(
            capture
                .packets
                .iter()
                .all(|packet| packet.source_port == 40_000)
        );
        assert_eq!(capture.unread.len(), 0);
    }
    let alone = read(&pcap(101, &[last])).unwrap();
    assert_eq!(
        (alone.packets.len(), alone.unread.get(&Unread::Fragments)),
        (0, Some(&1))
    );
}

#[test]
fn a_capture_that_ends_within_a_frame_is_read_up_to_it() {
    let whole = pcap(101, &[tcp(10), tcp(10), tcp(10)]);
    for missing in 1..60 {
        let capture = read(&whole[..whole.len() - missing]).unwrap();
        assert_eq!(capture.packets.len(), 2, "{missing}");
        assert_eq!(capture.unread.get(&Unread::CutOff), Some(&1));
    }
}
