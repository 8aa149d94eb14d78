//! The fuzz target of captures.

use crate::fuzz::check_sentence;
use narrows_formats::connections::{Relation, compare_captures, fates, one_end, views};
use narrows_formats::pcapng;

/// Maximum difference of two times in a capture; all times are accepted.
const MAX_SPAN_NS: i128 = 1 << 64;

/// A capture: rejected with one sentence, or read, split, measured, and matched with itself. The first byte selects the
/// use of the rest: the file itself, or packets behind one of many link headers.
///
/// # Panics
/// When sums or times contradict each other.
pub fn captures(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let file = match first {
        0 => rest.to_vec(),
        link => pcap(link, rest),
    };
    let capture = match pcapng::read(&file) {
        Err(error) => return check_sentence(&error.to_string()),
        Ok(capture) => capture,
    };
    let (views, _) = views(capture);
    for view in &views {
        assert!(view.packets.is_sorted_by_key(|packet| packet.time_ns));
        let belong: usize = view.connections.iter().map(|it| it.packets.len()).sum();
        assert_eq!(belong, view.packets.len());
        for connection in view.connections.iter().take(8) {
            if let Some(end) = one_end(view, connection) {
                assert!(end.time_ns.is_sorted());
                assert!(end.sent_bytes.is_sorted());
                assert!(end.arrived_bytes.is_sorted());
                assert_eq!(end.rtt_ns.len(), end.sample_ns.len());
                assert!(end.retransmitted_packets <= end.sent_packets);
            }
            if let Some(fates) = fates(view, connection) {
                let count = fates.sent_ns.len();
                assert!(count <= 4096 + 6800 * connection.packets.len());
                assert_eq!(fates.known_ns.len(), count);
                assert_eq!(fates.size_bytes.len(), count);
                assert_eq!(fates.again.len(), count);
                assert_eq!(fates.repeated_ns.len(), count);
                assert!(fates.answers_ns.is_sorted());
            }
            let own = (view, connection);
            if let Relation::Ends(_, matched) = compare_captures(own, own) {
                let rows = &matched.data;
                assert_eq!(rows.sent_ns.len(), rows.arrived_ns.len());
                let times = rows.sent_ns.iter().zip(&rows.arrived_ns);
                for (sent, arrived) in times {
                    assert!((i128::from(*arrived) - i128::from(*sent)).abs() <= MAX_SPAN_NS);
                }
            }
        }
    }
}

/// Frames of up to 64 bytes behind a header with their link type.
fn pcap(link: u8, mut rest: &[u8]) -> Vec<u8> {
    const LINKS: [u32; 8] = [1, 101, 0, 9, 105, 127, 113, 276];
    let mut file = Vec::new();
    for word in [
        0xA1B2_C3D4,
        0x0004_0002,
        0,
        0,
        65_535,
        LINKS[usize::from(link) % LINKS.len()],
    ] {
        file.extend(u32::to_le_bytes(word));
    }
    let mut time = 0_u32;
    while let [kept, step, more @ ..] = rest {
        let kept = usize::from(kept % 65).min(more.len());
        time = time.wrapping_add(u32::from(*step) * 1000);
        for word in [
            time / 1_000_000,
            time % 1_000_000,
            kept as u32,
            kept as u32 + u32::from(*step),
        ] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&more[..kept]);
        rest = &more[kept..];
    }
    file
}
