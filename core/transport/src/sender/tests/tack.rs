//! Acknowledgements paced by the round trip (TACK).

use super::*;

fn tack() -> Config {
    Config {
        // Full packets of `MSS` bytes of payload, with room for the interval.
        packet_size: Bytes::new(1504),
        acks_per_rtt: 4,
        quick_acks: 0,
        ..Config::default()
    }
}

/// Acknowledgements in the last `seconds` of a run of data that arrives `packets_per_s` apart on a path of `rtt_ms`:
/// the receiver alone, with the interval that a sender would set.
fn acknowledgements(packets_per_s: u64, rtt_ms: u64, seconds: u64) -> u64 {
    let mut receiver = Receiver::new(&tack());
    let mut body = Body::default();
    let interval = Span::from_us(rtt_ms * 1000 / 4);
    let mut count = 0;
    for number in 0..packets_per_s * seconds {
        let at = Time::from_ns(number * 1_000_000_000 / packets_per_s);
        while receiver.next_wakeup() <= at {
            let due = receiver.next_wakeup();
            count += u64::from(receiver.transmit(due, &mut body).is_some());
        }
        let data = Data {
            number,
            offset: number * MSS,
            least_unacked: number.saturating_sub(1000),
            length: MSS as u16,
            retransmission: false,
            ack_interval: Some(interval),
        };
        receiver.receive(at, Ecn::NotEct, &Header::Data(data), &body);
        while receiver.transmit(at, &mut body).is_some() {
            count += 1;
        }
    }
    count
}

// Li et al. 2020: f = min(rate/(L packets), beta/RTT) with L = 2 and beta = 4.
#[test]
fn there_are_as_many_as_the_smaller_of_both_rules_allows() {
    // 100 Mbit/s in packets of 1500 bytes (8333/s) and 100 ms: 4167/s by count, 40/s by round trip.
    let count = acknowledgements(8333, 100, 10);
    assert!((395..=401).contains(&count), "{count} in 10 s");
    // 1 Mbit/s (83.3/s) and 20 ms: 41.7/s by count, 200/s by round trip.
    let count = acknowledgements(83, 20, 100);
    assert!((4149..=4151).contains(&count), "{count} in 100 s");
}

#[test]
fn the_sender_tells_a_quarter_of_the_smallest_round_trip() {
    let mut rig = Rig::with(100, &tack());
    rig.run(5000);
    // No RTT is known before the first round trip of 40 ms.
    assert_eq!(rig.sends[0].1.ack_interval, Some(Span::ZERO));
    assert_eq!(
        rig.sends.last().unwrap().1.ack_interval,
        Some(Span::from_ms(10))
    );
    // A window per round trip arrives at once and is acknowledged once, or twice if an interval ends within it.
    let acks = rig.heard().acks;
    assert!(
        (120..=4 * 125 + 50).contains(&acks),
        "{acks} in 125 round trips"
    );
    // And the window is used as before.
    let windows = rig.goodput() as f64 / (100 * MSS) as f64;
    assert!(windows > 95.0, "{windows}");
}

#[test]
fn nobody_is_told_anything_unless_it_is_asked_for() {
    let mut rig = Rig::new(10);
    rig.run(200);
    assert!(
        rig.sends
            .iter()
            .all(|(_, data)| data.ack_interval.is_none())
    );
    let without_sack = Config {
        sack: false,
        ..tack()
    };
    let mut rig = Rig::with(10, &without_sack);
    rig.run(200);
    assert!(
        rig.sends
            .iter()
            .all(|(_, data)| data.ack_interval.is_none())
    );
}

#[test]
fn a_gap_is_told_at_once_and_only_when_it_opens() {
    let mut receiver = Receiver::new(&tack());
    let mut body = Body::default();
    let mut told = Vec::new();
    for (at, number) in [0, 1, 2, 4, 5, 6, 7, 9, 3, 8].into_iter().enumerate() {
        let now = Time::from_ns(1_000_000 * (at as u64 + 1));
        let data = Data {
            number,
            offset: number * 100,
            least_unacked: 0,
            length: 100,
            retransmission: false,
            ack_interval: Some(Span::from_ms(100)),
        };
        receiver.receive(now, Ecn::NotEct, &Header::Data(data), &body);
        if receiver.transmit(now, &mut body).is_some() {
            told.push(number);
        }
    }
    // Acknowledged at the start of time, so the first interval has not elapsed; 3 and 8 fill gaps and can wait.
    assert_eq!(told, [4, 9]);
}

#[test]
fn the_last_packets_before_a_pause_are_acknowledged_after_the_delay() {
    let mut rig = Rig::with(20, &tack());
    rig.sender.set_write_seq(31 * MSS);
    rig.run(1000);
    assert!(rig.sender.is_complete());
    let counters = rig.sender.counters();
    assert_eq!((counters.sent_packets, counters.timeouts), (31, 0));
}

#[test]
fn losses_are_found_and_repaired_as_ever() {
    let mut rig = Rig::with(20, &tack()).losing(&[30, 77, 78, 200]);
    rig.run(1000);
    let counters = rig.sender.counters();
    assert_eq!(
        (counters.lost_packets, counters.retransmitted_packets),
        (4, 4)
    );
    assert_eq!((counters.timeouts, counters.spurious_losses), (0, 0));
}

#[test]
fn a_hostile_interval_does_not_stop_acknowledgements() {
    let mut receiver = Receiver::new(&tack());
    let data = Data {
        length: 100,
        ack_interval: Some(Span::from_ms(1_000_000)),
        ..Data::default()
    };
    let now = Time::from_ns(7);
    receiver.receive(now, Ecn::NotEct, &Header::Data(data), &Body::default());
    // RFC 5681, section 4.2: within half a second.
    assert_eq!(receiver.next_wakeup(), now + Span::from_ms(500));
}
