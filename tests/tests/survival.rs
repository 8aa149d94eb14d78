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
///
/// The utility of Vivace and PCC-Expr, x^0.9 - 11.35 L x, is best at (0.9/(11.35 L))^10 Mibit/s, here 100 bit/s: their
/// rate falls as long as the run lasts, towards the least rate of 50 kbit/s (the programs' are 1.3 and 2.1 Mbit/s). It
/// falls ever more slowly: at 100 kbit/s four intervals of ten packets take five seconds, and the losses of two of them
/// differ by 18 % of their packets by chance, which misleads a decision now and then. In the last third of the time 80
/// and 87 kbit/s arrive. Allegro's utility is negative above 5 % and its rate falls likewise, in steps of 1 %.
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

/// Every RTT is zero or one step, so that nothing can be known of a queue: a tenth of the rate.
fn sees_no_time_pass(outcome: &Outcome) -> Result<(), String> {
    at_least("rate", outcome.rate(5..10), 1e7)?;
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

/// Scheme, trial, and why the original does no better. Each must fail, and so must the scheme as the Pantheon reports
/// ran it, where there is such a profile: a defect that is gone, or that is ours alone, is taken off the list.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "hybla",
        "10 kbit/s",
        // rho is 1.3 s/25 ms, and ends at 16: one acknowledgement in slow start adds 2^16 - 1 packets.
        "takes an RTT of seconds for a satellite's and doubles its window up to sixteen times per round trip",
    ),
    (
        "koho-calibrated",
        "1 Gbit/s, 1 ms",
        // 0.127221 packets more per acknowledgement and 0.05 less per loss are even at 0.127221/0.177221.
        "wants 5.5 ms of queue where the buffer holds 1 ms, and grows until 72 % are lost",
    ),
    (
        "koho-calibrated",
        "a clock of 1 ms on a path of 0.5 ms",
        "wants 5.5 ms of queue where the buffer holds 5 ms, and grows until 72 % are lost",
    ),
    // 50 kbit/s on 10: four fifths are lost, and the programs' floors of 1.3 and 2.1 Mbit/s lose all but a hundredth.
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
    // The start ends with the first RTT of a step, since that is more than 1.3 times none, before the rate has doubled. From
    // there on the halves of an interval differ by a step or two as chance has it, which outweighs the rate: four probes
    // agree upwards as often as downwards, and the rate wanders by 5 % at a time from where it began, 1.1 Mbit/s. With
    // steps of 10 us 82 Mbit/s of 100 arrive, with 100 us 15. (Vivace's start forgives slopes up to 0.2.)
    (
        "pcc-expr",
        "a clock of 1 ms on a path of 0.5 ms",
        "its utility is made of slopes of the RTT, which is zero or one step here, and its start ends with the first step",
    ),
    (
        "quic-cubic",
        "10 kbit/s",
        // Chromium bounds the growth by half of the acknowledgements that Reno's window has not been credited with, up to
        // a window of them and for each acknowledgement anew; elsewhere the curve is the tighter bound. Here a round
        // trip is 19 s, the curve is far ahead, and 16 acknowledgements make 72 packets out of 14. A loss leaves 85 %.
        "its curve outruns round trips of 19 s, and a window of 72 packets meets a buffer of fifteen",
    ),
    (
        "verus",
        "1 Gbit/s, 1 ms",
        // 417 packets leave together each epoch, and the buffer holds 83, which makes 200 Mbit/s at most; the rest is lost,
        // and counts after 150 ms only. A full buffer has the same delay for all windows, so the curve ends flat and slow
        // start begins again. Buffers of 5 and 10 ms carry 730 Mbit/s with 7 % lost.
        "sends a burst every 5 ms, of which the buffer holds a fifth",
    ),
    (
        "gcc",
        "10 kbit/s",
        // Repairs are part of it: 29 kbit/s are sent in the end, of which a third gets through.
        "its least target is three times what the path carries",
    ),
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
    let cell = cell(scheme);
    match (judge(&Outcome::of(&cell)), known) {
        (Ok(()), false) => None,
        (Err(what), false) => Some(format!("{scheme}, {trial}: {what}")),
        (Ok(()), true) => Some(format!("{scheme}, {trial}: its known defect is gone")),
        (Err(_), true) => {
            let mut original = as_reported(scheme, cell)?;
            // By chance one run may come off lightly.
            let fine = (1..=3).all(|seed| {
                original["seed"] = json!(seed);
                judge(&Outcome::of(&original)).is_ok()
            });
            fine.then(|| format!("{scheme}, {trial}: the original does not have the defect"))
        }
    }
}

/// The cell with the scheme's flow set up as in the Pantheon reports.
fn as_reported(scheme: &str, mut cell: Value) -> Option<Value> {
    let registry = narrows_cell::registry();
    let schemes = registry["schemes"].as_array()?;
    let scheme = schemes.iter().find(|one| one["name"] == scheme)?;
    let profiles = scheme["profiles"].as_array()?;
    let profile = profiles.iter().find(|one| one["name"] == "pantheon")?;
    for what in ["params", "transport"] {
        for (name, value) in profile[what].as_object()? {
            cell["flows"][0][what][name] = value.clone();
        }
    }
    Some(cell)
}

/// A repair that is lost itself is noticed by the timeout only, but then it is.
#[test]
fn a_fifth_of_losses_stalls_nobody_who_counts_overtaking_packets_alone() {
    for scheme in ["reno", "cubic", "quic-cubic"] {
        let mut cell = lossy(scheme);
        cell["transport"] = json!({"rack": false});
        if let Err(what) = creeps(&Outcome::of(&cell)) {
            panic!("{scheme}: {what}");
        }
    }
}
