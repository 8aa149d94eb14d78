//! Tables that compare runs of one scheme with expected values: rows as data, a text for people, and a verdict.
//!
//! One rule for all values: a measured value is within a tenth of the expected one, plus half of the last printed
//! digit. A value outside has a written reason and separate bounds on both sides. A reason for a value inside is an
//! error too: it is no longer needed.

use crate::single_flow::{Measure, Setup};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum width of a line of a reason in a table.
const COLUMNS: usize = 112;

/// Parameter that varies within a row.
#[derive(Clone, Debug)]
pub enum Cases {
    /// None: neither the path nor the scheme is random.
    One,
    /// Seeds from 1; the value is the median.
    Seeds(u64),
    /// Start of the last flow in seconds; the value is the median.
    Starts(&'static [f64]),
    /// Round trips in ms, less than a period of the scheme's clocks apart; the value is the mean.
    RoundTrips(&'static [f64]),
}

impl Cases {
    fn setups(&self, setup: &Setup) -> Vec<Setup> {
        let with = |change: &dyn Fn(&mut Setup)| {
            let mut setup = setup.clone();
            change(&mut setup);
            setup
        };
        match self {
            Cases::One => vec![setup.clone()],
            Cases::Seeds(count) => {
                let seeds = 1..=*count;
                seeds.map(|seed| with(&|setup| setup.seed = seed)).collect()
            }
            Cases::Starts(starts) => {
                let starts = starts.iter();
                starts
                    .map(|&start| with(&|setup| *setup.starts.last_mut().expect("a flow") = start))
                    .collect()
            }
            Cases::RoundTrips(round_trips) => {
                let round_trips = round_trips.iter();
                round_trips
                    .map(|&rtt_ms| with(&|setup| setup.rtt_ms = rtt_ms))
                    .collect()
            }
        }
    }

    /// The value of the row from the sorted values of its cases.
    fn aggregate(&self, sorted: &[f64]) -> f64 {
        match self {
            Cases::RoundTrips(_) => sorted.iter().sum::<f64>() / sorted.len() as f64,
            _ => f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]),
        }
    }

    fn name(&self) -> String {
        match self {
            Cases::One => "one run".into(),
            Cases::Seeds(count) => format!("median of {count} seeds"),
            Cases::Starts(starts) => {
                let (first, last) = (starts[0], starts[starts.len() - 1]);
                format!("median of {} starts, {first} to {last} s", starts.len())
            }
            Cases::RoundTrips(all) => {
                let (first, last) = (all[0], all[all.len() - 1]);
                format!("mean of {} round trips, {first} to {last} ms", all.len())
            }
        }
    }
}

/// One expected value.
#[derive(Clone, Debug)]
pub struct Expected {
    measure: Measure,
    /// As it was printed: its last digit shows its precision.
    printed: &'static str,
    why: Option<(&'static str, f64, f64)>,
}

/// A measure that is expected to be as `printed` (`11.6`; `2.5e3` is known to a hundred).
pub const fn is(measure: Measure, printed: &'static str) -> Expected {
    Expected {
        measure,
        printed,
        why: None,
    }
}

impl Expected {
    /// A value that differs from the printed one and is between `low` and `high`, with the reason.
    #[must_use]
    pub const fn but(self, low: f64, high: f64, why: &'static str) -> Expected {
        Expected {
            why: Some((why, low, high)),
            ..self
        }
    }

    fn value(&self) -> f64 {
        self.printed.parse().expect("a number")
    }

    /// The last digit that is printed.
    fn digit(&self) -> f64 {
        let (digits, power) = self.printed.split_once('e').unwrap_or((self.printed, "0"));
        let places = digits
            .split_once('.')
            .map_or(0, |(_, places)| places.len() as i32);
        10_f64.powi(power.parse::<i32>().expect("a power") - places)
    }

    fn fits(&self, measured: f64) -> bool {
        (measured - self.value()).abs() <= 0.1 * self.value() + self.digit() / 2.0
    }

    /// Deviations that are not allowed.
    fn complaint(&self, measured: f64) -> Option<String> {
        let fits = self.fits(measured);
        match self.why {
            None if !fits => Some("out of the tolerance, without a reason".into()),
            Some(_) if fits => Some("reason no longer needed".into()),
            Some((_, low, high)) if !(low..=high).contains(&measured) => {
                Some(format!("not between {low} and {high} either"))
            }
            _ => None,
        }
    }
}

/// Some flows on one path, with their expected values.
#[derive(Clone, Debug)]
pub struct Row {
    /// Schemes and path.
    pub name: &'static str,
    /// Flows and path.
    pub setup: Setup,
    /// Parameter that varies.
    pub cases: Cases,
    /// Values.
    pub expected: Vec<Expected>,
}

impl Row {
    fn path(&self) -> String {
        let Setup {
            mbps,
            rtt_ms,
            buffer,
            loss,
            starts,
            ..
        } = &self.setup;
        let buffer = buffer.map_or("no limit".into(), |packets| format!("{packets} packets"));
        let mut words = vec![format!("{mbps} Mbit/s"), format!("{rtt_ms} ms"), buffer];
        if *loss > 0.0 {
            words.push(format!("{} % loss", loss * 100.0));
        }
        if starts.len() > 1 {
            words.push(format!("{} flows", starts.len()));
        }
        words.join(", ")
    }
}

/// A table: the name of its file, and its rows.
pub type Table = (&'static str, Vec<Row>);

/// A table as text, and complaints about its values.
pub type Outcome = (String, Vec<String>);

/// Runs all rows of all tables, several at a time.
///
/// # Panics
/// When a run fails.
pub fn compare(tables: &[Table]) -> Vec<Outcome> {
    let rows = tables.iter().flat_map(|(_, rows)| rows);
    let jobs: Vec<(&Row, Setup)> = rows
        .flat_map(|row| {
            let setups = row.cases.setups(&row.setup);
            setups.into_iter().map(move |setup| (row, setup))
        })
        .collect();
    let measured: Vec<OnceLock<Vec<f64>>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, Into::into) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((row, setup)) = jobs.get(number) else {
                        break;
                    };
                    let seen = setup.see();
                    let values = row.expected.iter().map(|value| value.measure.value(&seen));
                    measured[number].get_or_init(|| values.collect());
                }
            });
        }
    });
    let mut measured = measured.into_iter().filter_map(OnceLock::into_inner);
    let outcomes = tables.iter().map(|(_, rows)| {
        let cases = |row: &Row| row.cases.setups(&row.setup).len();
        let of_rows = rows
            .iter()
            .map(|row| measured.by_ref().take(cases(row)).collect());
        let measured: Vec<Vec<Vec<f64>>> = of_rows.collect();
        text(rows, &measured)
    });
    outcomes.collect()
}

/// The text of a table and its complaints, from all values of each row and case.
fn text(rows: &[Row], measured: &[Vec<Vec<f64>>]) -> Outcome {
    let mut lines = vec![
        "Expected: a packet simulation of the published rules. Found: as each row says, and the least and greatest."
            .to_owned(),
        "Within 10 % and half of the last digit, or with a reason.".to_owned(),
    ];
    let mut complaints = Vec::new();
    let mut name = "";
    for (row, cases) in rows.iter().zip(measured) {
        if row.name != name {
            name = row.name;
            lines.push(String::new());
            lines.push(format!(
                "{name:52} {:>9} {:>9} {:21} difference",
                "expected", "found", "(least..greatest)"
            ));
        }
        let (path, varied) = (row.path(), row.cases.name());
        let Setup { seconds, part, .. } = row.setup;
        lines.push(format!(
            "  {path}; {} to {} s of {seconds} s; {varied}",
            part.0, part.1
        ));
        for (i, expected) in row.expected.iter().enumerate() {
            let mut values: Vec<f64> = cases.iter().map(|values| values[i]).collect();
            values.sort_by(f64::total_cmp);
            let measured = row.cases.aggregate(&values);
            let range = match values[..] {
                [_] => "-".to_owned(),
                _ => format!("({:.2}..{:.2})", values[0], values[values.len() - 1]),
            };
            let difference = match expected.value() {
                0.0 => "-".to_owned(),
                value => format!("{:+.1} %", 100.0 * (measured / value - 1.0)),
            };
            let (measure, printed) = (expected.measure.name(), expected.printed);
            lines.push(format!(
                "    {measure:48} {printed:>9} {measured:9.2} {range:21} {difference}"
            ));
            if let Some((why, low, high)) = expected.why {
                lines.extend(wrap(&format!("{low} to {high}, because {why}")));
            }
            if let Some(problem) = expected.complaint(measured) {
                complaints.push(format!(
                    "{name}, {path}: {measure} {measured:.3} {range} instead of {printed}: {problem}"
                ));
            }
        }
    }
    (lines.join("\n") + "\n", complaints)
}

/// `words` as lines of limited width.
fn wrap(words: &str) -> Vec<String> {
    let indent = "     ";
    let mut lines = vec![indent.to_owned()];
    for word in words.split_whitespace() {
        if lines[lines.len() - 1].len() + word.len() >= COLUMNS {
            lines.push(indent.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Expected, is};
    use crate::single_flow::Measure;

    #[test]
    fn the_rule_has_a_tenth_and_half_a_digit() {
        let bounds = |printed: &'static str| {
            let expected = is(Measure::Mean, printed);
            (expected.value(), expected.digit())
        };
        assert_eq!(bounds("11.6"), (11.6, 0.1));
        assert_eq!(bounds("34"), (34.0, 1.0));
        assert_eq!(bounds("2.5e3"), (2500.0, 100.0));
        let three = is(Measure::Mean, "3");
        assert!(three.fits(2.21) && three.fits(3.79));
        assert!(!three.fits(2.19) && !three.fits(3.81));
    }

    #[test]
    fn a_reason_must_be_needed_and_has_bounds() {
        let plain: Expected = is(Measure::Mean, "10");
        assert!(plain.complaint(10.0).is_none() && plain.complaint(12.0).is_some());
        let reason = plain.but(12.0, 15.0, "of this");
        assert!(reason.complaint(13.0).is_none());
        assert!(reason.complaint(10.0).is_some() && reason.complaint(16.0).is_some());
    }
}
