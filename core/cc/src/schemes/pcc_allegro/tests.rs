use super::*;
use crate::LossCause;
use crate::parts::monitor_interval::tests::report;
use crate::testing::setup;
use narrows_units::{Bytes, Span, Value};

fn allegro(given: &[(&str, Value)]) -> Allegro {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let params = Params::resolve(SCHEME.params, given).unwrap();
    Allegro::new(&params, Setup { mss: Bytes::new(1500), ..setup() })
}

fn word(word: &str) -> Value {
    Value::Word(word.to_owned())
}

/// 1000 packets in 100 ms.
fn outcome(lost: f64, rtt_ms: f64, before_ms: f64) -> AllegroResult {
    AllegroResult { sent: 1000.0, lost, seconds: 0.1, rtt: rtt_ms / 1e3, rtt_before: before_ms / 1e3 }
}

#[test]
fn utilities_are_those_of_the_formulas() {
    for (lost, rtt, before, latency, loss) in [
        (0.0, 40.0, 40.0, 124.163_394, 9_933.071_491),
        (50.0, 40.0, 40.0, 46.875, 4250.0),
        (10.0, 44.0, 40.0, 61.181_889, 9_621.936_521),
        (100.0, 40.0, 40.0, -24.247_054, -939.764_342),
        (0.0, 40.0, 44.0, 181.541_428, 9_933.071_491),
    ] {
        let outcome = outcome(lost, rtt, before);
        let (found_latency, found_loss) = (outcome.latency_utility(), outcome.loss_utility());
        assert!((found_latency - latency).abs() < 1e-6, "{outcome:?}: {found_latency}");
        assert!((found_loss - loss).abs() < 1e-6, "{outcome:?}: {found_loss}");
    }
}

#[test]
fn sigmoids_have_their_cliffs_where_they_should() {
    let safe = |lost| outcome(lost, 40.0, 40.0).safe_share();
    for (lost, share) in [(0.0, 0.993_307), (50.0, 0.5), (100.0, 0.006_693)] {
        assert!((safe(lost) - share).abs() < 1e-6, "{lost}: {}", safe(lost));
    }
    // Round-trip times: equal, a tenth longer, and shorter by a tenth of the longer one.
    for (rtt, before, share) in [(40.0, 40.0, 0.5), (44.0, 40.0, 0.287), (40.0, 44.0, 0.731)] {
        let found = falling_sigmoid(10.0 * (1.0 - before / rtt));
        assert!((found - share).abs() < 1e-3, "{rtt}/{before}: {found}");
    }
}

#[test]
fn utility_of_a_report_is_that_of_its_packets_and_times() {
    let mut scheme = allegro(&[]);
    let mut one = report(1, 12e6, 1000);
    one.lost = 50;
    assert!((scheme.utility_of(&one, 0.04) - 4250.0).abs() < 1e-6);
    scheme.params.utility = UtilityChoice::Latency;
    assert!((scheme.utility_of(&one, 0.04) - 46.875).abs() < 1e-6);
    // The clock has not advanced: the nominal time of the packets is used instead.
    one.elapsed = Span::ZERO;
    one.rate = 120e6;
    assert!((scheme.utility_of(&one, 0.04) - 46.875).abs() < 1e-6);
}

/// An interval whose packets, delivered in 100 ms, match its rate.
fn good(id: u64, rate: f64) -> IntervalReport {
    report(id, rate, (rate * 0.1 / 12_000.0).round() as u64)
}

#[test]
fn the_start_doubles_until_utility_falls() {
    let mut scheme = allegro(&[("start_ahead", Value::Integer(0))]);
    let mut rates = vec![];
    for _ in 0..5 {
        scheme.begin(Time::ZERO);
        rates.push(scheme.sending / 1e6);
    }
    assert_eq!(rates, [2.0, 4.0, 8.0, 16.0, 32.0]);
    for (id, rate) in [(0, 2e6), (1, 4e6), (2, 8e6)] {
        scheme.judge(&good(id, rate));
        assert_eq!(scheme.sending, 32e6);
    }
    // A third lost: back to the rate of the last better interval.
    let mut bad = good(3, 16e6);
    bad.lost = bad.packets / 3;
    scheme.judge(&bad);
    assert_eq!((scheme.sending, scheme.rate), (8e6, 8e6));
    assert!(matches!(scheme.phase, AllegroPhase::Guess(_)));
}

/// With short intervals the start ends at random: at 8 Mbit/s and 40 ms an interval has 40 packets, of which two are 5
/// %. With 2 % of random loss that is one start in four, by the utility and the lengths of intervals of the program.
#[test]
fn two_losses_of_forty_end_the_start_far_below_the_rate_of_the_link() {
    for (lost, ends) in [(1, false), (2, true)] {
        let mut scheme = allegro(&[]);
        scheme.judge(&IntervalReport { elapsed: Span::from_ms(60), ..report(1, 4e6, 20) });
        scheme.judge(&IntervalReport { elapsed: Span::from_ms(60), lost, ..report(2, 8e6, 40) });
        // 20/0.06 x 0.9933 = 331; with one lost 650 x 0.924 - 17 = 584, with two 633 x 0.5 - 33 = 283.
        assert!((scheme.utility - if ends { 283.3 } else { 584.0 }).abs() < 1.0, "{}", scheme.utility);
        assert_eq!(matches!(scheme.phase, AllegroPhase::Guess(_)), ends, "{lost}");
    }
}

#[test]
fn the_first_interval_counts_half() {
    // Even a second one with a slightly lower utility than the first is better than half of the first.
    let mut scheme = allegro(&[]);
    scheme.begin(Time::ZERO);
    scheme.begin(Time::ZERO);
    scheme.judge(&good(0, 2e6));
    scheme.judge(&IntervalReport { rate: 4e6, ..good(1, 1.2e6) });
    assert!(matches!(scheme.phase, AllegroPhase::Start { best: Some((_, rate)) } if rate == 4e6));
}

#[test]
fn the_start_waits_for_results() {
    let mut scheme = allegro(&[]);
    let mut rates = vec![];
    for number in 0..5 {
        scheme.begin(Time::ZERO);
        scheme.monitors.sent(&SendEvent::new(Time::ZERO, number, Bytes::new(1500)));
        rates.push(scheme.sending / 1e6);
    }
    // Two pending intervals: no more doubling, and further results at the same rate must not end the phase.
    assert_eq!(rates, [2.0, 4.0, 4.0, 4.0, 4.0]);
    scheme.judge(&good(0, 2e6));
    scheme.judge(&good(1, 4e6));
    scheme.judge(&good(2, 4e6));
    assert!(matches!(scheme.phase, AllegroPhase::Start { .. }));
}

/// A scheme at 10 Mbit/s that has begun its four probes, which are numbers 0 to 3; with their rates.
fn guessing(probe: u32) -> (Allegro, [f64; 4]) {
    let mut scheme = allegro(&[]);
    scheme.set_rate(10e6);
    scheme.probe = probe - 1;
    scheme.guess();
    let mut rates = [0.0; 4];
    for rate in &mut rates {
        scheme.begin(Time::ZERO);
        *rate = scheme.sending;
    }
    (scheme, rates)
}

/// Reports the results of probes, in which the faster one of each pair is better if `up` is true.
fn vote(scheme: &mut Allegro, rates: [f64; 4], up: [bool; 2]) {
    for (index, rate) in rates.into_iter().enumerate() {
        let faster = rate > 10e6;
        let better = faster == up[index / 2];
        scheme.judge(&report(index as u64, rate, if better { 1001 } else { 1000 }));
    }
}

#[test]
fn probes_come_in_two_pairs_around_the_rate_and_the_last_one_lasts() {
    let (mut scheme, rates) = guessing(2);
    for pair in rates.chunks_exact(2) {
        let mut sorted = pair.to_vec();
        sorted.sort_by(f64::total_cmp);
        assert!((sorted[0] - 9.8e6).abs() < 1.0 && (sorted[1] - 10.2e6).abs() < 1.0, "{rates:?}");
    }
    scheme.begin(Time::ZERO);
    assert_eq!(scheme.sending, rates[3]);
    // The order within a pair is random: both occur.
    let mut orders = [0, 0];
    for _ in 0..40 {
        scheme.guess();
        let AllegroPhase::Guess(mut probes) = scheme.phase else { panic!("guessing") };
        orders[usize::from(probes.begin(0) == Some(1.0))] += 1;
    }
    assert!(orders.iter().all(|&count| count > 5), "{orders:?}");
}

#[test]
fn pairs_that_agree_decide_and_others_make_probes_larger() {
    for (probe, up, share) in [(1, true, 1.01), (1, false, 0.99), (2, true, 1.02), (5, false, 0.97)] {
        let (mut scheme, rates) = guessing(probe);
        vote(&mut scheme, rates, [up, up]);
        assert!((scheme.rate / 10e6 - share).abs() < 1e-9, "{probe} {up}: {}", scheme.rate);
        assert!(matches!(scheme.phase, AllegroPhase::Move { .. }));
    }
    for (probe, next) in [(1, 2), (4, 5), (5, 1)] {
        let (mut scheme, rates) = guessing(probe);
        vote(&mut scheme, rates, [true, false]);
        assert_eq!((scheme.rate, scheme.probe), (10e6, next));
        assert!(matches!(scheme.phase, AllegroPhase::Guess(probes) if !probes.has_begun()));
    }
}

#[test]
fn steps_grow_while_utility_rises_and_the_last_one_is_taken_back() {
    let (mut scheme, rates) = guessing(1);
    vote(&mut scheme, rates, [true, true]);
    // The current interval, the fifth, began before the decision and is ignored.
    scheme.begin(Time::ZERO);
    let AllegroPhase::Move { target, .. } = scheme.phase else { panic!("moving") };
    assert_eq!(target, 4);
    let mut expected = 10e6 * 1.01;
    for (step, packets) in [(2.0, 1010), (3.0, 1020), (4.0, 1030)] {
        let AllegroPhase::Move { target, .. } = scheme.phase else { panic!("moving") };
        scheme.judge(&report(target - 1, scheme.rate, 5000));
        assert!((scheme.rate - expected).abs() < 1.0);
        scheme.judge(&report(target, scheme.rate, packets));
        expected *= 1.0 + step * 0.01;
        assert!((scheme.rate - expected).abs() < 1.0, "{step}: {} {expected}", scheme.rate);
        scheme.begin(Time::ZERO);
    }
    let AllegroPhase::Move { target, .. } = scheme.phase else { panic!("moving") };
    scheme.judge(&report(target, scheme.rate, 1029));
    assert!((scheme.rate - expected * 0.96).abs() < 1.0);
    assert!(matches!(scheme.phase, AllegroPhase::Guess(_)) && scheme.probe == 1);
}

#[test]
fn a_rate_far_above_what_is_sent_is_given_up() {
    let mut scheme = allegro(&[]);
    scheme.set_rate(300e6);
    scheme.phase = AllegroPhase::Move { direction: 1.0, steps: 3.0, target: 0, last: Some(1.0) };
    // 2000 packets of 1500 bytes in 100 ms are 240 Mbit/s.
    scheme.judge(&report(0, 300e6, 2000));
    assert!((scheme.rate - 240e6).abs() < 1.0, "{}", scheme.rate);
    assert!(matches!(scheme.phase, AllegroPhase::Guess(_)));
}

#[test]
fn intervals_have_ten_packets_or_one_and_a_half_round_trips() {
    let mut scheme = allegro(&[]);
    scheme.phase = AllegroPhase::Silent;
    scheme.smoothed_rtt = 0.04;
    let mut planned = |rate: f64| {
        scheme.set_rate(rate);
        (0..30).map(|_| {
            scheme.begin(Time::ZERO);
            scheme.planned
        })
        .collect::<std::collections::BTreeSet<u64>>()
    };
    // 40 packets in a round trip: 1.5, 1.6 or 1.7 round trips.
    assert_eq!(planned(12e6).into_iter().collect::<Vec<_>>(), [60, 64, 68]);
    // At 1 Mbit/s a round trip has 3 packets; 5 ms have none.
    assert_eq!(planned(1e6).into_iter().collect::<Vec<_>>(), [10]);
    // On a path of 0.1 ms, 5 ms of packets: 41 at 100 Mbit/s, of which a round trip has none.
    scheme.smoothed_rtt = 0.0001;
    scheme.set_rate(100e6);
    scheme.begin(Time::ZERO);
    assert_eq!(scheme.planned, 41);
}

#[test]
fn after_a_timeout_the_rate_is_halved_and_the_start_waits_until_something_is_heard() {
    let mut scheme = allegro(&[]);
    scheme.set_rate(8e6);
    let event = LossEvent::new(Time::ZERO, LossCause::Timeout, Bytes::new(1500));
    scheme.on_loss(&event);
    scheme.on_loss(&event);
    scheme.begin(Time::ZERO);
    scheme.begin(Time::ZERO);
    assert_eq!(scheme.sending, 2e6);
    scheme.on_ack(&AckEvent::new(Time::ZERO));
    scheme.begin(Time::ZERO);
    assert_eq!(scheme.sending, 4e6);
    for _ in 0..100 {
        scheme.on_loss(&event);
    }
    assert_eq!(scheme.sending, 16e3);
}

#[test]
fn profiles_set_what_the_program_did() {
    let profile = &SCHEME.profiles[0];
    let given = profile.params.iter().map(|(name, text)| {
        let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
        ((*name).to_owned(), spec.parse(text).unwrap())
    });
    let params = Params::resolve(SCHEME.params, given).unwrap();
    let scheme = Allegro::new(&params, setup());
    assert!(scheme.params.utility == UtilityChoice::Latency);
    assert_eq!((scheme.params.rtt_of, scheme.params.start_ahead), (RttOf::Newest, 0));
    assert_eq!(allegro(&[("utility", word("loss"))]).params.utility, UtilityChoice::Loss);
}
