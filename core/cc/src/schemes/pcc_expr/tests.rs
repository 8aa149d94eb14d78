use super::*;
use crate::LossCause;
use crate::parts::monitor_interval::tests::report;
use crate::testing::setup;
use crate::AckedPacket;
use narrows_units::{Bytes, Value};

fn expr(given: &[(&str, Value)]) -> Expr {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let params = Params::resolve(SCHEME.params, given).unwrap();
    Expr::new(&params, Setup { mss: Bytes::new(1400), ..setup() })
}

#[test]
fn utilities_are_those_of_the_formula_with_and_without_its_defect() {
    // 140 000 bytes in 100 packets and 0.1 s: 10.6812 Mibit/s, 10.6812^0.9 without loss.
    let utility = |lost_bytes, rise, defects| {
        let outcome = ExprResult { packets: 100.0, bytes: 140_000.0, lost_bytes, seconds: 0.1, rise };
        outcome.utility(11_330.0, defects)
    };
    for (lost, rise, expected) in [
        (0.0, 0.0, 8.4286),
        (1400.0, 0.0, 8.3218),
        (7000.0, 0.0, 2.3671),
        (0.0, 0.019, 8.4286),
    ] {
        for defects in [false, true] {
            let found = utility(lost, rise, defects);
            assert!((found - expected).abs() < 1e-4, "{lost} {rise}: {found}");
        }
    }
    let found = utility(0.0, 0.02, true);
    assert!((found + 3_388_480.34).abs() < 0.01, "{found}");
    // 1400 bytes in place of each packet.
    let found = utility(0.0, 0.02, false);
    assert!((found - (8.4286 - (8.4286 + 3_388_480.34) / 1400.0)).abs() < 1e-3, "{found}");
}

/// Begins intervals until `id` is among them.
fn begin(scheme: &mut Expr, rtt: f64) -> (u64, f64) {
    let id = scheme.monitors.next_id();
    scheme.begin(Time::ZERO, rtt);
    (id, scheme.sending)
}

/// An interval of 100 packets that were sent at `rate`.
fn sent_at(id: u64, rate: f64) -> IntervalReport {
    IntervalReport { first_to_last: Span::from_secs(100.0 * 1500.0 * 8.0 / rate), ..report(id, rate, 100) }
}

#[test]
fn the_start_doubles_with_each_useful_interval() {
    let mut scheme = expr(&[]);
    let mut rates = vec![];
    for _ in 0..4 {
        let (id, rate) = begin(&mut scheme, 0.04);
        // The next one is not useful, and has the same rate.
        assert_eq!(begin(&mut scheme, 0.04).1, rate);
        rates.push(rate / 1e6);
        scheme.judge(&sent_at(id, rate));
    }
    assert_eq!(rates, [1.12, 2.24, 4.48, 8.96]);
    let (id, rate) = begin(&mut scheme, 0.04);
    scheme.judge(&IntervalReport { rise: 0.1, ..sent_at(id, rate) });
    assert_eq!((scheme.rate, scheme.phase), (8.96e6, ExprPhase::Probe));
}

/// One packet is acknowledged after `rtt_ms`.
fn ack(scheme: &mut Expr, rtt_ms: u64) {
    let now = Time::ZERO + Span::from_ms(1000);
    let packets = [AckedPacket { number: 1 << 40, bytes: 1400, sent: now - Span::from_ms(rtt_ms), arrived: None }];
    let mut ack = AckEvent::new(now);
    ack.packets = &packets;
    scheme.on_ack(&ack);
}

#[test]
fn the_start_ends_when_the_round_trip_time_has_grown_by_30_percent() {
    let mut scheme = expr(&[]);
    ack(&mut scheme, 40);
    begin(&mut scheme, 0.04);
    // 3/4 of 40 and 1/4 of 80 ms are 50; then 57.5.
    ack(&mut scheme, 80);
    assert_eq!(scheme.phase, ExprPhase::Start { last: None });
    ack(&mut scheme, 80);
    assert_eq!((scheme.phase, scheme.rate, scheme.probes.has_begun()), (ExprPhase::Probe, 0.56e6, false));
}

/// A scheme at 10 Mibit/s that has begun its four probes, with their numbers and rates.
fn probing() -> (Expr, Vec<(u64, f64)>) {
    let mut scheme = expr(&[]);
    scheme.enter(ExprPhase::Probe, 10.0 * UNIT);
    let probes = (0..4).map(|_| begin(&mut scheme, 0.04)).collect();
    assert_eq!(begin(&mut scheme, 0.04).1, 10.0 * UNIT);
    (scheme, probes)
}

#[test]
fn pairs_that_agree_move_the_rate_along_the_gradient() {
    for (falls_above, share) in [(false, 1.05), (true, 0.95)] {
        let (mut scheme, probes) = probing();
        for (id, rate) in probes {
            assert!((rate / UNIT - 10.0).abs() - 0.5 < 1e-6);
            let rise = if falls_above && rate > 10.0 * UNIT { 0.05 } else { 0.0 };
            scheme.judge(&IntervalReport { rise, ..sent_at(id, rate) });
        }
        // 5 % is the first bound, which 0.9 x^-0.1 = 0.71 exceeds.
        assert!((scheme.rate / UNIT - 10.0 * share).abs() < 1e-6, "{}", scheme.rate);
        assert!(matches!(scheme.phase, ExprPhase::Decided { .. }));
    }
}

#[test]
fn pairs_that_disagree_are_tried_again() {
    let (mut scheme, probes) = probing();
    for (index, (id, rate)) in probes.into_iter().enumerate() {
        let worse = (rate > 10.0 * UNIT) == (index < 2);
        scheme.judge(&IntervalReport { rise: if worse { 0.05 } else { 0.0 }, ..sent_at(id, rate) });
    }
    assert_eq!((scheme.phase, scheme.rate, scheme.probes.has_begun()), (ExprPhase::Probe, 10.0 * UNIT, false));
}

#[test]
fn a_direction_is_kept_while_the_gradient_has_its_sign() {
    for (rise, next, phase_is_probe) in [(0.0, 10.5 * 1.05, false), (0.1, 10.5 / 1.02, true)] {
        let (mut scheme, probes) = probing();
        for (id, rate) in probes {
            scheme.judge(&sent_at(id, rate));
        }
        // Reports of the earlier probes say nothing about the new rate.
        let (id, rate) = begin(&mut scheme, 0.04);
        scheme.judge(&sent_at(id - 1, rate));
        assert!((scheme.rate / UNIT - 10.5).abs() < 1e-6);
        scheme.judge(&IntervalReport { rise, ..sent_at(id, rate) });
        assert_eq!(scheme.phase == ExprPhase::Probe, phase_is_probe);
        // Compared with the slower probe of the last pair: up by the first bound, or back.
        assert!((scheme.rate / UNIT - next).abs() < 1e-3, "{rise}: {}", scheme.rate / UNIT);
    }
}

#[test]
fn an_interval_of_one_packet_makes_the_others_worthless() {
    let (mut scheme, probes) = probing();
    scheme.judge(&sent_at(probes[0].0, probes[0].1));
    scheme.judge(&IntervalReport { first_to_last: Span::ZERO, packets: 1, ..sent_at(probes[1].0, probes[1].1) });
    let anew = scheme.probes;
    assert!(!anew.has_begun());
    scheme.judge(&sent_at(probes[2].0, probes[2].1));
    assert_eq!(scheme.probes, anew);
}

#[test]
fn intervals_have_ten_packets_at_least_unless_units_are_confused() {
    for (defects, seconds) in [(false, 10.0 * 1400.0 * 8.0 / 1.12e6), (true, 0.06)] {
        let mut scheme = expr(&[("unit_defects", Value::Flag(defects))]);
        begin(&mut scheme, 0.04);
        assert!((scheme.end.secs() - seconds).abs() < 1e-6, "{}", scheme.end);
    }
}

#[test]
fn the_program_never_sends_less_than_2_mibit_per_second() {
    let floor = expr(&[("min_rate", Value::Integer(2_097_152))]);
    for (mut scheme, least) in [(floor, 2_097_152.0), (expr(&[]), 50e3)] {
        for _ in 0..30 {
            scheme.on_loss(&LossEvent::new(Time::ZERO, LossCause::Timeout, Bytes::new(1400)));
        }
        assert_eq!(scheme.sending, least);
        ack(&mut scheme, 40);
        assert_eq!(scheme.phase, ExprPhase::Start { last: None });
    }
}
