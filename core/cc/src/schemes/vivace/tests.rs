use super::*;
use crate::LossCause;
use crate::parts::monitor_interval::tests::report;
use crate::testing::setup;
use narrows_units::{Bytes, Span, Value};

fn vivace(given: &[(&str, Value)]) -> Vivace {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let params = Params::resolve(SCHEME.params, given).unwrap();
    Vivace::new(&params, Setup { mss: Bytes::new(1500), ..setup() })
}

/// Without the bounds that keep slow links usable.
fn published() -> Vivace {
    vivace(&[("min_rate", Value::Integer(1_300_000)), ("step_limit", Value::Real(1.0))])
}

fn params(utility: UtilityForm, latency_coefficient: f64) -> VivaceParams {
    VivaceParams { utility, latency_coefficient, ..vivace(&[]).params }
}

#[test]
fn utilities_are_those_of_the_formulas() {
    let shipped = params(UtilityForm::Shipped, 900.0);
    // 100 packets of 1500 bytes in 100 ms, in Mibit/s.
    let seen = VivaceResult::new(&report(0, 12.0, 100), Counted::default());
    assert!((seen.sent - 11.444_092).abs() < 1e-6);
    for (loss, slope, utility) in [
        (0.0, 0.0, 8.968_570),
        (0.02, 0.0, 8.739_688),
        (0.05, 0.0, 2.474_048),
        (0.0, 0.019, 8.968_570),
        (0.0, 0.021, -197.025_082),
        (0.0, 0.039, -197.025_082),
        (0.0, -0.05, 420.955_875),
    ] {
        let found = shipped.utility_of(seen.sent, loss, slope);
        assert!((found - utility).abs() < 1e-6, "{loss} {slope}: {found}");
    }
    let found = shipped.utility_of(VivaceResult::new(&report(0, 120.0, 1000), Counted::default()).sent, 0.0, 0.1);
    assert!((found + 10_228.442_734).abs() < 1e-6, "{found}");
    let found = params(UtilityForm::Shipped, 11_330.0).utility_of(seen.sent, 0.0, 0.021);
    assert!((found + 2_584.262_631).abs() < 1e-6, "{found}");
    let paper = params(UtilityForm::Paper, 900.0);
    for (loss, slope, utility) in [(0.05, 0.0, 6.3457), (0.0, 0.001, -26.9043), (0.0, -0.5, 63.0957)] {
        let found = paper.utility_of(100.0, loss, slope);
        assert!((found - utility).abs() < 1e-4, "{loss} {slope}: {found}");
    }
}

#[test]
fn the_paper_form_tolerates_loss_up_to_where_more_is_worth_nothing() {
    // d/dx (x^0.9 - 11.35 x L) = 0 at L = 0.9 x^-0.1 / 11.35.
    let paper = params(UtilityForm::Paper, 900.0);
    for (rate, limit) in [(1.0, 0.079), (10.0, 0.063), (100.0, 0.050), (1000.0, 0.040)] {
        let more_is_better = |loss: f64| paper.utility_of(rate * 1.001, loss, 0.0) > paper.utility_of(rate, loss, 0.0);
        assert!(more_is_better(limit - 0.001) && !more_is_better(limit + 0.001), "{rate}");
    }
}

/// Result of an interval with id `id` at `rate` when it was sent at that rate.
fn seen_at(id: u64, rate: f64) -> IntervalReport {
    let packets = (rate * 1e6 * 0.1 / 12_000.0).round() as u64;
    report(id, rate, packets)
}

#[test]
fn the_start_doubles_with_each_result_until_utility_falls() {
    let mut scheme = vivace(&[]);
    scheme.begin(Time::ZERO);
    let mut rates = vec![scheme.sending];
    for _ in 0..4 {
        let VivacePhase::Start { target: Some(target), .. } = scheme.phase else { panic!("starting") };
        // Another one before the result arrives has the same rate.
        scheme.begin(Time::ZERO);
        assert_eq!(scheme.sending, *rates.last().unwrap());
        scheme.judge(&seen_at(target, scheme.sending));
        scheme.begin(Time::ZERO);
        rates.push(scheme.sending);
    }
    assert_eq!(rates, [0.8, 1.6, 3.2, 6.4, 12.8]);
    let VivacePhase::Start { target: Some(target), .. } = scheme.phase else { panic!("starting") };
    // Slopes below 0.2 and up to 50 losses are tolerated (of 133, so that 47 % would end the phase).
    let result = IntervalReport { slope: 0.19, lost: 50, ..report(target, 12.8, 133) };
    scheme.judge(&result);
    assert!(matches!(scheme.phase, VivacePhase::Start { .. }));
    scheme.begin(Time::ZERO);
    assert_eq!(scheme.sending, 25.6);
    let VivacePhase::Start { target: Some(target), .. } = scheme.phase else { panic!("starting") };
    scheme.judge(&IntervalReport { slope: 0.21, ..seen_at(target, 25.6) });
    assert_eq!(scheme.base, 12.8);
    assert!(matches!(&scheme.phase, VivacePhase::Probe(probes) if probes.count() == 4));
}

/// Of 100 packets 10 lost, or a slope of 0.06: the second doubling is undone if the start is strict.
#[test]
fn a_strict_start_overlooks_nothing() {
    for (start, kept) in [("tolerant", 4.0), ("strict", 1.0)] {
        for (lost, slope) in [(10, 0.0), (0, 0.06)] {
            let mut scheme = vivace(&[("start", Value::Word(start.into()))]);
            let first = scheme.sending;
            scheme.begin(Time::ZERO);
            for (lost, slope) in [(0, 0.0), (lost, slope)] {
                let VivacePhase::Start { target: Some(target), .. } = scheme.phase else { panic!("starting") };
                scheme.judge(&IntervalReport { lost, slope, ..seen_at(target, 10.0) });
                scheme.begin(Time::ZERO);
            }
            assert_eq!(scheme.base, kept * first, "{start}: {lost} lost, slope {slope}");
        }
    }
}

/// A packet of 1500 bytes of payload counts as one of 1556: the payload rate is smaller, the measured rate larger.
#[test]
fn headers_count_where_they_are_asked_to() {
    let scheme = vivace(&[("header", Value::Integer(56))]);
    let pacing = scheme.allowance().pacing.unwrap().bps() as f64;
    assert!((pacing / (0.8e6 * 1500.0 / 1556.0) - 1.0).abs() < 1e-5, "{pacing}");
    let (plain, whole) = (VivaceResult::new(&report(0, 12.0, 100), Counted::default()), VivaceResult::new(&report(0, 12.0, 100), scheme.counted));
    assert!((whole.sent / plain.sent - 1556.0 / 1500.0).abs() < 1e-9);
}

/// Begins the probes of `scheme` at `base` and reports their results: the utility has the given `slope` over the rate.
fn probe(scheme: &mut Vivace, results: impl Fn(f64, IntervalReport) -> IntervalReport) -> Vec<f64> {
    let VivacePhase::Probe(probes) = &scheme.phase else { panic!("probing") };
    let count = probes.count();
    let mut rates = vec![];
    let mut ids = vec![];
    for _ in 0..=count {
        ids.push(scheme.monitors.next_id());
        scheme.begin(Time::ZERO);
        rates.push(scheme.sending);
    }
    for (id, rate) in ids.iter().zip(&rates).take(count) {
        let result = results(*rate, seen_at(*id, *rate));
        scheme.judge(&result);
    }
    rates
}

fn probing(mut scheme: Vivace, base: f64) -> Vivace {
    scheme.base = base;
    scheme.search();
    scheme
}

#[test]
fn probes_are_five_percent_or_half_a_megabit_away() {
    for (base, limited, distance) in [(100.0, true, 5.0), (12.0, true, 0.6), (5.0, true, 0.5), (1.3, false, 0.5), (1.0, true, 0.25)] {
        let scheme = if limited { vivace(&[]) } else { published() };
        let mut scheme = probing(scheme, base);
        let rates = probe(&mut scheme, |_, report| report);
        for pair in rates[..4].chunks_exact(2) {
            let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            assert!((base - low - distance).abs() < 1e-9 && (high - base - distance).abs() < 1e-9, "{rates:?}");
        }
        assert_eq!(rates[4], base);
    }
}

#[test]
fn better_faster_probes_raise_the_rate_within_bounds() {
    let mut scheme = probing(vivace(&[]), 10.0);
    probe(&mut scheme, |_, report| report);
    // Utility is x^0.9: the gradient 0.9 x^-0.1 = 0.72 of Mibit/s is more than 5 % of the rate.
    assert!((scheme.base - 10.5).abs() < 1e-9, "{}", scheme.base);
    // One pair is enough from now on.
    assert!(matches!(&scheme.phase, VivacePhase::Probe(probes) if probes.count() == 2));
    probe(&mut scheme, |_, report| report);
    // The second bound is 11 %: 1.155, which is more than a tenth, hence a move. The step itself is twice the gradient.
    assert!((scheme.base - 10.5 * 1.11).abs() < 1e-9, "{}", scheme.base);
    assert!(matches!(scheme.phase, VivacePhase::Move { .. }));
}

#[test]
fn a_queue_that_grows_with_the_faster_probes_lowers_the_rate() {
    let mut scheme = probing(vivace(&[]), 10.0);
    probe(&mut scheme, |rate, report| IntervalReport { slope: if rate > 10.0 { 0.05 } else { 0.0 }, ..report });
    assert!((scheme.base - 9.5).abs() < 1e-9, "{}", scheme.base);
    assert!(matches!(scheme.phase, VivacePhase::Probe(_)));
}

#[test]
fn pairs_that_disagree_decide_nothing() {
    let mut scheme = probing(vivace(&[]), 10.0);
    let mut index = 0;
    let seen = std::cell::RefCell::new(&mut index);
    probe(&mut scheme, |rate, report| {
        let mut index = seen.borrow_mut();
        let second_pair = **index >= 2;
        **index += 1;
        IntervalReport { slope: if (rate > 10.0) == second_pair { 0.05 } else { 0.0 }, ..report }
    });
    assert_eq!(scheme.base, 10.0);
    assert!(matches!(&scheme.phase, VivacePhase::Probe(probes) if probes.count() == 2 && !probes.has_begun()));
    assert_eq!(scheme.steps.previous, 0.0);
}

#[test]
fn losses_of_up_to_a_percent_count_for_all_probes_alike() {
    // One packet of 350 is lost, of a faster probe: alone it would cost 1 % of that one's utility, more than it
    // gains by its rate, if there were no common ratio. With 3 of them it is not common any more.
    for (lost, up) in [(1, true), (6, false)] {
        let mut scheme = probing(vivace(&[]), 10.0);
        probe(&mut scheme, |rate, report| IntervalReport { lost: if rate > 10.0 { lost } else { 0 }, ..report });
        assert_eq!(scheme.base > 10.0, up, "{lost}: {}", scheme.base);
    }
}

#[test]
fn losses_that_contradict_the_rates_put_a_vote_off_once() {
    let mut scheme = probing(vivace(&[]), 10.0);
    let results = |rate: f64, report: IntervalReport| IntervalReport { lost: if rate > 10.0 { 3 } else { 14 }, ..report };
    probe(&mut scheme, results);
    assert_eq!((scheme.base, scheme.put_off), (10.0, true));
    assert!(matches!(&scheme.phase, VivacePhase::Probe(probes) if probes.count() == 2));
    probe(&mut scheme, results);
    assert!(scheme.base > 10.0 && !scheme.put_off);
}

/// A scheme that moves from 10 to 11.5 Mbit/s; the reference is interval 0, the target 1.
fn moving() -> Vivace {
    let mut scheme = vivace(&[]);
    scheme.base = 10.0;
    scheme.phase = VivacePhase::Silent;
    scheme.begin(Time::ZERO);
    scheme.base = 11.5;
    scheme.steps.previous = 1.5;
    scheme.steps.agreeing = 2;
    scheme.phase = VivacePhase::Move { reference_id: 0, reference: None, target_id: None, target: None };
    scheme.begin(Time::ZERO);
    assert_eq!(scheme.sending, 11.5);
    scheme
}

#[test]
fn a_move_goes_on_while_the_gradient_has_its_sign() {
    let mut scheme = moving();
    scheme.steps.agreeing = 5;
    // Bound and amplifier of several steps before, so that the next one is more than a tenth.
    let steps = GradientSample { rate: 1.0, utility: 0.0 };
    for _ in 0..4 {
        scheme.steps.step(steps, GradientSample { rate: 2.0, utility: 100.0 }, 11.5, 0.5);
    }
    scheme.judge(&seen_at(0, 10.0));
    assert_eq!(scheme.base, 11.5);
    scheme.judge(&seen_at(1, 11.5));
    assert!(scheme.base > 11.5 * 1.1, "{}", scheme.base);
    let VivacePhase::Move { reference_id, reference, target_id, .. } = scheme.phase else { panic!("moving") };
    assert_eq!((reference_id, reference.map(|seen| seen.rate), target_id), (1, Some(11.5), None));
}

#[test]
fn a_move_ends_when_the_gradient_turns_or_losses_contradict() {
    let mut scheme = moving();
    scheme.judge(&seen_at(0, 10.0));
    scheme.judge(&IntervalReport { slope: 0.1, ..seen_at(1, 11.5) });
    assert!((scheme.base - 11.5 * 0.95).abs() < 1e-9, "{}", scheme.base);
    assert!(matches!(&scheme.phase, VivacePhase::Probe(probes) if probes.count() == 4));
    let mut scheme = moving();
    scheme.judge(&IntervalReport { lost: 4, ..seen_at(0, 10.0) });
    scheme.judge(&IntervalReport { lost: 1, ..seen_at(1, 11.5) });
    assert_eq!(scheme.base, 11.5);
    assert!(matches!(&scheme.phase, VivacePhase::Probe(probes) if probes.count() == 2));
}

#[test]
fn more_than_half_lost_is_an_emergency_once_in_an_episode() {
    let mut scheme = probing(vivace(&[]), 10.0);
    scheme.begin(Time::ZERO);
    scheme.begin(Time::ZERO);
    let bad = |id| IntervalReport { lost: 60, ..report(id, 10.0, 100) };
    scheme.judge(&bad(0));
    assert_eq!(scheme.base, 5.0);
    scheme.judge(&bad(1));
    assert_eq!(scheme.base, 5.0);
    scheme.judge(&bad(2));
    assert_eq!(scheme.base, 2.5);
}

#[test]
fn intervals_are_a_round_trip_or_ten_packets() {
    let mut scheme = vivace(&[]);
    scheme.phase = VivacePhase::Silent;
    // At 1.2 s the round-trip time is assumed to be 0.3 s.
    for (rtt, rate, packets) in [(0.0405, 12.0, 40), (0.04, 1.2, 10), (1.2, 12.01, 300), (0.9, 1000.0, 3000)] {
        (scheme.rtt, scheme.base) = (rtt, rate);
        scheme.begin(Time::ZERO);
        assert_eq!(scheme.planned, packets, "{rtt} {rate}");
    }
}

#[test]
fn the_program_has_a_floor_and_the_default_hardly_one() {
    for (mut scheme, floor) in [(published(), 1.3), (vivace(&[]), 0.05)] {
        for _ in 0..20 {
            let event = LossEvent::new(Time::ZERO, LossCause::Timeout, Bytes::new(1500));
            scheme.on_loss(&event);
        }
        assert_eq!((scheme.base, scheme.sending), (floor, floor));
        scheme.begin(Time::ZERO);
        assert_eq!(scheme.sending, floor);
        let mut ack = AckEvent::new(Time::ZERO);
        ack.smoothed_rtt = Span::from_ms(40);
        scheme.on_ack(&ack);
        assert!(matches!(scheme.phase, VivacePhase::Start { .. }));
    }
}
