//! Every registered scheme in places that no scheme likes: it goes on, within sane bounds, or its known
//! defect is listed and asserted.

#[path = "survival/calls.rs"]
mod calls;

use narrows_record::{Record, StateRow, Verdict, read, series};
use narrows_tests::{Dumbbell, Measured, measured};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECOND: u64 = 1_000_000_000;

/// A run of one flow.
struct Outcome {
    measured: Measured,
    record: Record,
    /// Arrived and sent data in bit/s, by second.
    arrived: Vec<f64>,
    sent: Vec<f64>,
}

impl Outcome {
    fn of(cell: &Value) -> Outcome {
        let (measured, record) = measured(cell);
        assert_eq!(
            measured.run.verdict,
            Verdict::Ok,
            "{:?} {:?}",
            measured.run.reasons,
            measured.run.checks
        );
        let series = series::throughput(&record, SECOND).expect("a record that can be read");
        let (sent, arrived) = series.flows[&1].clone();
        Outcome {
            measured,
            record,
            arrived,
            sent,
        }
    }

    /// Mean rate in bit/s of what arrived in these seconds.
    fn rate(&self, seconds: std::ops::Range<usize>) -> f64 {
        let length = seconds.len() as f64;
        self.arrived
            .get(seconds)
            .map_or(0.0, |bins| bins.iter().sum::<f64>() / length)
    }

    fn states(&self) -> Vec<StateRow> {
        let states = self.record.states.clone().expect("states");
        read::read_states(states).expect("the states can be read")
    }

    fn largest_window(&self) -> u64 {
        self.states()
            .iter()
            .filter_map(|row| row.cwnd_bytes)
            .max()
            .unwrap_or(0)
    }

    fn loss(&self) -> f64 {
        self.measured.get("1", "loss_ratio")
    }
}

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

fn and(mut cell: Value, element: Value) -> Value {
    cell["network"]["forward"]
        .as_array_mut()
        .expect("elements")
        .push(element);
    cell
}

fn blackout(scheme: &'static str) -> Value {
    let cell = path(scheme, 12.0, 40.0, 45.0).json();
    and(
        cell,
        json!({"name": "forward.2", "kind": "outage", "start": 5 * SECOND, "length": 10 * SECOND}),
    )
}

fn lossy(scheme: &'static str) -> Value {
    Dumbbell {
        loss: 0.2,
        ..path(scheme, 12.0, 40.0, 60.0)
    }
    .json()
}

fn reordering(scheme: &'static str) -> Value {
    let cell = path(scheme, 12.0, 40.0, 30.0).json();
    and(
        cell,
        json!({"name": "forward.2", "kind": "reorder", "ratio": 0.05, "delay": 20_000_000}),
    )
}

fn slow(scheme: &'static str) -> Value {
    let mut cell = path(scheme, 0.01, 100.0, 300.0).json();
    cell["network"]["forward"][0]["queue"] = json!({"kind": "droptail", "bytes": 22_500});
    cell
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
    let mut cell = path(scheme, 100.0, 0.5, 10.0).json();
    cell["network"]["forward"][0]["queue"] = json!({"kind": "droptail", "bytes": 60_000});
    cell["transport"] = json!({"clock": 1_000_000});
    cell
}

fn silent(scheme: &'static str) -> Value {
    let mut cell = path(scheme, 12.0, 40.0, 45.0).json();
    cell["flows"][0]["traffic"] = json!({"kind": "onoff", "on": 3 * SECOND, "off": 20 * SECOND});
    cell
}

fn trickle(scheme: &'static str) -> Value {
    let mut cell = path(scheme, 12.0, 40.0, 60.0).json();
    cell["flows"][0]["traffic"] =
        json!({"kind": "onoff", "on": 100 * SECOND, "off": SECOND, "rate": 100_000});
    cell
}

/// What a scheme must come to; else one sentence about what it did.
type Judge = fn(&Outcome) -> Result<(), String>;

fn at_least(what: &str, found: f64, least: f64) -> Result<(), String> {
    let problem = || format!("{what}: {found:.0}, not at least {least:.0}");
    (found >= least).then_some(()).ok_or_else(problem)
}

fn at_most(what: &str, found: f64, most: f64) -> Result<(), String> {
    let problem = || format!("{what}: {found:.3}, not at most {most:.3}");
    (found <= most).then_some(()).ok_or_else(problem)
}

/// Most of what it sends gets through.
fn no_flood(outcome: &Outcome) -> Result<(), String> {
    at_most("share lost", outcome.loss(), 0.5)
}

/// A sender that doubles its silence each time has waited ten seconds when the path returns after ten, and waits at most
/// as long again; then it must find its way back.
fn returns(outcome: &Outcome) -> Result<(), String> {
    let arrived = outcome.arrived.iter().enumerate().skip(15);
    let back = arrived
        .filter(|(_, rate)| **rate > 0.0)
        .map(|(second, _)| second);
    at_most("back after (s)", back.min().unwrap_or(99) as f64, 26.0)?;
    at_least("rate afterwards", outcome.rate(35..45), 6e6)
}

/// One packet of five is lost: no scheme has to be fast, but none may stall. TCP's square-root law gives 0.5 Mbit/s
/// without timeouts; a tenth of that, four packets per second, also from those that retreat before such losses.
fn creeps(outcome: &Outcome) -> Result<(), String> {
    for part in [0..20, 20..40, 40..60] {
        at_least("rate", outcome.rate(part), 5e4)?;
    }
    no_flood(outcome)
}

/// Three duplicates are a loss to some, one packet in twenty of which keeps their windows at a few packets: the rate
/// of a window of five.
fn sorts(outcome: &Outcome) -> Result<(), String> {
    at_least("rate", outcome.rate(15..30), 1.5e6)?;
    no_flood(outcome)
}

fn fits(outcome: &Outcome) -> Result<(), String> {
    at_least("rate", outcome.rate(150..300), 5e3)?;
    no_flood(outcome)
}

fn fills(outcome: &Outcome) -> Result<(), String> {
    at_least("rate", outcome.rate(2..3), 1e8)?;
    no_flood(outcome)
}

fn reads_the_clock(outcome: &Outcome) -> Result<(), String> {
    at_least("rate", outcome.rate(15..30), 6e6)?;
    no_flood(outcome)
}

/// Every RTT is zero or one step, so that nothing can be known of a queue: a twentieth of the rate.
fn sees_no_time_pass(outcome: &Outcome) -> Result<(), String> {
    at_least("rate", outcome.rate(5..10), 5e6)?;
    no_flood(outcome)
}

/// What was not there to be sent was not sent, and what is there afterwards is.
fn waits(outcome: &Outcome) -> Result<(), String> {
    at_most("sent in silence", outcome.sent[5..23].iter().sum(), 0.0)?;
    at_least("rate afterwards", outcome.rate(23..26), 3e6)?;
    no_flood(outcome)
}

/// 100 kbit/s of payload are 104 on the path; a window that could grow all the time would have become a megabyte.
fn trickles(outcome: &Outcome) -> Result<(), String> {
    let rate = outcome.rate(20..60);
    at_least("rate", rate, 1.00e5)?;
    at_most("rate", rate, 1.08e5)?;
    at_most("window", outcome.largest_window() as f64, 1e6)
}

/// Name, cell and judgement.
type Trial = (&'static str, fn(&'static str) -> Value, Judge);

const TRIALS: &[Trial] = &[
    ("a blackout of 10 s", blackout, returns),
    ("20 % loss", lossy, creeps),
    ("reordering", reordering, sorts),
    ("10 kbit/s", slow, fits),
    ("1 Gbit/s, 1 ms", fast, fills),
    ("a clock of 1 ms", coarse, reads_the_clock),
    (
        "a clock of 1 ms on a path of 0.5 ms",
        coarse_near,
        sees_no_time_pass,
    ),
    ("an application that falls silent", silent, waits),
    ("an application that sends little", trickle, trickles),
];

/// Scheme, trial, and why the original does no better. Each must fail: a defect that is gone is taken off the list.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "hybla",
        "10 kbit/s",
        "takes an RTT of seconds for a satellite's and doubles its window up to sixteen times per round trip",
    ),
    (
        "koho-calibrated",
        "1 Gbit/s, 1 ms",
        "wants 5.5 ms of queue where the buffer holds 1 ms, and grows until 72 % are lost",
    ),
    (
        "koho-calibrated",
        "a clock of 1 ms on a path of 0.5 ms",
        "wants 5.5 ms of queue where the buffer holds 5 ms, and grows until 72 % are lost",
    ),
    (
        "pcc-allegro",
        "10 kbit/s",
        "its lowest rate is above the path's, no window limits what is in flight, and what it learns is seconds old",
    ),
    (
        "vivace",
        "10 kbit/s",
        "its lowest rate is above the path's, no window limits what is in flight, and what it learns is seconds old",
    ),
    (
        "pcc-expr",
        "10 kbit/s",
        "its lowest rate is above the path's, no window limits what is in flight, and what it learns is seconds old",
    ),
    (
        "pcc-expr",
        "a clock of 1 ms on a path of 0.5 ms",
        "its utility is made of slopes of the RTT, which is zero or one step here",
    ),
    (
        "quic-cubic",
        "10 kbit/s",
        "begins with 32 packets where the buffer holds fifteen, and loses a little more than half of all",
    ),
    (
        "verus",
        "1 Gbit/s, 1 ms",
        "decides every 5 ms for a buffer that holds one",
    ),
    (
        "verus",
        "reordering",
        "steers the RTT up to six times its smallest; a buffer that ends before that loses what is sent beyond it",
    ),
    ("gcc", "10 kbit/s", "its encoder makes 30 kbit/s at least"),
    // What the three below do is the matter of their models. Those of the tests are made by hand: they say what a
    // model of that kind can get wrong.
    (
        "remy",
        "a clock of 1 ms on a path of 0.5 ms",
        "the ratio of the RTT to its smallest says nothing when all are zero or one",
    ),
    (
        "indigo",
        "a blackout of 10 s",
        "the model stays at the window that it came to after the silence",
    ),
    (
        "indigo",
        "1 Gbit/s, 1 ms",
        "the model knows delays of milliseconds, and the buffer holds one",
    ),
    (
        "indigo",
        "a clock of 1 ms",
        "the model takes a queue of whole milliseconds for more than it is",
    ),
    (
        "indigo",
        "an application that sends little",
        "nobody tells the model that the window is not what limits the sender",
    ),
    (
        "muses",
        "an application that sends little",
        "nobody tells the model that the window is not what limits the sender",
    ),
];

#[test]
fn every_scheme_survives_or_its_defect_is_known() {
    let schemes: Vec<&str> = narrows_cc::schemes::ALL
        .iter()
        .map(|scheme| scheme.name)
        .collect();
    try_all(&schemes, TRIALS);
}

fn try_all(schemes: &[&'static str], trials: &[Trial]) {
    let next = AtomicUsize::new(0);
    let problems = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(scheme) = schemes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = trials.iter().filter_map(|trial| problem(scheme, trial));
                    let found: Vec<String> = found.collect();
                    problems.lock().expect("no thread has failed").extend(found);
                }
            });
        }
    });
    let problems = problems.into_inner().expect("no thread has failed");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn problem(scheme: &'static str, (trial, cell, judge): &Trial) -> Option<String> {
    let known = KNOWN
        .iter()
        .any(|known| (known.0, known.1) == (scheme, *trial));
    match (judge(&Outcome::of(&cell(scheme))), known) {
        (Ok(()), false) | (Err(_), true) => None,
        (Err(what), false) => Some(format!("{scheme}, {trial}: {what}")),
        (Ok(()), true) => Some(format!("{scheme}, {trial}: its known defect is gone")),
    }
}
