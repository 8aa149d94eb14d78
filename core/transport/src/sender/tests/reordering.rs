//! Reordering: how far it raises the packet threshold, and what counts as progress.

use super::*;

fn by_count() -> Config {
    Config {
        rack: false,
        tail_loss_probe: false,
        ..Config::default()
    }
}

/// Spurious losses with a window of 40, in which the first packet of some windows is late by a third of a window.
fn spurious(config: &Config) -> (u64, u64) {
    let mut rig = Rig::with(40, config);
    rig.fault = Box::new(|index| {
        // Packets of a window leave within 40 ms once delayed acknowledgements have spread them.
        let late = index >= 400 && index % 200 == 0;
        Some(Span::from_ms(if late { 15 } else { 0 }))
    });
    rig.run(4000);
    let counters = rig.sender.counters();
    (counters.spurious_losses, rig.sender.rack.dup_thresh())
}

#[test]
fn the_threshold_rises_to_the_distance_that_was_seen() {
    let fixed = Config {
        max_packet_threshold: 3,
        ..by_count()
    };
    let (without, threshold) = spurious(&fixed);
    assert_eq!(threshold, 3);
    // Each of the late packets.
    assert!(without >= 15, "{without}");
    let (with, threshold) = spurious(&by_count());
    // With 40 packets in the window, no more than that can overtake one.
    assert!((5..=40).contains(&threshold), "{threshold}");
    assert!(with * 4 < without, "{with} of {without}");
}

#[test]
fn what_is_repeated_or_lost_raises_nothing() {
    for config in [by_count(), Config::default()] {
        let mut rig = Rig::with(40, &config).losing(&[100, 110, 300, 301, 302]);
        rig.run(2000);
        assert_eq!(rig.sender.counters().lost_packets, 5);
        assert_eq!(rig.sender.rack.dup_thresh(), 3);
    }
}

#[test]
fn without_selective_acknowledgements_it_stays() {
    let config = Config {
        sack: false,
        ..Config::default()
    };
    assert_eq!(spurious(&config).1, 3);
}

#[test]
fn what_arrives_beyond_a_gap_lets_no_window_grow() {
    let mut rig = Rig::with(40, &by_count()).losing(&[100]);
    rig.run(2000);
    let heard = rig.heard();
    // From the loss until its repair: about a window, with one packet per acknowledgement.
    assert!((30..=45).contains(&heard.still), "{}", heard.still);
    // On a path that reorders by more than the threshold it does.
    let mut rig = Rig::with(40, &by_count());
    rig.fault = Box::new(|index| Some(Span::from_ms(if index == 100 { 15 } else { 0 })));
    rig.run(900);
    let before = rig.heard().still;
    assert!(before > 0 && rig.sender.rack.reorders());
    let from = rig.sends.len() as u64 + 50;
    rig.fault = Box::new(move |index| Some(Span::from_ms(if index == from { 15 } else { 0 })));
    rig.run(2000);
    assert_eq!(rig.heard().still, before);
}

#[test]
fn a_timeout_within_a_recovery_reduces_no_second_time() {
    // Packet 100 is lost, and so is its retransmission: only the timeout detects that.
    let lost = |index: u64, hole: u64, sends: &[u64]| index == hole || sends.contains(&index);
    let mut probe = Rig::with(20, &by_count()).losing(&[100]);
    probe.run(2000);
    let again = |rig: &Rig| -> Vec<u64> {
        let sends = rig.sends.iter().enumerate();
        let again = sends.filter(|(_, (_, data))| data.retransmission);
        again.map(|(index, _)| index as u64).collect()
    };
    let first = again(&probe)[0];
    let mut rig = Rig::with(20, &by_count());
    rig.fault = Box::new(move |index| (!lost(index, 100, &[first])).then_some(Span::ZERO));
    rig.run(3000);
    assert_eq!(rig.sender.counters().timeouts, 1);
    assert_eq!(rig.heard().epochs, [LossCause::Reordering]);
    assert_eq!(rig.heard().spurious, 0);
    // The timeout ends like any other: a later loss opens a new epoch.
    let later = rig.sends.len() as u64 + 30;
    rig.fault = Box::new(move |index| (index != later).then_some(Span::ZERO));
    rig.run(6000);
    assert_eq!(rig.heard().epochs, [LossCause::Reordering; 2]);
}

#[test]
fn a_lost_repair_of_a_timeout_is_an_epoch_where_time_tells_of_it() {
    // Everything is lost for a while; of the packets retransmitted after the timeout, the second is lost again.
    let config = Config {
        tail_loss_probe: false,
        ..Config::default()
    };
    let run = |lost_again: Option<u64>| {
        let mut rig = Rig::with(20, &config);
        rig.fault = Box::new(move |index| {
            let lost = (100..120).contains(&index) || Some(index) == lost_again;
            (!lost).then_some(Span::ZERO)
        });
        rig.run(3000);
        (rig.heard().epochs, rig.sender.counters().timeouts)
    };
    assert_eq!(run(None), (vec![LossCause::Timeout], 1));
    let again = vec![LossCause::Timeout, LossCause::Reordering];
    assert_eq!(run(Some(121)), (again, 1));
}

/// The largest smoothed RTT of a window of 20 on a path of 40 ms, sampled every millisecond from one second on, and the
/// number of packets declared lost.
fn largest_smoothed(late: u64, when: impl Fn(u64) -> bool + Send + 'static) -> (Span, u64) {
    let mut rig = Rig::new(20);
    rig.fault = Box::new(move |index| Some(Span::from_ms(if when(index) { late } else { 0 })));
    let mut largest = Span::ZERO;
    for ms in 1..3000 {
        rig.run(ms);
        if ms >= 1000 {
            largest = largest.max(rig.sender.snapshot().smoothed_rtt.unwrap());
        }
    }
    (largest, rig.sender.counters().lost_packets)
}

#[test]
fn what_comes_late_is_a_sample_of_the_round_trip_unless_it_was_repeated() {
    let (usual, lost) = largest_smoothed(0, |_| false);
    assert_eq!(lost, 0);
    // Late by less than a quarter of the RTT: it counts as a loss only until reordering has been seen. One sample has a
    // weight of an eighth.
    let (with, lost) = largest_smoothed(8, |index| index >= 400 && index % 100 == 0);
    assert_eq!(lost, 1);
    let more = with.saturating_sub(usual);
    assert!(
        more >= Span::from_us(800) && more <= Span::from_ms(2),
        "{usual:?} {with:?}"
    );
    // So late that it has been retransmitted: TCP would not know which of the two arrived.
    let (with, lost) = largest_smoothed(300, |index| index == 600);
    assert_eq!(lost, 1);
    assert!(with < usual + Span::from_ms(2), "{usual:?} {with:?}");
}
