//! Without selective acknowledgements, without the time threshold, with a limited window.

use super::*;

fn repairs(rig: &Rig) -> Vec<Time> {
    let repeated = rig.sends.iter().filter(|(_, data)| data.retransmission);
    repeated.map(|(at, _)| *at).collect()
}

#[test]
fn three_duplicates_repair_one_loss() {
    let mut rig = Rig::with(20, &without_sack()).losing(&[30]);
    rig.run(1000);
    let heard = rig.heard();
    assert_eq!(heard.epochs, [LossCause::Reordering]);
    assert_eq!((heard.losses, heard.exits), (1, 1));
    let counters = rig.sender.counters();
    assert_eq!((counters.retransmitted_packets, counters.timeouts), (1, 0));
    // The window is full again afterwards: 20 packets per round trip, except during the recovery.
    assert!(rig.goodput() > 20 * 22 * MSS, "{}", rig.goodput() / MSS);
}

#[test]
fn losses_are_repaired_one_per_round_trip() {
    let mut rig = Rig::with(20, &without_sack()).losing(&[30, 33, 36, 38]);
    rig.run(1500);
    let counters = rig.sender.counters();
    assert_eq!((counters.retransmitted_packets, counters.timeouts), (4, 0));
    assert_eq!(rig.heard().epochs.len(), 1);
    let times = repairs(&rig);
    for pair in times.windows(2) {
        assert_eq!(pair[1] - pair[0], OWD * 2, "{times:?}");
    }
    // With selective acknowledgements all four are sent within one round trip.
    let mut rig = Rig::new(20).losing(&[30, 33, 36, 38]);
    rig.run(1500);
    let times = repairs(&rig);
    assert!(
        times.len() == 4 && times[3] - times[0] < OWD * 2,
        "{times:?}"
    );
}

#[test]
fn a_lost_repair_waits_for_the_timeout() {
    for config in [
        without_sack(),
        Config {
            rack: false,
            ..Config::default()
        },
    ] {
        let mut probe = Rig::with(20, &config).losing(&[30]);
        probe.run(1000);
        let repair = probe
            .sends
            .iter()
            .position(|(_, data)| data.retransmission)
            .unwrap() as u64;
        let mut rig = Rig::with(20, &config);
        rig.sender.set_write_seq(400 * MSS);
        rig.fault = Box::new(move |index| (index != 30 && index != repair).then_some(Span::ZERO));
        rig.run(10_000);
        assert_eq!(rig.sender.counters().timeouts, 1);
        assert!(rig.sender.is_complete());
        assert_eq!(rig.goodput(), 400 * MSS);
    }
}

/// When the data of packet 30 is sent: it is lost, and so is its first retransmission.
fn sends_of_a_lost_repair(scheme: Option<&str>) -> (Vec<Time>, Rig) {
    let config = Config {
        rack: false,
        ..Config::default()
    };
    let rig = || match scheme {
        Some(scheme) => Rig::with_config(scheme, &config),
        None => Rig::with(20, &config),
    };
    let mut probe = rig().losing(&[30]);
    probe.run(1000);
    let repair = probe
        .sends
        .iter()
        .position(|(_, data)| data.retransmission)
        .unwrap() as u64;
    let mut rig = rig();
    rig.fault = Box::new(move |index| (index != 30 && index != repair).then_some(Span::ZERO));
    rig.run(4_000);
    let hole = rig.sends[30].1.offset;
    let sends = rig.sends.iter().filter(|(_, data)| data.offset == hole);
    (sends.map(|(at, _)| *at).collect(), rig)
}

#[test]
fn a_lost_repair_is_repeated_after_the_timeout_however_much_else_arrives() {
    // There is always more to send, and all of it arrives: acknowledgements beyond the gap do not delay the timeout,
    // which is the round trip plus 200 ms after the retransmission was due. A paced one leaves a little later, and
    // delayed acknowledgements make the round trip a little longer.
    for scheme in [None, Some("reno"), Some("quic-cubic")] {
        let (sends, rig) = sends_of_a_lost_repair(scheme);
        assert_eq!(sends.len(), 3, "{scheme:?}");
        let waited = sends[2] - sends[1];
        let timeout = OWD * 2 + Span::from_ms(200);
        assert!(
            (timeout.saturating_sub(OWD)..=timeout + OWD * 2).contains(&waited),
            "{scheme:?}: {waited:?}"
        );
        let counters = rig.sender.counters();
        assert_eq!(counters.timeouts, 1, "{scheme:?}");
        // The gap is closed, and data continues in order.
        assert!(rig.sender.snd_una > rig.sends[30].1.offset + 100 * MSS);
    }
}

#[test]
fn what_was_under_way_at_a_timeout_does_not_undo_it_but_what_was_only_late_does() {
    let (_, rig) = sends_of_a_lost_repair(None);
    // The window of 20 that was in flight at the timeout counted as lost and arrived.
    assert!(rig.sender.counters().lost_packets > 10);
    assert_eq!(rig.heard().spurious, 0);
    // Everything is held up for longer than the timeout: the first acknowledgement is for the packet that timed out.
    let config = Config {
        rack: false,
        tail_loss_probe: false,
        ..Config::default()
    };
    let mut rig = Rig::with(20, &config);
    // The fourth window: its timeout is after 240 ms, the acknowledgements come after 260, those of retransmissions
    // after 280.
    rig.fault = Box::new(|index| {
        let held = if (60..80).contains(&index) { 220 } else { 0 };
        Some(Span::from_ms(held))
    });
    rig.run(2_000);
    assert_eq!(rig.sender.counters().timeouts, 1);
    assert!(rig.heard().spurious > 0);
}

#[test]
fn by_count_alone_only_the_threshold_decides() {
    let config = Config {
        rack: false,
        ..Config::default()
    };
    // In a window of 20 that is sent at once, a slightly late packet is overtaken by those behind it in its burst: many
    // after the first packets, two after the third last.
    let late = |index: u64| {
        let mut rig = Rig::with(20, &config);
        rig.sender.set_write_seq(20 * MSS);
        rig.fault = Box::new(move |n| {
            let late = if n == index {
                Span::from_ms(5)
            } else {
                Span::ZERO
            };
            Some(late)
        });
        rig.run(2000);
        assert!(rig.sender.is_complete());
        rig.sender.counters().lost_packets
    };
    assert_eq!((late(17), late(16)), (0, 1));
    // The time threshold tolerates five milliseconds.
    let mut rig = Rig::new(20);
    rig.sender.set_write_seq(20 * MSS);
    rig.fault = Box::new(|n| {
        let late = if n == 17 {
            Span::from_ms(5)
        } else {
            Span::ZERO
        };
        Some(late)
    });
    rig.run(2000);
    assert_eq!(rig.sender.counters().lost_packets, 0);
}

#[test]
fn a_limited_window_is_no_congestion() {
    let config = Config {
        window: 6 * MSS,
        ..Config::default()
    };
    let mut rig = Rig::with(20, &config);
    rig.run(4000);
    let windows = rig.goodput() as f64 / (6 * MSS) as f64;
    assert!((windows - 100.0).abs() <= 2.0, "{windows}");
    let heard = rig.heard();
    assert_eq!((heard.losses, heard.limited), (0, 0));
}

proptest! {
    /// With any losses in either direction, every byte arrives, and the accounting is correct throughout.
    #[test]
    fn everything_arrives_in_the_end(
        seed: u64, sack: bool, rack: bool, percent in 0u64..25, window in 0u64..2, size in 1u64..60,
    ) {
        let config = Config {
            sack,
            rack,
            window: if window == 0 { u64::MAX } else { 8 * MSS },
            ..Config::default()
        };
        let mut rig = Rig::with(20, &config);
        let supply = size * MSS + size;
        rig.sender.set_write_seq(supply);
        let roll = move |direction: u64, n: u64| {
            let mut stream = Stream::new(seed ^ n, if direction == 0 { "data" } else { "acks" });
            let late = stream.below(12);
            (stream.below(100) >= percent).then_some(Span::from_ms(if late > 9 { late } else { 0 }))
        };
        rig.fault = Box::new(move |n| roll(0, n));
        rig.ack_fault = Box::new(move |n| roll(1, n));
        rig.run(600_000);
        prop_assert!(rig.sender.is_complete(), "{:?}", rig.sender.counters());
        prop_assert_eq!(rig.goodput(), supply);
        prop_assert_eq!(rig.sender.in_flight().get(), 0);
    }
}

#[test]
fn a_scheme_that_restarts_sends_everything_from_the_gap_on_again() {
    for config in [without_sack(), Config::default()] {
        let mut rig = Rig::with(20, &config).losing(&[30]);
        rig.sender.recovery_rule = Recovery::Restart;
        rig.sender.set_write_seq(200 * MSS);
        rig.run(3000);
        let heard = rig.heard();
        assert_eq!(
            (&heard.epochs[..], heard.exits),
            (&[LossCause::Reordering][..], 1)
        );
        // First transmissions that arrive afterwards were not declared lost wrongly.
        assert_eq!(heard.spurious, 0);
        let counters = rig.sender.counters();
        assert_eq!(counters.timeouts, 0);
        // The data in flight is sent once more, in order, beginning with the gap; without selective acknowledgements
        // including data that had arrived.
        let repeated: Vec<u64> = (rig.sends.iter())
            .filter(|(_, data)| data.retransmission)
            .map(|(_, data)| data.offset / MSS)
            .collect();
        assert_eq!(repeated[0], 30);
        assert!(
            repeated.windows(2).all(|pair| pair[1] > pair[0]),
            "{repeated:?}"
        );
        assert!((15..=20).contains(&repeated.len()), "{repeated:?}");
        assert!(rig.sender.is_complete());
        assert_eq!(rig.goodput(), 200 * MSS);
    }
}
