use super::*;
use narrows_units::Bytes;

const MS: fn(u64) -> Time = |ms| Time::from_ns(ms * 1_000_000);

/// An interval of `packets` packets without loss, sent in 100 ms, with a constant RTT of 40 ms.
pub(crate) fn report(id: u64, rate: f64, packets: u64) -> IntervalReport {
    IntervalReport {
        id,
        rate,
        packets,
        bytes: packets * 1500,
        lost: 0,
        lost_bytes: 0,
        elapsed: Span::from_ms(100),
        first_to_last: Span::from_ms(99),
        rtt: Some(0.04),
        rtt_of_newest: Some(0.04),
        slope: 0.0,
        rise: 0.0,
        app_limited: false,
    }
}

/// Sends `count` packets from number `first` on, one each 10 ms from `from_ms` on.
fn send(monitors: &mut Monitors, first: u64, count: u64, from_ms: u64) {
    for index in 0..count {
        let now = MS(from_ms + 10 * index);
        monitors.sent(&SendEvent::new(now, first + index, Bytes::new(1000)));
    }
}

/// The packet with `number`, sent at `sent_ms`, is acknowledged after `rtt_ms`.
fn ack(monitors: &mut Monitors, number: u64, sent_ms: u64, rtt_ms: u64) {
    let packet = AckedPacket {
        number,
        bytes: 1000,
        sent: MS(sent_ms),
        arrived: None,
    };
    monitors.acked(MS(sent_ms + rtt_ms), &[packet]);
}

fn lose(monitors: &mut Monitors, number: u64) {
    monitors.lost(&[LostPacket {
        number,
        bytes: 1000,
        sent: MS(0),
        in_flight_at_send: Bytes::new(1000),
        delivered_before: Bytes::ZERO,
        lost_before: Bytes::ZERO,
        app_limited: false,
    }]);
}

/// Two intervals of four packets each, from number 7 on; the second begins with the last packet of the first.
fn two(closing: Closing) -> Monitors {
    let mut monitors = Monitors::new(closing);
    assert_eq!(monitors.begin(MS(0), 1.0), 0);
    send(&mut monitors, 7, 4, 0);
    assert_eq!(monitors.begin(MS(30), 2.0), 1);
    send(&mut monitors, 11, 4, 40);
    monitors
}

#[test]
fn an_interval_is_settled_when_every_fate_is_known() {
    let mut monitors = two(Closing::Settled);
    for (number, sent) in [(7, 0), (8, 10), (10, 30), (11, 40)] {
        ack(&mut monitors, number, sent, 40);
        assert_eq!(monitors.report(), None);
    }
    lose(&mut monitors, 9);
    let report = monitors.report().unwrap();
    assert_eq!(
        (report.id, report.rate, report.packets, report.lost),
        (0, 1.0, 4, 1)
    );
    assert_eq!((report.bytes, report.lost_bytes), (4000, 1000));
    assert_eq!(
        (report.elapsed, report.first_to_last),
        (Span::from_ms(30), Span::from_ms(30))
    );
    assert_eq!(report.rtt, Some(0.04));
    assert!(!report.app_limited);
    // The second one is still being sent, although the fate of all its packets is known.
    for (number, sent) in [(12, 50), (13, 60), (14, 70)] {
        ack(&mut monitors, number, sent, 40);
    }
    assert_eq!(monitors.report(), None);
    monitors.end();
    let report = monitors.report().unwrap();
    assert_eq!(
        (report.id, report.elapsed, report.first_to_last),
        (1, Span::from_ms(40), Span::from_ms(30))
    );
    assert_eq!((monitors.report(), monitors.open()), (None, 0));
}

#[test]
fn what_was_only_late_is_not_lost() {
    let mut monitors = two(Closing::Settled);
    lose(&mut monitors, 7);
    for (number, sent) in [(7, 0), (8, 10), (9, 20), (10, 30)] {
        assert_eq!(monitors.report(), None);
        ack(&mut monitors, number, sent, 40);
    }
    assert_eq!(monitors.report().map(|report| report.lost), Some(0));
    // Nor lost again after it has arrived, nor once it is no longer tracked.
    ack(&mut monitors, 11, 40, 40);
    lose(&mut monitors, 11);
    lose(&mut monitors, 7);
    for (number, sent) in [(12, 50), (13, 60), (14, 70)] {
        ack(&mut monitors, number, sent, 40);
    }
    monitors.end();
    assert_eq!(monitors.report().map(|report| report.lost), Some(0));
}

#[test]
fn a_report_of_the_last_packet_or_of_a_later_interval_closes_without_asking_for_the_rest() {
    for (closing, closed_by) in [(Closing::Reported, 10), (Closing::Overtaken, 11)] {
        let mut monitors = two(closing);
        ack(&mut monitors, 7, 0, 40);
        for number in 9..closed_by {
            ack(&mut monitors, number, 10 * (number - 7), 40);
            assert_eq!(monitors.report(), None, "{closing:?}: {number}");
        }
        ack(&mut monitors, closed_by, 10 * (closed_by - 7), 60);
        let report = monitors.report().unwrap();
        assert_eq!((report.id, report.lost), (0, 1), "{closing:?}");
        // The newest round-trip times.
        let newest = if closing == Closing::Overtaken {
            0.06
        } else {
            (0.04 + 0.04 + 0.06) / 3.0
        };
        assert!(
            (report.rtt_of_newest.unwrap() - newest).abs() < 1e-12,
            "{report:?}"
        );
        // Too late to count.
        ack(&mut monitors, 8, 10, 90);
        assert_eq!(monitors.report(), None);
    }
}

#[test]
fn trends_of_the_round_trip_time() {
    let trend = |rtts: [u64; 4]| {
        let mut monitors = two(Closing::Settled);
        for (index, rtt) in rtts.into_iter().enumerate() {
            ack(&mut monitors, 7 + index as u64, 10 * index as u64, rtt);
        }
        let report = monitors.report().unwrap();
        (report.slope, report.rise)
    };
    // 1 ms more every 10 ms; the halves are 40.5 and 42.5 ms, and their mean 41.5.
    let (slope, rise) = trend([40, 41, 42, 43]);
    assert!(
        (slope - 0.1).abs() < 1e-12 && (rise - 2.0 / 41.5).abs() < 1e-12,
        "{slope} {rise}"
    );
    let (slope, rise) = trend([40, 40, 40, 40]);
    assert_eq!((slope, rise), (0.0, 0.0));
    // Least squares: times -15, -5, 5, 15; products 0, -20, -20, 0 ... of -4 in the middle: no slope.
    let (slope, rise) = trend([40, 36, 36, 40]);
    assert!(slope.abs() < 1e-12 && rise.abs() < 1e-12, "{slope} {rise}");
    // -15 x 0 - 5 x 4 + 5 x 0 + 15 x 4 = 40, over 500.
    let (slope, _) = trend([40, 44, 40, 44]);
    assert!((slope - 0.08).abs() < 1e-12, "{slope}");
}

#[test]
fn one_packet_has_no_trend_and_none_has_no_round_trip_time() {
    let mut monitors = Monitors::new(Closing::Settled);
    monitors.begin(MS(0), 1.0);
    send(&mut monitors, 0, 1, 5);
    monitors.begin(MS(5), 1.0);
    send(&mut monitors, 1, 1, 20);
    monitors.end();
    ack(&mut monitors, 0, 5, 40);
    lose(&mut monitors, 1);
    let report = monitors.report().unwrap();
    assert_eq!(
        (report.slope, report.rise, report.rtt),
        (0.0, 0.0, Some(0.04))
    );
    assert_eq!(
        (report.elapsed, report.first_to_last),
        (Span::from_ms(5), Span::ZERO)
    );
    let report = monitors.report().unwrap();
    assert_eq!((report.rtt, report.lost), (None, report.packets));
}

#[test]
fn packets_of_no_interval_and_of_forgotten_ones_are_nobodys() {
    let mut monitors = Monitors::new(Closing::Settled);
    send(&mut monitors, 0, 3, 0);
    assert_eq!(
        (monitors.open(), monitors.is_sending(), monitors.newest()),
        (0, false, (0, false))
    );
    monitors.begin(MS(30), 1.0);
    send(&mut monitors, 3, 2, 30);
    assert_eq!(
        (monitors.open(), monitors.is_sending(), monitors.newest()),
        (1, true, (2, false))
    );
    monitors.clear();
    for number in 0..5 {
        ack(&mut monitors, number, 0, 100);
    }
    monitors.begin(MS(50), 2.0);
    send(&mut monitors, 5, 2, 50);
    monitors.end();
    ack(&mut monitors, 5, 50, 40);
    ack(&mut monitors, 6, 60, 40);
    let report = monitors.report().unwrap();
    assert_eq!((report.id, report.packets, report.lost), (1, 2, 0));
}

#[test]
fn an_application_that_had_nothing_to_send_is_noted() {
    let mut monitors = Monitors::new(Closing::Settled);
    monitors.begin(MS(0), 1.0);
    let mut event = SendEvent::new(MS(0), 0, Bytes::new(1000));
    event.app_limited = true;
    monitors.sent(&event);
    send(&mut monitors, 1, 1, 10);
    assert_eq!(monitors.newest(), (2, true));
    monitors.end();
    ack(&mut monitors, 0, 0, 40);
    ack(&mut monitors, 1, 10, 40);
    assert!(monitors.report().unwrap().app_limited);
}
