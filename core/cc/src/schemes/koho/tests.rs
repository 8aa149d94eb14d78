use super::*;
use crate::testing::{MSS, setup};
use narrows_units::Bytes;

/// A path of 20 ms each way.
pub(in crate::schemes) struct Peer {
    pub(in crate::schemes) koho: Koho,
    now: Time,
    pub(in crate::schemes) number: u64,
}

pub(in crate::schemes) fn peer(rules: KohoRules) -> Peer {
    let koho = Koho::new(rules, &setup());
    Peer {
        koho,
        now: Time::from_ns(5_000_000_000),
        number: 0,
    }
}

impl Peer {
    pub(in crate::schemes) fn send(&mut self, later_ms: u64) {
        self.now += Span::from_ms(later_ms);
        self.number += 1;
        let mut send = SendEvent::new(self.now, self.number, Bytes::new(MSS));
        send.in_flight = Bytes::new(self.number * MSS);
        self.koho.on_send(&send);
    }

    /// Packet `number`, sent at `sent`, is acknowledged after `queue_ms` in a queue.
    pub(in crate::schemes) fn ack_of(
        &mut self,
        number: u64,
        sent: Time,
        queue_ms: u64,
        limited: bool,
    ) {
        let arrived = Some(sent + Span::from_ms(777 + 20 + queue_ms));
        let packets = [AckedPacket {
            number,
            bytes: MSS as u32,
            sent,
            arrived,
        }];
        let mut ack = AckEvent::new(sent + Span::from_ms(40 + queue_ms));
        ack.packets = &packets;
        ack.bytes = Bytes::new(MSS);
        ack.in_flight = Bytes::new(MSS);
        ack.smoothed_rtt = Span::from_ms(40);
        ack.cwnd_limited = limited;
        self.koho.on_ack(&ack);
    }

    pub(in crate::schemes) fn ack(&mut self, queue_ms: u64) -> f64 {
        let before = self.koho.window;
        self.send(10);
        self.ack_of(self.number, self.now, queue_ms, true);
        self.koho.window - before
    }

    pub(in crate::schemes) fn window(&self) -> f64 {
        self.koho.window
    }

    pub(in crate::schemes) fn now(&self) -> Time {
        self.now
    }
}

const RULES: KohoRules = KohoRules {
    long: Long::Times(1.45),
    step: 0.25,
    largest: 100.0,
    late: None,
    silence: Span::from_ms(50),
    patient: true,
};

// Half of an RTT of 40 ms is 20 ms, and 1.45 times that 29 ms.
#[test]
fn nine_milliseconds_of_queue_are_the_turning_point() {
    let mut peer = peer(RULES);
    assert_eq!(peer.ack(0), 0.25);
    assert_eq!(peer.ack(8), 0.25);
    assert_eq!(peer.ack(9), 0.25);
    assert_eq!(peer.ack(10), -0.25);
}

#[test]
fn the_window_stays_between_two_and_a_hundred_packets() {
    let mut peer = peer(RULES);
    for _ in 0..1000 {
        peer.ack(0);
    }
    assert_eq!(peer.window(), 100.0);
    assert_eq!(peer.koho.allowance().cwnd, Some(Bytes::new(100 * MSS)));
    for _ in 0..1000 {
        peer.ack(100);
    }
    assert_eq!(peer.window(), 2.0);
}

#[test]
fn a_window_that_does_not_limit_does_not_grow_but_shrinks() {
    let mut peer = peer(RULES);
    peer.ack(0);
    let window = peer.window();
    let now = peer.now();
    peer.ack_of(2, now, 0, false);
    assert_eq!(peer.window(), window);
    peer.ack_of(3, now, 100, false);
    assert_eq!(peer.window(), window - 0.25);
}

#[test]
fn fractions_of_a_packet_are_not_sent_and_silence_sends_one() {
    let mut peer = peer(RULES);
    peer.ack(0);
    assert_eq!(peer.window(), 16.25);
    assert_eq!(peer.koho.allowance().cwnd, Some(Bytes::new(16 * MSS)));
    for _ in 0..40 {
        peer.send(0);
    }
    // Two RTTs of 40 ms are longer than 50 ms.
    let timer = peer.koho.next_timer().unwrap();
    assert_eq!(timer, peer.now() + Span::from_ms(80));
    peer.koho.on_timer(timer);
    assert_eq!(peer.koho.allowance().cwnd, Some(Bytes::new(42 * MSS)));
    peer.koho.rules.patient = false;
    let now = peer.now();
    peer.ack_of(42, now, 0, true);
    assert_eq!(peer.koho.next_timer(), Some(now + Span::from_ms(40 + 50)));
    assert_eq!(peer.koho.allowance().cwnd, Some(Bytes::new(16 * MSS)));
}
