//! Every registered scheme under adverse conditions: it continues, within sane bounds, or its known defect is listed
//! and asserted.

#[path = "survival/calls.rs"]
mod calls;
#[path = "survival/kit.rs"]
mod kit;
#[path = "survival/known.rs"]
mod known;
mod known_aurora;

use kit::{Check, Extent, Outcome, SECOND, Subject, Trial, at_least, at_most, no_flood, try_all};
use known::{KNOWN, PUBLISHED};
use known_aurora::AURORA;
use narrows_tests::Dumbbell;
use narrows_units::Files;
use serde_json::{Value, json};
use std::ops::Range;

fn path(scheme: &'static str, mbps: f64, rtt_ms: f64, seconds: f64) -> Dumbbell {
    Dumbbell {
        mbps,
        rtt_ms,
        seconds,
        schemes: vec![scheme],
        record: "bins",
        ..Dumbbell::default()
    }
}

fn with(mut cell: Value, directions: &[&str], elements: &[Value]) -> Value {
    for direction in directions {
        let path = cell["network"][direction].as_array_mut().expect("elements");
        for element in elements {
            let mut element = element.clone();
            element["name"] = json!(format!("{direction}.{}", path.len()));
            path.push(element);
        }
    }
    cell
}

/// No packet passes for ten seconds.
fn outage(start: u64) -> Value {
    json!({"kind": "outage", "start": start * SECOND, "length": 10 * SECOND})
}

const BOTH: &[&str] = &["forward", "backward"];

fn blackout(scheme: &'static str) -> Value {
    with(
        path(scheme, 12.0, 40.0, 45.0).json(),
        &["forward"],
        &[outage(5)],
    )
}

fn deaf(scheme: &'static str) -> Value {
    with(
        path(scheme, 12.0, 40.0, 45.0).json(),
        &["backward"],
        &[outage(5)],
    )
}

fn cut(scheme: &'static str) -> Value {
    with(path(scheme, 12.0, 40.0, 45.0).json(), BOTH, &[outage(5)])
}

fn late(scheme: &'static str) -> Value {
    with(path(scheme, 12.0, 40.0, 40.0).json(), BOTH, &[outage(0)])
}

fn cut_twice(scheme: &'static str) -> Value {
    with(
        path(scheme, 12.0, 40.0, 65.0).json(),
        BOTH,
        &[outage(5), outage(25)],
    )
}

fn lossy_cut(scheme: &'static str) -> Value {
    let cell = Dumbbell {
        loss: 0.05,
        ..path(scheme, 12.0, 40.0, 45.0)
    };
    with(cell.json(), BOTH, &[outage(5)])
}

fn lossy(scheme: &'static str) -> Value {
    Dumbbell {
        loss: 0.2,
        ..path(scheme, 12.0, 40.0, 60.0)
    }
    .json()
}

fn reorder(delay_ms: u64) -> Value {
    json!({"kind": "reorder", "ratio": 0.05, "delay": delay_ms * 1_000_000})
}

fn reordering(scheme: &'static str) -> Value {
    with(
        path(scheme, 12.0, 40.0, 30.0).json(),
        &["forward"],
        &[reorder(20)],
    )
}

/// A packet takes 120 ms, so that two or three overtake.
fn reordering_tiny(scheme: &'static str) -> Value {
    let cell = with_queue(path(scheme, 0.1, 100.0, 120.0).json(), 22_500);
    with(cell, &["forward"], &[reorder(300)])
}

fn with_queue(mut cell: Value, bytes: u64) -> Value {
    cell["network"]["forward"][0]["queue"] = json!({"kind": "droptail", "bytes": bytes});
    cell
}

fn slow(scheme: &'static str) -> Value {
    with_queue(path(scheme, 0.01, 100.0, 300.0).json(), 22_500)
}

fn fast(scheme: &'static str) -> Value {
    path(scheme, 1000.0, 1.0, 3.0).json()
}

fn coarse(scheme: &'static str) -> Value {
    let mut cell = path(scheme, 12.0, 40.0, 30.0).json();
    cell["transport"] = json!({"clock": 1_000_000});
    cell
}

fn coarse_near(scheme: &'static str) -> Value {
    let mut cell = with_queue(path(scheme, 100.0, 0.5, 10.0).json(), 60_000);
    cell["transport"] = json!({"clock": 1_000_000});
    cell
}

fn sending(mut cell: Value, traffic: Value) -> Value {
    cell["flows"][0]["traffic"] = traffic;
    cell
}

fn silent(scheme: &'static str) -> Value {
    let traffic = json!({"kind": "onoff", "on": 3 * SECOND, "off": 20 * SECOND});
    sending(path(scheme, 12.0, 40.0, 45.0).json(), traffic)
}

fn trickle(scheme: &'static str) -> Value {
    let traffic = json!({"kind": "onoff", "on": 100 * SECOND, "off": SECOND, "rate": 100_000});
    sending(path(scheme, 12.0, 40.0, 60.0).json(), traffic)
}

/// It has a microsecond for its first packet and no time for a second one.
fn a_word(scheme: &'static str) -> Value {
    let traffic = json!({"kind": "onoff", "on": 1_000, "off": 100 * SECOND, "rate": 1_000});
    sending(path(scheme, 12.0, 40.0, 20.0).json(), traffic)
}

fn once(scheme: &'static str) -> Value {
    let traffic = json!({"kind": "transfer", "bytes": 30_000});
    sending(path(scheme, 12.0, 40.0, 20.0).json(), traffic)
}

/// An outage from 4 to 14 s, while the application sends from 0 to 5 and 10 to 15 s.
fn hesitant(scheme: &'static str) -> Value {
    let cell = with(path(scheme, 12.0, 40.0, 60.0).json(), BOTH, &[outage(4)]);
    sending(
        cell,
        json!({"kind": "onoff", "on": 5 * SECOND, "off": 5 * SECOND}),
    )
}

/// Half of the link twenty seconds after the end of the outage, and the first packet no later than with doubling
/// timers.
fn returned(outcome: &Outcome, outage: Range<f64>) -> Vec<Check> {
    let back = outage.end as usize;
    let late = outcome.late_by(outage);
    vec![
        // An RTT, and a tenth of a second on either side.
        at_most("late (s)", late, 0.5),
        at_least("rate afterwards", outcome.rate(back + 20..back + 30), 6e6),
    ]
}

fn returns(outcome: &Outcome) -> Vec<Check> {
    returned(outcome, 5.0..15.0)
}

fn begins(outcome: &Outcome) -> Vec<Check> {
    returned(outcome, 0.0..10.0)
}

fn returns_twice(outcome: &Outcome) -> Vec<Check> {
    let first = at_most("late (s)", outcome.late_by(5.0..15.0), 0.5);
    let second = returned(outcome, 25.0..35.0);
    [
        vec![Check {
            what: "late at first (s)",
            ..first
        }],
        second,
    ]
    .concat()
}

/// Reno's rate with timeouts of one second (Padhye et al. 1998), an acknowledgement for two packets: 5 % of losses and a
/// round trip of 40 ms give 1/(0.04 sqrt(0.0667) + 3 sqrt(0.0375) 0.05 (1 + 32 x 0.0025)) = 24 packets per second.
fn returns_lossy(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate afterwards", outcome.rate(30..45), 2.9e5),
        no_flood(outcome),
    ]
}

/// One packet of five is lost: no scheme has to be fast, but none may stall. TCP's square-root law yields 0.5 Mbit/s
/// without timeouts; a tenth of that, four packets per second, is required even from schemes that retreat at such
/// losses.
///
/// The utility of Vivace and PCC-Expr, x^0.9 - 11.35 L x, is best at (0.9/(11.35 L))^10 Mibit/s, here 100 bit/s: their
/// rate falls as long as the run lasts, towards the least rate of 50 kbit/s (the programs' are 1.3 and 2.1 Mbit/s). It
/// falls ever more slowly: at 100 kbit/s four intervals of ten packets take five seconds, and the losses of two of them
/// differ by 18 % of their packets by chance, which occasionally misleads a decision. In the last third of the time it
/// is close to that: of 50 kbit/s 40 arrive, and of the 83 packets then 67 +- 4, so that three deviations less are 33
/// kbit/s. Allegro's utility is negative above 5 % and its rate falls likewise, in steps of 1 %.
fn creeps(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate at first", outcome.rate(0..20), 5e4),
        at_least("rate", outcome.rate(20..40), 5e4),
        at_least("rate at last", outcome.rate(40..60), 3.3e4),
        no_flood(outcome),
    ]
}

/// Some schemes treat three duplicates as a loss, which for one packet in twenty keeps their windows at a few packets:
/// the rate of a window of five.
fn sorts(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate", outcome.rate(15..30), 1.5e6),
        no_flood(outcome),
    ]
}

/// A third of the link.
fn sorts_few(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate", outcome.rate(60..120), 3.3e4),
        no_flood(outcome),
    ]
}

fn fits(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate", outcome.rate(150..300), 5e3),
        no_flood(outcome),
    ]
}

fn fills(outcome: &Outcome) -> Vec<Check> {
    vec![at_least("rate", outcome.rate(2..3), 1e8), no_flood(outcome)]
}

fn reads_the_clock(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate", outcome.rate(15..30), 6e6),
        no_flood(outcome),
    ]
}

/// Every RTT is zero or one step, so that a queue cannot be measured: a tenth of the rate.
fn sees_no_time_pass(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate", outcome.rate(5..10), 1e7),
        no_flood(outcome),
    ]
}

/// No data are sent while there are none, and later data are sent.
fn waits(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_most("sent in silence", outcome.sent(5..23), 0.0),
        at_least("rate afterwards", outcome.rate(23..26), 3e6),
        no_flood(outcome),
    ]
}

/// 100 kbit/s of payload are 104 on the path; a window that grows all the time would have reached a megabyte.
fn trickles(outcome: &Outcome) -> Vec<Check> {
    let rate = outcome.rate(20..60);
    vec![Check {
        what: "rate",
        actual: rate,
        minimum: 1.00e5,
        maximum: 1.08e5,
    }]
}

/// One packet, which arrives, and nothing else.
fn speaks_once(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("bits", outcome.rate(0..1), 11_000.0),
        at_most("bits sent", outcome.loudest(0..1), 12_000.0),
        at_most("sent afterwards", outcome.loudest(1..20), 0.0),
    ]
}

/// Twenty-one packets fit into the queue and none is lost. The slowest start begins with one, and all arrive within
/// five seconds.
fn says_it_once(outcome: &Outcome) -> Vec<Check> {
    let bits = 5.0 * outcome.rate(0..5);
    vec![
        at_least("bits", bits, 240_000.0),
        at_most("bits sent", 20.0 * outcome.sent(0..20), 1.2 * 260_000.0),
        at_most("sent afterwards", outcome.loudest(5..20), 0.0),
    ]
}

/// It sends from 40 to 45 and from 50 to 55 s.
fn catches_up(outcome: &Outcome) -> Vec<Check> {
    vec![
        at_least("rate at once", outcome.rate(20..25), 3e6),
        at_least("rate afterwards", outcome.rate(40..45), 6e6),
        no_flood(outcome),
    ]
}

const TRIALS: &[Trial] = &[
    ("a blackout of 10 s", blackout, returns, false),
    ("a blackout of acknowledgements", deaf, returns, false),
    ("a blackout of both directions", cut, returns, false),
    ("a blackout at the start", late, begins, false),
    ("two blackouts", cut_twice, returns_twice, false),
    ("a blackout with 5 % loss", lossy_cut, returns_lossy, true),
    ("20 % loss", lossy, creeps, true),
    ("reordering", reordering, sorts, true),
    ("reordering on 100 kbit/s", reordering_tiny, sorts_few, true),
    ("10 kbit/s", slow, fits, false),
    ("1 Gbit/s, 1 ms", fast, fills, false),
    ("a clock of 1 ms", coarse, reads_the_clock, false),
    (
        "a clock of 1 ms on a path of 0.5 ms",
        coarse_near,
        sees_no_time_pass,
        false,
    ),
    ("an application that falls silent", silent, waits, false),
    ("an application that sends little", trickle, trickles, false),
    (
        "an application that has next to nothing to send",
        a_word,
        speaks_once,
        false,
    ),
    ("an application that sends once", once, says_it_once, false),
    ("on and off with a blackout", hesitant, catches_up, false),
];

/// Schemes that use random numbers.
const DICE: &[&str] = &[
    "bbr1",
    "bbr-draft",
    "bbr3",
    "pcc-allegro",
    "pcc-expr",
    "vivace",
    "veno",
];

fn try_schemes(extent: Extent) {
    let schemes = narrows_cc::schemes::ALL.iter().map(|scheme| scheme.name);
    let subjects = schemes.map(|scheme| Subject::scheme(scheme, DICE.contains(&scheme)));
    let known = [KNOWN, AURORA].concat();
    try_all(&subjects.collect::<Vec<_>>(), TRIALS, &known, extent);
}

#[test]
fn every_scheme_survives_or_its_defect_is_known() {
    try_schemes(Extent::Short);
}

#[test]
#[ignore = "three seeds and two floods more than every_scheme_survives_or_its_defect_is_known: make nightly"]
fn every_scheme_survives_all_trials_or_its_defect_is_known() {
    try_schemes(Extent::Full);
}

/// The models of the tests are made by hand; published ones are tested here.
#[test]
fn published_models_survive_or_their_defect_is_known() {
    let models = [
        ("indigo-1-32", ("indigo", "indigo-1-32")),
        ("indigo-1-128", ("indigo", "indigo-1-128")),
        ("indigo-2-256", ("indigo", "indigo-2-256")),
        ("muses-published", ("muses", "muses")),
        ("tao-100x", ("remy", "tao-100x")),
    ];
    let subjects = models
        .into_iter()
        .filter_map(|(name, model)| Subject::model(name, model));
    try_all(
        &subjects.collect::<Vec<_>>(),
        TRIALS,
        PUBLISHED,
        Extent::Full,
    );
}

/// Lost repairs are repaired again before later losses. Otherwise the epoch, in which no other loss reduces the window,
/// does not end: with seeds 3 and 6 it grew to 746 and 925 packets in five minutes. A queue of two packets and an
/// initial window of thirty lose half.
#[test]
fn lost_repairs_do_not_starve_behind_later_losses() {
    let path = Dumbbell {
        loss: 0.05,
        ..path("quic-cubic", 0.01, 600.0, 300.0)
    };
    let mut cell = with_queue(path.json(), 3000);
    for seed in 1..7 {
        cell["seed"] = json!(seed);
        let outcome = Outcome::new(&cell, Files::default());
        let check = at_most("share lost", outcome.loss(), 0.6);
        assert!(check.holds(), "seed {seed}: {check:?}");
    }
}

/// A repair that is lost itself is noticed by the timeout only, but then it is.
#[test]
fn a_fifth_of_losses_stalls_nobody_who_counts_overtaking_packets_alone() {
    for scheme in ["reno", "cubic", "quic-cubic"] {
        let mut cell = lossy(scheme);
        cell["transport"] = json!({"rack": false});
        for check in creeps(&Outcome::new(&cell, Files::default())) {
            assert!(check.holds(), "{scheme}: {check:?}");
        }
    }
}
