//! The parts of survival trials: runs of one flow, checks with bounds, and known defects.

use narrows_cc::testing::example_files;
use narrows_record::{StateRow, Verdict, read, series};
use narrows_tests::models::content;
use narrows_tests::{Measured, measured_with};
use narrows_units::Files;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const SECOND: u64 = 1_000_000_000;

/// Bins of the throughput, per second.
const BINS: f64 = 10.0;

/// A run of one flow.
pub(super) struct Outcome {
    measured: Measured,
    states: Vec<StateRow>,
    /// Arrived and sent data in bit/s, by tenth of a second.
    arrived: Vec<f64>,
    sent: Vec<f64>,
    /// Rate of the bottleneck in bit/s, and capacity of path and queue in bytes.
    link: f64,
    holds: f64,
}

fn inside(seconds: &Range<f64>, bins: &[f64]) -> Range<usize> {
    let index = |time: f64| ((time * BINS).round() as usize).min(bins.len());
    index(seconds.start)..index(seconds.end)
}

/// Mean rate in bit/s in these seconds.
fn mean(bins: &[f64], seconds: Range<f64>) -> f64 {
    let length = (seconds.end - seconds.start) * BINS;
    bins[inside(&seconds, bins)].iter().sum::<f64>() / length
}

impl Outcome {
    pub(super) fn new(cell: &Value, files: Files) -> Outcome {
        let (measured, record) = measured_with(cell, files);
        assert_eq!(
            measured.run.verdict,
            Verdict::Ok,
            "{:?} {:?}",
            measured.run.reasons,
            measured.run.checks
        );
        let series =
            series::throughput(&record, SECOND / BINS as u64).expect("a record that can be read");
        let (sent, arrived) = series.flows[&1].clone();
        let states =
            read::read_states(record.states.expect("states")).expect("the states can be read");
        let (link, holds) = pipe(cell);
        Outcome {
            measured,
            states,
            arrived,
            sent,
            link,
            holds,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.arrived.len() as f64 / BINS
    }

    /// Mean rate of arrivals in these seconds.
    pub(super) fn rate(&self, seconds: Range<usize>) -> f64 {
        mean(&self.arrived, seconds.start as f64..seconds.end as f64)
    }

    /// A metric of the flow; NaN where it is absent.
    pub(super) fn metric(&self, name: &str) -> f64 {
        self.measured.get("1", name)
    }

    /// Mean sending rate.
    pub(super) fn sent(&self, seconds: Range<usize>) -> f64 {
        mean(&self.sent, seconds.start as f64..seconds.end as f64)
    }

    /// The maximum sending rate in one of these seconds.
    pub(super) fn loudest(&self, seconds: Range<usize>) -> f64 {
        seconds
            .map(|second| self.sent(second..second + 1))
            .fold(0.0, f64::max)
    }

    pub(super) fn loss(&self) -> f64 {
        // Without packets there is no loss.
        let loss = self.measured.get("1", "loss_ratio");
        if loss.is_nan() { 0.0 } else { loss }
    }

    pub(super) fn largest_window(&self) -> f64 {
        let windows = self.states.iter().filter_map(|row| row.cwnd_bytes);
        windows.max().unwrap_or(0) as f64
    }

    /// Arrival of the first packet sent after the end of an outage, less that with doubling timers: the pause at the
    /// end is at most twice the longest one before it (RFC 6298, section 5.5). A timer that does not double, or a rate
    /// that does not wait, is well within that.
    pub(super) fn late_by(&self, outage: Range<f64>) -> f64 {
        let bins = &self.sent[inside(&outage, &self.sent)];
        let silent = bins.iter().rev().take_while(|bin| **bin == 0.0).count();
        let last = outage.end - silent as f64 / BINS;
        let finished = longest_finished(bins);
        let back = inside(&(outage.end..self.seconds()), &self.arrived);
        let back = back.into_iter().find(|bin| self.arrived[*bin] > 0.0);
        let back = back.map_or(self.seconds(), |bin| bin as f64 / BINS);
        back - (last + 2.0 * f64::from(finished) / BINS)
    }
}

/// The longest finished pause, in bins; at least one.
fn longest_finished(bins: &[f64]) -> u32 {
    let (mut longest, mut pause) = (1, 0);
    for bin in bins {
        if *bin > 0.0 {
            longest = longest.max(pause + 1);
            pause = 0;
        } else {
            pause += 1;
        }
    }
    longest
}

/// Rate of the first bottleneck, and the bytes of its queue, and of an RTT at that rate.
fn pipe(cell: &Value) -> (f64, f64) {
    let (mut link, mut queue, mut rtt) = (0.0, 0.0, 0.0);
    for direction in ["forward", "backward"] {
        for element in cell["network"][direction].as_array().expect("elements") {
            let number = |value: &Value| value.as_f64().unwrap_or(0.0);
            match element["kind"].as_str() {
                Some("bottleneck") => {
                    link = number(&element["rate"]["rate"]);
                    queue = number(&element["queue"]["bytes"]);
                }
                Some("delay") => rtt += number(&element["delay"]) / SECOND as f64,
                _ => {}
            }
        }
    }
    (link, queue + link * rtt / 8.0)
}

/// A measured value and its bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) what: &'static str,
    pub(super) actual: f64,
    pub(super) minimum: f64,
    pub(super) maximum: f64,
}

impl Check {
    pub(super) fn holds(&self) -> bool {
        (self.minimum..=self.maximum).contains(&self.actual)
    }
}

pub(super) fn at_least(what: &'static str, actual: f64, minimum: f64) -> Check {
    Check {
        what,
        actual,
        minimum,
        maximum: f64::INFINITY,
    }
}

pub(super) fn at_most(what: &'static str, actual: f64, maximum: f64) -> Check {
    Check {
        what,
        actual,
        minimum: f64::NEG_INFINITY,
        maximum,
    }
}

/// Most of its packets arrive.
pub(super) fn no_flood(outcome: &Outcome) -> Check {
    at_most("share lost", outcome.loss(), 0.5)
}

/// Checks for all conditions. The window is at most twice the capacity of path and queue, at which slow start ends,
/// plus the growth of one more round trip before the loss is known; four initial windows are always allowed, for paths
/// with very small capacity. In a third of the time at most twice the capacity of the link is sent, plus the initial
/// window.
fn everywhere(outcome: &Outcome) -> [Check; 2] {
    let third = outcome.arrived.len() / 3;
    let sent = outcome.sent.windows(third).step_by(10);
    let sent = sent
        .map(|bins| bins.iter().sum::<f64>() / third as f64)
        .fold(0.0, f64::max);
    let length = third as f64 / BINS;
    [
        at_most(
            "windows of the path",
            outcome.largest_window() / (outcome.holds + 15_000.0),
            4.0,
        ),
        at_most(
            "links sent",
            (sent - 120_000.0 / length) / outcome.link,
            2.0,
        ),
    ]
}

/// The judgement of a run.
pub(super) type Judge = fn(&Outcome) -> Vec<Check>;

/// Name, cell, judgement, and whether it is random.
pub(super) type Trial = (&'static str, fn(&'static str) -> Value, Judge, bool);

/// Subject, trial, the check that is out of bounds, its actual range, and the reason. A defect that has disappeared or
/// changed has to be removed or described again.
///
/// In place of a trial, [`ANYWHERE`]: the largest of all trials is within the range, and none is beyond it.
pub(super) type Defect = (
    &'static str,
    &'static str,
    &'static str,
    Range<f64>,
    &'static str,
);

pub(super) const ANYWHERE: &str = "anywhere";

/// The subject of a trial: a scheme, with a published model if it uses one.
#[derive(Clone)]
pub(super) struct Subject {
    name: &'static str,
    scheme: &'static str,
    files: Files,
    /// The file's identity.
    model: Option<&'static str>,
    chance: bool,
}

impl Subject {
    pub(super) fn scheme(scheme: &'static str, chance: bool) -> Subject {
        Subject {
            name: scheme,
            scheme,
            files: example_files(),
            model: None,
            chance,
        }
    }

    /// A scheme with the published model of this name, if it is installed.
    pub(super) fn model(
        name: &'static str,
        (scheme, file): (&'static str, &str),
    ) -> Option<Subject> {
        let mut files = Files::default();
        files.insert(name, content(file)?);
        Some(Subject {
            name,
            scheme,
            files,
            model: Some(name),
            chance: false,
        })
    }

    fn cell(&self, trial: &Trial) -> Value {
        let mut cell = trial.1(self.scheme);
        if let Some(model) = self.model {
            cell["flows"][0]["params"] =
                json!({"model": {"name": "a.safetensors", "sha256": model}});
        }
        cell
    }

    fn checks(&self, cell: &Value, judge: Judge) -> Vec<Check> {
        let outcome = Outcome::new(cell, self.files.clone());
        let mut checks = judge(&outcome);
        checks.extend(everywhere(&outcome));
        checks
    }

    /// The checks of a trial with the first seed, and with the others if it is random and `extent` or a known defect that
    /// does not show with the first one asks for them.
    fn try_seeds(&self, trial: &Trial, known: &[Defect], extent: Extent) -> Vec<Vec<Check>> {
        let mut cell = self.cell(trial);
        let mut run = |seed| {
            cell["seed"] = json!(seed);
            self.checks(&cell, trial.2)
        };
        let first = run(1);
        let hidden = |check: &Check| {
            check.holds() && find(known, (self.name, trial.0, check.what)).is_some()
        };
        let random = self.chance || trial.3;
        let others = random && (extent == Extent::Full || first.iter().any(hidden));
        let mut runs = vec![first];
        if others {
            runs.extend((2..4).map(run));
        }
        runs
    }

    /// The problems in one trial.
    fn problems(
        &self,
        trial: &Trial,
        known: &[Defect],
        extent: Extent,
        largest: &Largest,
    ) -> Vec<String> {
        let runs = self.try_seeds(trial, known, extent);
        let mut problems = Vec::new();
        for index in 0..runs[0].len() {
            let actual: Vec<Check> = runs.iter().map(|checks| checks[index]).collect();
            if let Some(place) = find(known, (self.name, ANYWHERE, actual[0].what))
                && find(known, (self.name, trial.0, actual[0].what)).is_none()
            {
                let mut largest = largest.lock().expect("no thread has failed");
                let maximum = actual
                    .iter()
                    .fold(largest[place], |maximum, check| maximum.max(check.actual));
                largest[place] = maximum;
            } else if let Some(problem) = self.problem(trial, &actual, known) {
                problems.push(format!("{}, {}: {problem}", self.name, trial.0));
            }
        }
        problems
    }

    fn problem(&self, trial: &Trial, actual: &[Check], known: &[Defect]) -> Option<String> {
        let Check {
            what,
            minimum,
            maximum,
            ..
        } = actual[0];
        let values: Vec<f64> = actual.iter().map(|check| check.actual).collect();
        match find(known, (self.name, trial.0, what)).map(|place| &known[place]) {
            None if actual.iter().all(Check::holds) => None,
            None => Some(format!(
                "{what}: {values:.3?}, not within {minimum}..{maximum}"
            )),
            // A single run may happen to be within bounds.
            Some(_) if actual.iter().all(Check::holds) => {
                Some(format!("{what}: {values:.3?}, its known defect is gone"))
            }
            Some((.., range, _)) if values.iter().all(|value| range.contains(value)) => {
                self.is_ours(trial, what)
            }
            Some((.., range, _)) => Some(format!(
                "{what}: {values:.3?}, its known defect is within {range:?}"
            )),
        }
    }

    /// Whether the scheme with the profile of the Pantheon reports, if there is one, does not have the defect: then it
    /// is not a property of the scheme.
    fn is_ours(&self, trial: &Trial, what: &str) -> Option<String> {
        let mut original = as_reported(self.scheme, self.cell(trial))?;
        let fine = (1..4).all(|seed| {
            original["seed"] = json!(seed);
            let checks = self.checks(&original, trial.2);
            checks
                .iter()
                .find(|check| check.what == what)
                .is_some_and(Check::holds)
        });
        fine.then(|| format!("{what}: the original does not have the defect"))
    }
}

/// The cell with the scheme's flow set up as in the Pantheon reports.
fn as_reported(scheme: &str, mut cell: Value) -> Option<Value> {
    let registry = narrows_cell::registry();
    let schemes = registry["schemes"].as_array()?;
    let scheme = schemes.iter().find(|entry| entry["name"] == scheme)?;
    let profiles = scheme["profiles"].as_array()?;
    let profile = profiles.iter().find(|entry| entry["name"] == "pantheon")?;
    for what in ["params", "transport"] {
        for (name, value) in profile[what].as_object()? {
            cell["flows"][0][what][name] = value.clone();
        }
    }
    Some(cell)
}

/// The maximum value found for each defect that is known for any trial.
type Largest = Mutex<Vec<f64>>;

fn find(known: &[Defect], entry: (&str, &str, &str)) -> Option<usize> {
    known
        .iter()
        .position(|defect| (defect.0, defect.1, defect.2) == entry)
}

/// How much is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// One seed, and the others where a known defect does not show with it; without [`FLOODS`].
    Short,
    /// Three seeds in random trials.
    Full,
}

/// Trials in which the tests' example of a model sends hundreds of times what the path carries: two thirds of the time of
/// all trials. The example of `indigo` shows the same defect on the first of these paths.
const FLOODS: &[(&str, &str)] = &[
    ("policy", "1 Gbit/s, 1 ms"),
    ("policy", "a clock of 1 ms on a path of 0.5 ms"),
];

/// Tries all of them in all trials, on all processors.
pub(super) fn try_all(subjects: &[Subject], trials: &[Trial], known: &[Defect], extent: Extent) {
    let next = AtomicUsize::new(0);
    let problems = Mutex::new(Vec::new());
    let largest = Mutex::new(vec![f64::NEG_INFINITY; known.len()]);
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let all: Vec<(&Subject, &Trial)> = subjects
        .iter()
        .flat_map(|entry| trials.iter().map(move |trial| (entry, trial)))
        .filter(|(entry, trial)| extent == Extent::Full || !FLOODS.contains(&(entry.name, trial.0)))
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((subject, trial)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let actual = subject.problems(trial, known, extent, &largest);
                    problems
                        .lock()
                        .expect("no thread has failed")
                        .extend(actual);
                }
            });
        }
    });
    let mut problems = problems.into_inner().expect("no thread has failed");
    for (defect, actual) in known
        .iter()
        .zip(largest.into_inner().expect("no thread has failed"))
    {
        let tried = subjects.iter().any(|subject| subject.name == defect.0);
        if tried && defect.1 == ANYWHERE && !defect.3.contains(&actual) {
            problems.push(format!(
                "{}, {} at most: {actual:.3}, not within {:?}",
                defect.0, defect.2, defect.3
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
