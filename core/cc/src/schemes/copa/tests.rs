use super::*;
use crate::testing::{MSS, setup};
use crate::{AckedPacket, LossCause};
use narrows_units::Value;

fn copa(settings: &[(&str, &str)]) -> Copa {
    let given = settings.iter().map(|&(name, text)| {
        let spec = SCHEME.params.iter().find(|spec| spec.name == name).unwrap();
        (name.to_owned(), spec.parse(text).unwrap())
    });
    let given: Vec<(String, Value)> = given.collect();
    Copa::new(&Params::resolve(SCHEME.params, given).unwrap(), &setup())
}

fn at(ms: f64) -> Time {
    Time::from_ns((ms * 1e6) as u64)
}

fn ms(ms: f64) -> Span {
    Span::from_ns((ms * 1e6) as u64)
}

/// A connection whose packets have given RTTs.
struct Peer {
    copa: Copa,
    now: f64,
    number: u64,
    /// Packets in flight before each acknowledgement, if set.
    flight: Option<u64>,
}

impl Peer {
    fn new(settings: &[(&str, &str)]) -> Self {
        Peer {
            copa: copa(settings),
            now: 1000.0,
            number: 0,
            flight: None,
        }
    }

    fn ack(&mut self, after_ms: f64, rtt_ms: f64) {
        self.ack_limited(after_ms, rtt_ms, true);
    }

    fn ack_limited(&mut self, after_ms: f64, rtt_ms: f64, limited: bool) {
        self.now += after_ms;
        self.number += 1;
        let sent = at(self.now - rtt_ms);
        let packets = [AckedPacket {
            number: self.number,
            bytes: MSS as u32,
            sent,
            arrived: None,
        }];
        let mut ack = AckEvent::new(at(self.now));
        ack.packets = &packets;
        ack.bytes = Bytes::new(MSS);
        ack.in_flight = Bytes::new(self.copa.window as u64 * MSS);
        if let Some(packets) = self.flight {
            ack.in_flight_before = Bytes::new(packets * MSS);
        }
        ack.cwnd_limited = limited;
        self.copa.on_ack(&ack);
    }

    fn lose(&mut self, packets: u64) {
        let mut loss = LossEvent::new(
            at(self.now),
            LossCause::Reordering,
            Bytes::new(packets * MSS),
        );
        loss.packets = packets;
        loss.in_flight = Bytes::new((self.copa.window as u64 + packets) * MSS);
        self.copa.on_loss(&loss);
    }
}

/// One step from a window, with the minimum RTT measured long ago and the standing RTT just now.
fn step(window: f64, delta: &str, velocity: f64, standing: f64, base: f64) -> (f64, f64, f64) {
    let mut copa = copa(&[("delta", delta), ("mode", "constant")]);
    copa.rtts.push(at(0.0), ms(base));
    copa.rtts.push(at(5000.0), ms(standing));
    (copa.window, copa.slow_start, copa.velocity.value) = (window, false, velocity);
    // The round trip has just begun.
    copa.velocity
        .turn(at(5000.0), ms(standing), f64::INFINITY, 1.0);
    copa.velocity.value = velocity;
    let target = copa.target();
    copa.adjust(at(5000.0), ms(standing), true);
    copa.pace();
    let interval_ms = MSS as f64 * 8e3 / copa.pacing.unwrap().bps() as f64;
    (target, copa.window, interval_ms)
}

// Computed from the rules of genericCC d0153f8: target = standing / ((standing - base) delta), window +- velocity /
// (delta window), interval = standing / (2 window).
#[test]
fn one_step_by_the_published_rule() {
    for (given, (target, window, interval)) in [
        ((20.0, "0.5", 1.0, 50.0, 40.0), (10.0, 19.9, 1.256_281)),
        ((20.0, "0.5", 4.0, 50.0, 40.0), (10.0, 19.6, 1.275_510)),
        ((5.0, "0.5", 1.0, 50.0, 40.0), (10.0, 5.4, 4.629_630)),
        (
            (100.0, "0.1", 8.0, 101.0, 100.0),
            (1010.0, 100.8, 0.500_992),
        ),
        ((12.0, "0.5", 1.0, 60.0, 40.0), (6.0, 11.833_333, 2.535_211)),
    ] {
        let (w, delta, velocity, standing, base) = given;
        let found = step(w, delta, velocity, standing, base);
        assert!(
            (found.0 - target).abs() < 1e-6,
            "{given:?}: target {}",
            found.0
        );
        assert!(
            (found.1 - window).abs() < 1e-6,
            "{given:?}: window {}",
            found.1
        );
        // Rates are whole bits per second.
        assert!(
            (found.2 - interval).abs() < 1e-5,
            "{given:?}: interval {}",
            found.2
        );
    }
}

#[test]
fn nothing_is_adjusted_before_nineteen_acknowledgements() {
    let mut peer = Peer::new(&[]);
    for _ in 0..19 {
        peer.ack(1.0, 40.0);
        assert_eq!(peer.copa.window, 10.0);
        // A packet every 4 ms.
        assert_eq!(peer.copa.pacing, Some(Rate::from_bps(2_000_000)));
    }
    peer.ack(1.0, 40.0);
    assert_eq!(peer.copa.window, 11.0);
}

#[test]
fn slow_start_adds_a_packet_per_acknowledgement_until_the_target() {
    let mut peer = Peer::new(&[]);
    for _ in 0..39 {
        peer.ack(1.0, 40.0);
    }
    assert_eq!((peer.copa.window, peer.copa.slow_start), (30.0, true));
    // Standing for more than half a round trip: 44 / (4 x 0.5) = 22 packets.
    for _ in 0..25 {
        peer.ack(1.0, 44.0);
    }
    assert!(!peer.copa.slow_start && peer.copa.window > 30.0);
    let before = peer.copa.window;
    peer.ack(1.0, 44.0);
    assert!(peer.copa.window < before);
}

#[test]
fn a_window_that_does_not_limit_does_not_grow() {
    let mut peer = Peer::new(&[]);
    for _ in 0..1000 {
        peer.ack_limited(1.0, 40.0, false);
    }
    assert_eq!(peer.copa.window, 10.0);
}

#[test]
fn pacing_by_the_window_limits_as_the_window_does() {
    // Half the window in flight is due to the application, and with twice the window per round trip the limit of one
    // packet beyond it is reached earlier.
    for (gain, beyond, flight, grows) in [
        ("1", "0", 9, true),
        ("1", "1", 9, true),
        ("1.2", "10", 9, true),
        ("1", "1", 5, false),
        ("2", "1", 9, false),
    ] {
        let mut peer = Peer::new(&[("pacing_gain", gain), ("beyond", beyond)]);
        peer.flight = Some(flight);
        for _ in 0..20 {
            peer.ack_limited(1.0, 40.0, false);
        }
        assert_eq!(peer.copa.window > 10.0, grows, "{gain} {beyond} {flight}");
    }
}

#[test]
fn the_window_is_whole_packets_and_what_was_written_off() {
    let mut peer = Peer::new(&[("beyond", "1")]);
    peer.copa.window = 10.2;
    assert_eq!(peer.copa.allowance().cwnd, Some(Bytes::new(12 * MSS)));
    peer.copa.params.beyond = 0.0;
    assert_eq!(peer.copa.allowance().cwnd, Some(Bytes::new(11 * MSS)));
}

#[test]
fn a_third_of_losses_brakes_and_a_quarter_does_not() {
    for (lost, kept) in [(6, 1.0), (11, 0.7)] {
        let mut peer = Peer::new(&[]);
        for _ in 0..60 {
            peer.ack(1.0, 40.0);
        }
        // Losses were just evaluated, without effect.
        (peer.copa.brake, peer.copa.window) = (
            Brake {
                since: at(peer.now),
                packets: 0,
                lost: 0,
            },
            100.0,
        );
        peer.lose(lost);
        for count in 0..18 {
            let before = peer.copa.window;
            assert_eq!(
                before,
                100.0 + f64::from(count),
                "judged after two round trips"
            );
            peer.ack(1.0, 40.0);
        }
        let before = peer.copa.window;
        peer.ack(70.0, 40.0);
        assert!(
            (peer.copa.window - kept * (before + 1.0)).abs() < 1e-9,
            "{lost}"
        );
        assert_eq!(peer.copa.brake.packets, 0);
    }
}

#[test]
fn two_silent_seconds_begin_everything_anew() {
    let mut peer = Peer::new(&[]);
    for _ in 0..50 {
        peer.ack(1.0, 40.0);
    }
    let mut send = SendEvent::new(at(peer.now + 1.0), 51, Bytes::new(MSS));
    send.in_flight = Bytes::new(40 * MSS);
    peer.copa.on_send(&send);
    let timer = peer.copa.next_timer().unwrap();
    assert_eq!(timer, at(peer.now + 2000.0));
    peer.copa.on_timer(timer - ms(1.0));
    assert!(peer.copa.window > 10.0);
    peer.copa.on_timer(timer);
    assert_eq!(
        (peer.copa.window, peer.copa.slow_start, peer.copa.pacing),
        (10.0, true, None)
    );
    assert_eq!(peer.copa.allowance().cwnd, Some(Bytes::new(50 * MSS)));
    assert_eq!(peer.copa.next_timer(), Some(timer + ms(2000.0)));
    // All data written off is found lost: ten packets are ten packets.
    let mut loss = LossEvent::new(timer, LossCause::Timeout, Bytes::new(40 * MSS));
    loss.in_flight = Bytes::new(40 * MSS);
    peer.copa.on_loss(&loss);
    assert_eq!(peer.copa.allowance().cwnd, Some(Bytes::new(10 * MSS)));
    assert_eq!(peer.copa.next_timer(), None);
}

#[test]
fn competitive_while_the_queue_never_empties() {
    let mut peer = Peer::new(&[]);
    for _ in 0..100 {
        peer.ack(1.0, 40.0);
    }
    // The queue is always between 30 and 60 ms: after four round trips the empty queue is out of the window.
    for index in 0..2000 {
        peer.ack(1.0, if index % 100 < 50 { 70.0 } else { 100.0 });
    }
    assert!(peer.copa.mode.is_competitive());
    let packets = 1.0 / peer.copa.mode.delta();
    // Four smoothed RTTs of up to 100 ms until it is detected, then one packet per 70 to 100 ms.
    assert!(
        (2.0 + 1600.0 / 100.0 - 1.0..2.0 + 2000.0 / 70.0).contains(&packets),
        "{packets}"
    );
    peer.lose(1);
    assert!((1.0 / peer.copa.mode.delta() - packets / 2.0).abs() < 1e-9);
    peer.ack(1.0, 41.0);
    assert!(!peer.copa.mode.is_competitive());
    assert_eq!(peer.copa.mode.delta(), 0.5);
}

#[test]
fn as_the_reference_sends_nothing_is_spaced_before_the_first_adjustment() {
    let mut peer = Peer::new(&[("spacing", "reference"), ("beyond", "1")]);
    for _ in 0..19 {
        peer.ack(1.0, 40.0);
        let allowance = peer.copa.allowance();
        assert_eq!((allowance.pacing, allowance.restart_pacing_when_open), (None, false));
        assert_eq!(allowance.cwnd, Some(Bytes::new(11 * MSS)));
    }
    peer.ack(1.0, 40.0);
    let allowance = peer.copa.allowance();
    // 11 packets and twice that per 40 ms; the packet beyond the window is never sent.
    assert_eq!(allowance.cwnd, Some(Bytes::new(11 * MSS)));
    assert_eq!(allowance.pacing, Some(Rate::from_bps(4_400_000)));
    assert!(allowance.restart_pacing_when_open && allowance.reschedule_pacing);
    assert_eq!(allowance.quantum, Some(Bytes::new(MSS)));
    assert!(!copa(&[]).allowance().restart_pacing_when_open);
}
