//! Captures are read as they were written.

use super::{End, read, write};
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
    // Three more open the connection.
    assert_eq!(capture.time_ns.len(), 82);
    assert_eq!(capture.interfaces, ["sender"]);
    assert_eq!(capture.addresses, ["10.77.0.1", "10.77.0.2"]);
    assert!(capture.time_ns.is_sorted());
    assert_eq!(capture.packet_id.iter().filter(|&&id| id == 0).count(), 3);
    let data = (0..82).filter(|&i| capture.source[i] == 0 && capture.packet_id[i] > 0);
    let sizes: Vec<u32> = data.clone().map(|i| capture.size_bytes[i]).collect();
    assert_eq!(sizes, vec![1500; 40]);
    let mut positions: Vec<u32> = data.map(|i| capture.sequence[i]).collect();
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
        let place = capture.packet_id.iter().position(|&known| known == id);
        place.map(|place| capture.sequence[place])
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
    let acks: Vec<u32> = (0..capture.time_ns.len())
        .filter(|&i| capture.source[i] == 1 && capture.packet_id[i] > 0)
        .map(|i| capture.acknowledgement[i])
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
