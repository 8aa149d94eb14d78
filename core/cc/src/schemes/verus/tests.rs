use super::*;
use crate::testing::{MSS, setup};
use crate::{AckedPacket, LossCause};

/// A sender of packets numbered from 0, on a clock in ms.
struct Peer {
    verus: Verus,
    now: Time,
    next: u64,
    sent: Vec<Time>,
}

impl Peer {
    fn new() -> Self {
        let params = Params::resolve(SCHEME.params, []).unwrap();
        let verus = Verus::new(&params, setup());
        Peer { verus, now: Time::ZERO, next: 0, sent: Vec::new() }
    }

    /// Sends all packets allowed; returns their number.
    fn send(&mut self) -> u64 {
        let mut count = 0;
        let allowed = self.verus.allowance().cwnd.unwrap().get();
        let mut flying = self.verus.flying;
        while flying + MSS <= allowed.max(MSS) {
            flying += MSS;
            let mut send = SendEvent::new(self.now, self.next, Bytes::new(MSS));
            send.in_flight = Bytes::new(flying);
            self.verus.on_send(&send);
            self.sent.push(self.now);
            self.next += 1;
            count += 1;
        }
        count
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        let until = Time::from_ns(ms * 1_000_000);
        while let Some(timer) = self.verus.next_timer().filter(|timer| *timer <= until) {
            self.now = timer;
            self.verus.on_timer(timer);
        }
        self.now = until;
        self
    }

    fn ack(&mut self, number: u64) {
        let packets =
            [AckedPacket { number, bytes: MSS as u32, sent: self.sent[number as usize], arrived: None }];
        let mut ack = AckEvent::new(self.now);
        ack.packets = &packets;
        ack.bytes = Bytes::new(MSS);
        ack.in_flight = Bytes::new(self.verus.flying.saturating_sub(MSS));
        self.verus.on_ack(&ack);
    }

    /// Past slow start with a window of 100 and packets in flight sent with `windows`.
    fn with_flights(windows: &[f64]) -> Self {
        let mut peer = Peer::new();
        let verus = &mut peer.verus;
        for window in 1..=200u32 {
            verus.profile.record(f64::from(window), 40.0 + f64::from(window));
        }
        assert!(verus.profile.fit());
        verus.slow_start = false;
        verus.window = 100.0;
        verus.smallest = 40.0;
        verus.heard = Some(Time::ZERO);
        verus.next_epoch = Some(Time::ZERO + verus.params.epoch);
        for (number, &window) in (0..).zip(windows) {
            verus.flights.push(number, window);
            verus.in_flight += 1;
            verus.flying += MSS;
            peer.sent.push(Time::ZERO);
            peer.next += 1;
        }
        peer
    }
}

// From the rule: n = ceil(dT/5); W + trunc(inflight (2 - n)/(n - 1)), or W - inflight for n = 1; at least 0.
#[test]
fn an_epoch_sends_what_the_rule_says() {
    for (window, in_flight, smoothed, sent) in [
        (50.0, 50, 42.0, 7.0),
        (50.0, 40, 42.0, 15.0),
        (50.0, 60, 42.0, 0.0),
        (50.0, 10, 4.0, 40.0),
        (100.0, 100, 200.0, 3.0),
        (7.0, 3, 20.1, 5.0),
    ] {
        assert_eq!(packets(window, in_flight, smoothed, 5.0), sent, "{window} {in_flight} {smoothed}");
    }
}

#[test]
fn slow_start_begins_with_one_packet_and_doubles() {
    let mut peer = Peer::new();
    assert_eq!(peer.send(), 1);
    let mut first = 0;
    for (round, expected) in [2u64, 4, 8, 16].into_iter().enumerate() {
        peer.at(40 * (round as u64 + 1));
        let last = peer.next;
        for number in first..last {
            peer.ack(number);
        }
        first = last;
        assert_eq!(peer.send(), expected);
    }
    assert_eq!(peer.verus.window, 16.0);
    assert_eq!(peer.verus.smallest, 40.0);
}

#[test]
fn slow_start_ends_at_half_a_second() {
    let mut peer = Peer::new();
    peer.send();
    peer.at(400).ack(0);
    peer.send();
    // Both were sent with a window of 2.
    peer.at(900).ack(1);
    assert!(peer.verus.slow_start);
    peer.at(901).ack(2);
    assert!(!peer.verus.slow_start && peer.verus.hold && peer.verus.loss_phase);
    // 0.7 of 2, and 1/W for the acknowledgement of a packet with more.
    assert!((peer.verus.window - (1.4 + 1.0 / 1.4)).abs() < 1e-9);
}

#[test]
fn a_missing_packet_reduces_to_its_own_window_once_per_phase() {
    // Lost at 80 with a window of 100: 56. At 200: never more than the window.
    for (lost, window) in [(80.0, 56.0), (200.0, 100.0)] {
        let mut peer = Peer::with_flights(&[lost, 90.0, 90.0, 100.0]);
        peer.at(1).ack(2);
        assert_eq!(peer.verus.window, 100.0);
        peer.verus.check_missing(Time::from_ns(150_000_000));
        assert_eq!(peer.verus.decreases, 0);
        peer.verus.check_missing(Time::from_ns(151_000_000));
        // Two were missing; the phase is one.
        assert_eq!((peer.verus.window, peer.verus.decreases), (window, 1));
        assert_eq!(peer.verus.in_flight, 1);
        let of_curve = peer.verus.profile.curve(window).unwrap();
        assert_eq!(peer.verus.target, of_curve);
        // A packet with more than the new window belongs to the phase, one with that window ends it.
        peer.verus.window = window;
        peer.verus.flights.push(4, window);
        peer.sent.push(peer.now);
        peer.ack(3);
        assert_eq!(peer.verus.loss_phase, window < 100.0);
        peer.ack(4);
        assert!(!peer.verus.loss_phase);
    }
}

#[test]
fn losses_in_slow_start_end_it_unless_the_window_is_small() {
    for (lost, window, ends) in [(40.0, 28.0, true), (24.0, 16.8, false)] {
        let mut peer = Peer::with_flights(&[lost, 90.0]);
        peer.verus.slow_start = true;
        peer.at(1).ack(1);
        peer.verus.check_missing(Time::from_ns(151_000_000));
        assert!((peer.verus.window - window).abs() < 1e-9);
        assert_eq!((peer.verus.slow_start, peer.verus.loss_phase), (!ends, true));
        assert_eq!(peer.verus.profile.seen(150.0).is_none(), ends, "windows of 100 and more are forgotten");
        assert!(peer.verus.profile.seen(99.0).is_some());
    }
}

/// Ends an epoch with the maximum delay `longest`, after epochs with `before`; the target was `target`.
fn epoch(before: f64, longest: f64, target: f64) -> Verus {
    let mut peer = Peer::with_flights(&[50.0; 40]);
    let verus = &mut peer.verus;
    (verus.largest, verus.epoch_largest, verus.target) = (Some(before), Some(longest), target);
    (verus.credit, verus.smoothed) = (0, 100.0);
    verus.decide(Time::from_ns(5_000_000));
    peer.verus
}

#[test]
fn the_largest_delay_is_smoothed_over_epochs() {
    assert_eq!(epoch(100.0, 50.0, 100.0).largest, Some(0.2 * 100.0 + 0.8 * 50.0));
}

#[test]
fn the_target_follows_the_delay() {
    // No rise: 2 ms more. A rise: 1 ms less. Beyond six times the minimum, 40 ms: 2 ms less.
    assert_eq!(epoch(100.0, 100.0, 100.0).target, 102.0);
    assert_eq!(epoch(100.0, 100.01, 100.0).target, 99.0);
    assert_eq!(epoch(240.0, 200.0, 100.0).target, 102.0);
    assert_eq!(epoch(241.0, 200.0, 100.0).target, 98.0);
    assert_eq!(epoch(241.0, 200.0, 41.0).target, 40.0);
    // The window is that of the curve just below the target.
    assert_eq!(epoch(100.0, 100.0, 98.5).window, 60.0);
}

#[test]
fn far_beyond_the_ratio_nothing_is_sent_and_at_last_the_smallest_delay_rises() {
    let verus = epoch(300.0, 300.0, 40.0);
    assert_eq!((verus.credit, verus.smallest), (0, 40.0));
    let mut peer = Peer::with_flights(&[50.0]);
    let verus = &mut peer.verus;
    (verus.largest, verus.epoch_largest, verus.target, verus.credit) = (Some(300.0), Some(300.0), 40.0, 0);
    verus.decide(Time::from_ns(5_000_000));
    assert_eq!(verus.smallest, 50.0);
}

#[test]
fn silence_forgets_what_is_in_flight_and_aims_at_the_smallest_delay() {
    let mut peer = Peer::with_flights(&[100.0; 20]);
    (peer.verus.timeout, peer.verus.deadline) = (Span::from_ms(200), Time::from_ns(200_000_000));
    peer.at(199);
    assert_eq!(peer.verus.in_flight, 20);
    peer.at(200);
    assert!(peer.verus.loss_phase && peer.verus.flights.is_empty());
    assert_eq!(peer.verus.window, 1.0);
    // It keeps probing, at a low rate, for as long as necessary.
    let mut sent = 0;
    for ms in 201..10_000 {
        peer.at(ms);
        if ms % 1000 == 0 {
            // The transport has declared everything in flight lost.
            peer.verus.flying = 0;
        }
        sent += peer.send();
    }
    assert!((9..100).contains(&sent), "{sent}");
    let last = peer.next - 1;
    peer.at(10_001).ack(last);
    assert!(peer.verus.smallest < 300.0);
}

#[test]
fn before_the_first_acknowledgement_silence_starts_again() {
    let mut peer = Peer::new();
    assert_eq!(peer.send(), 1);
    for second in 1..5 {
        peer.at(1000 * second);
        assert_eq!(peer.verus.restarts, second);
        peer.verus.flying = 0;
        assert_eq!(peer.send(), 1);
    }
    // An acknowledgement from before the restart is ignored.
    peer.ack(0);
    assert_eq!(peer.verus.window, 1.0);
    peer.ack(4);
    assert_eq!(peer.verus.window, 2.0);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut peer = Peer::with_flights(&[50.0; 40]);
    let verus = &mut peer.verus;
    (verus.largest, verus.epoch_largest, verus.target) = (Some(100.0), Some(100.0), 100.0);
    verus.credit = 1;
    verus.decide(Time::from_ns(5_000_000));
    assert_eq!(verus.target, 100.0);
    // And a silent application is not a silent path.
    (verus.in_flight, verus.credit) = (0, 1);
    verus.flights.clear();
    let before = (verus.target, verus.smallest, verus.window);
    for epoch in 2..1000 {
        verus.decide(Time::from_ns(5_000_000 * epoch));
    }
    assert_eq!((verus.target, verus.smallest, verus.window), before);
}

#[test]
fn the_transports_losses_only_settle_its_books() {
    let mut peer = Peer::with_flights(&[100.0; 20]);
    let mut loss = LossEvent::new(Time::ZERO, LossCause::Timeout, Bytes::new(5 * MSS));
    loss.in_flight = Bytes::new(20 * MSS);
    peer.verus.on_loss(&loss);
    assert_eq!((peer.verus.flying, peer.verus.in_flight, peer.verus.window), (15 * MSS, 20, 100.0));
}
