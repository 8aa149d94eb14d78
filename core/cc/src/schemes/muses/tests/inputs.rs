//! Inputs of Muses' network, slot by slot, and the effect of its outputs.

use super::SCHEME;
use crate::testing::listener::{Peer, above, assert_actions, assert_slot, assert_steps};

/// Six features and the last action.
const SLOTS: usize = 11;
/// A packet of 1000 bytes counts as 1052; bits per millisecond are thousandths of a Mbit/s.
const PACKET: f64 = 8.416;

/// An average of three values with gain 1/8, initialised with the first.
fn average(values: [f64; 3]) -> f64 {
    values[0] * 49.0 / 64.0 + values[1] * 7.0 / 64.0 + values[2] / 8.0
}

#[test]
fn the_first_slot_is_the_round_trip_of_all_steps() {
    // 30, 35 and 32 ms; the second step continues the average, and adds 32 ms.
    let first = 30.796_875;
    let second = first * 7.0 / 8.0 + 32.0 / 8.0;
    assert_slot(&SCHEME, SLOTS, 0, [first / 300.0, second / 300.0]);
}

#[test]
fn the_second_slot_is_the_queueing_delay_over_the_smallest_round_trip() {
    // 0.796875 ms over 30 ms; then 2 ms.
    assert_slot(&SCHEME, SLOTS, 1, [0.796_875 / 30.0, 2.0 / 30.0]);
}

#[test]
fn the_third_slot_is_the_sending_rate() {
    // Three packets in 30 ms, the other five of six in 35 ms, the last of them in 32 ms. Then one in 32 ms.
    let first = PACKET * average([3.0 / 30.0, 5.0 / 35.0, 1.0 / 32.0]);
    assert_slot(&SCHEME, SLOTS, 2, [first / 1e3, PACKET / 32.0 / 1e3]);
}

#[test]
fn the_fourth_slot_is_the_delivery_rate() {
    // One packet in 30 ms, two in 36 ms; two in 35 ms since 30 ms, when the third was sent. Then one in 33 ms.
    let first = PACKET * average([1.0 / 30.0, 2.0 / 36.0, 2.0 / 35.0]);
    assert_slot(&SCHEME, SLOTS, 3, [first / 1e3, PACKET / 33.0 / 1e3]);
}

#[test]
fn the_fifth_slot_is_the_share_lost_since_the_last_decision() {
    // Five packets had been sent before the sixth, and three have arrived with it. Then one of one.
    assert_slot(&SCHEME, SLOTS, 4, [0.4, 0.0]);
}

#[test]
fn the_sixth_slot_is_the_window() {
    assert_slot(&SCHEME, SLOTS, 5, [10.0 / 12_500.0, 20.0 / 12_500.0]);
}

#[test]
fn the_other_slots_are_the_last_action_and_answers_change_the_window() {
    // Ten more, half, the same, ten less, twice, and never below 10.
    let windows = [20.0, 10.0, 10.0, 10.0, 20.0, 30.0, 15.0, 15.0, 10.0, 20.0];
    assert_actions(&SCHEME, SLOTS, windows);
}

#[test]
fn decisions_are_more_than_ten_milliseconds_apart_and_windows_have_a_bound() {
    assert_steps(&SCHEME, SLOTS, 12_500.0);
}

#[test]
fn a_round_trip_is_never_less_than_a_millisecond() {
    // Packets that are acknowledged within the same step of the clock.
    for (threshold, wanted) in [(0.999 / 300.0, "double"), (1.001 / 300.0, "more")] {
        let mut peer = Peer::new(&SCHEME, above("muses", SLOTS, 0, threshold));
        for (number, ms) in [(0, 0), (1, 11)] {
            peer.send(ms);
            let (mode, window) = peer.ack(number, ms);
            assert!(number == 0 || (mode, window) == (wanted, 20.0), "{mode} {window}");
        }
    }
}
