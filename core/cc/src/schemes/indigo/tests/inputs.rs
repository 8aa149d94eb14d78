//! Inputs of Indigo's network, slot by slot, and the effect of its outputs.

use super::SCHEME;
use crate::testing::listener::{assert_actions, assert_slot, assert_steps};

/// Four features and the last action.
const SLOTS: usize = 9;
/// A packet of 1000 bytes counts as 1024; bits per millisecond are thousandths of a Mbit/s.
const PACKET: f64 = 8.192;

/// An average of three values with gain 1/8, initialised with the first.
fn average(values: [f64; 3]) -> f64 {
    values[0] * 49.0 / 64.0 + values[1] * 7.0 / 64.0 + values[2] / 8.0
}

#[test]
fn the_first_slot_is_the_queueing_delay() {
    // Round trips of 30, 35 and 32 ms: 0.796875 ms above the minimum. In the second step one of 32 ms.
    assert_slot(&SCHEME, SLOTS, 0, [0.796_875 / 200.0, 2.0 / 200.0]);
}

#[test]
fn the_second_slot_is_the_delivery_rate() {
    // One packet in 30 ms, two in 36 ms; two in 35 ms since 30 ms, when the third was sent. Then one in 33 ms.
    let first = PACKET * average([1.0 / 30.0, 2.0 / 36.0, 2.0 / 35.0]);
    assert_slot(&SCHEME, SLOTS, 1, [first / 200.0, PACKET / 33.0 / 200.0]);
}

#[test]
fn the_third_slot_is_the_sending_rate() {
    // Three packets in 30 ms, the other five of six in 35 ms, the last of them in 32 ms. Then one in 32 ms.
    let first = PACKET * average([3.0 / 30.0, 5.0 / 35.0, 1.0 / 32.0]);
    assert_slot(&SCHEME, SLOTS, 2, [first / 200.0, PACKET / 32.0 / 200.0]);
}

#[test]
fn the_fourth_slot_is_the_window() {
    assert_slot(&SCHEME, SLOTS, 3, [10.0 / 5_000.0, 20.0 / 5_000.0]);
}

#[test]
fn the_other_slots_are_the_last_action_and_answers_change_the_window() {
    // Ten more, half, the same, ten less (at least 2), twice.
    let windows = [20.0, 10.0, 10.0, 2.0, 4.0, 14.0, 7.0, 7.0, 2.0, 4.0];
    assert_actions(&SCHEME, SLOTS, windows);
}

#[test]
fn decisions_are_more_than_ten_milliseconds_apart_and_windows_have_a_bound() {
    assert_steps(&SCHEME, SLOTS, 100_000.0);
}
