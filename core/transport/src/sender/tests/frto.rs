//! Without selective acknowledgements: when a recovery ends, what duplicates count for, and how a timeout is verified
//! (F-RTO).

use super::*;

/// A window of 20 that loses these packets, for two seconds.
fn run(lost: &[u64]) -> Rig {
    let lost = lost.to_vec();
    let mut rig = Rig::with(20, &without_sack());
    rig.fault = Box::new(move |index| (!lost.contains(&index)).then_some(Span::ZERO));
    rig.run(2000);
    rig
}

fn first_repair(rig: &Rig) -> u64 {
    let mut sends = rig.sends.iter();
    sends.position(|(_, data)| data.retransmission).unwrap() as u64
}

#[test]
fn a_gap_right_behind_a_recovery_is_left_to_the_timeout() {
    let repair = first_repair(&run(&[30]));
    // The first new data sent in the recovery begins where it ends: data sent twice looks the same.
    let rig = run(&[30, repair + 1]);
    assert!(!rig.sends[repair as usize + 1].1.retransmission);
    assert_eq!(rig.sender.counters().timeouts, 1);
    assert_eq!(
        rig.heard().epochs,
        [LossCause::Reordering, LossCause::Timeout]
    );
    // One packet further on it is detected by its duplicates.
    let rig = run(&[30, repair + 2]);
    assert_eq!(rig.sender.counters().timeouts, 0);
    assert_eq!(rig.heard().epochs, [LossCause::Reordering; 2]);
}

#[test]
fn a_duplicate_is_one_packet_and_counts_again_after_the_recovery_that_it_was_in() {
    // All data that arrives before the recovery ends is reported once, by a duplicate or with the gap.
    let rig = run(&[30]);
    let heard = rig.heard();
    assert!(heard.told >= 15 * MSS, "{}", heard.told / MSS);
    let total = heard.told + heard.acked_bytes;
    assert!(total <= rig.goodput() && total + 40 * MSS > rig.goodput());
    // The recovery of the first five ends in front of another gap, whose duplicates arrived within it: their data
    // counts again when that gap is closed. The record shows the actual state.
    let rig = run(&[30, 33, 36, 38, 60]);
    let heard = rig.heard();
    assert!(heard.told + heard.acked_bytes > rig.goodput() + 10 * MSS);
    assert!(rig.sender.snapshot().delivered.get() <= rig.goodput());
}

#[test]
fn new_data_asks_whether_a_timeout_was_right() {
    // One packet arrives and nothing else for 150 ms: too few duplicates. After the timeout the gap up to it is closed,
    // or a part of it, and new data is sent before any further retransmission.
    for arrives in [1, 3] {
        let mut rig = Rig::with_config("reno", &without_sack());
        rig.run(410);
        let lost = rig.sends.len() as u64;
        rig.fault = Box::new(move |index| (index == lost + arrives).then_some(Span::ZERO));
        rig.run(560);
        rig.fault = Box::new(|_| Some(Span::ZERO));
        rig.run(1000);
        assert_eq!(rig.sender.counters().timeouts, 1);
        let first = first_repair(&rig) as usize;
        let fresh = rig.sends[first - 1].1.offset + MSS;
        // As many as the window allows: one, and one more for each that the retransmission has acknowledged.
        let asked = if arrives == 1 { 3 } else { 2 };
        for (number, (_, data)) in (0..).zip(&rig.sends[first + 1..=first + asked]) {
            assert_eq!(data.offset, fresh + number * MSS, "{arrives}");
        }
        // Duplicates confirm the loss: missing data is retransmitted in order.
        assert!(rig.sends[first + asked + 1].1.retransmission);
    }
}

#[test]
fn a_recovery_for_a_packet_that_was_only_late_is_undone() {
    let mut rig = Rig::with(20, &without_sack());
    rig.fault = Box::new(|index| Some(Span::from_ms(if index == 30 { 15 } else { 0 })));
    rig.run(1000);
    let counters = rig.sender.counters();
    assert_eq!((counters.retransmitted_packets, counters.timeouts), (1, 0));
    assert_eq!((rig.heard().epochs.len(), rig.heard().spurious), (1, 1));
    // One that was lost is not, whatever arrives in between.
    assert_eq!(run(&[30]).heard().spurious, 0);
    assert_eq!(run(&[30, 33, 36, 38]).heard().spurious, 0);
}

#[test]
fn the_wait_for_a_timeout_is_part_of_the_time_in_which_little_arrived() {
    let lost: Vec<u64> = (100..140).collect();
    let rig = run(&lost);
    assert!(rig.sender.counters().timeouts > 0);
    // One packet in the timeout of 240 ms and the round trip of 40 ms.
    let slowest = rig.heard().rates.iter().map(|rate| rate.0).min();
    assert!(slowest.is_some_and(|bps| bps <= MSS * 8 * 1000 / 280));
}

#[test]
fn a_repair_of_the_first_gap_starts_the_timer_and_new_data_does_not() {
    let repair = first_repair(&run(&[30]));
    let rig = run(&[30, repair]);
    let hole = rig.sends[30].1.offset;
    let sends: Vec<Time> = (rig.sends.iter())
        .filter(|(_, data)| data.offset == hole)
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(sends.len(), 3);
    // The round trip of 40 ms, 200 ms for its variance, and a delayed acknowledgement that may have been part of it.
    let waited = sends[2] - sends[1];
    assert!(waited >= OWD * 2 + Span::from_ms(200), "{waited}");
    assert!(waited <= OWD * 2 + Span::from_ms(220), "{waited}");
}
