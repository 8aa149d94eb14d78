//! Without selective acknowledgements, without the time threshold, with a limited window.

use super::*;

fn without_sack() -> Config {
    Config {
        sack: false,
        ..Config::default()
    }
}

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
    // The window is full again afterwards: 20 packets per round trip, but for the recovery.
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
    // With selective acknowledgements all four go out within one round trip.
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
        rig.sender.set_supply(400 * MSS);
        rig.fault = Box::new(move |index| (index != 30 && index != repair).then_some(Span::ZERO));
        rig.run(10_000);
        assert_eq!(rig.sender.counters().timeouts, 1);
        assert!(rig.sender.is_complete());
        assert_eq!(rig.goodput(), 400 * MSS);
    }
}

#[test]
fn by_count_alone_only_the_threshold_decides() {
    let config = Config {
        rack: false,
        ..Config::default()
    };
    // In a window of 20 that goes out at once, a packet that is late by a little is overtaken by those
    // behind it in its burst: many after the first packets, two after the third last.
    let late = |index: u64| {
        let mut rig = Rig::with(20, &config);
        rig.sender.set_supply(20 * MSS);
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
    // Time sees that five milliseconds are not late.
    let mut rig = Rig::new(20);
    rig.sender.set_supply(20 * MSS);
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
    /// Whatever is lost in either direction: every byte arrives, and the books are right throughout.
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
        rig.sender.set_supply(supply);
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
        rig.sender.recovery = Recovery::Restart;
        rig.sender.set_supply(200 * MSS);
        rig.run(3000);
        let heard = rig.heard();
        assert_eq!(
            (&heard.epochs[..], heard.exits),
            (&[LossCause::Reordering][..], 1)
        );
        // What arrives of the first transmissions afterwards was no mistake.
        assert_eq!(heard.spurious, 0);
        let counters = rig.sender.counters();
        assert_eq!(counters.timeouts, 0);
        // What was in flight goes out once more, in order, beginning with the gap; without selective
        // acknowledgements also what had arrived.
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
