//! Connections whose addresses or ports are translated between both captures.

use super::*;

#[test]
fn translated_addresses_do_not_hide_a_connection_whose_handshake_was_captured() {
    let (near, far) = both(&[5, 777], 3);
    let opened = |seen: &View, at: [i64; 2], port: u16, numbers: [u32; 2]| {
        let mut packets = vec![
            syn(at[0], numbers[0]),
            Packet {
                sequence: numbers[1],
                flags: 0x12,
                ..ack(at[1], numbers[0] + 1)
            },
        ];
        packets.extend(&seen.packets);
        for packet in &mut packets {
            if packet.source_port == 40_000 {
                packet.source_port = port;
            } else {
                packet.destination_port = port;
            }
        }
        view(packets)
    };
    let first = near.packets[0].sequence.wrapping_sub(1);
    let start = near.packets[0].time_ns;
    let near = opened(
        &near,
        [start - 60 * MS, start - 20 * MS],
        40_000,
        [first, 77],
    );
    let arrive = [start - 40 * MS, start - 40 * MS];
    let same = opened(&far, arrive, 61_234, [first, 77]);
    let ends = compare_captures((&near, &near.connections[0]), (&same, &same.connections[0]));
    let Relation::Ends(0, matched) = ends else {
        panic!("{ends:?}");
    };
    assert_eq!((matched.data.matched(), matched.strangers), (2000, 0));
    assert!(matched.data.delays().all(|delay| delay == 20 * MS));
    assert!(matched.back.delays().all(|delay| delay == 20 * MS));
    let other = opened(&far, arrive, 61_234, [first, 78]);
    assert!(matches!(
        compare_captures(
            (&near, &near.connections[0]),
            (&other, &other.connections[0])
        ),
        Relation::Unrelated
    ));
}
