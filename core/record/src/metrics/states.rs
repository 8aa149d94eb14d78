//! Numbers from the states that senders reported: when, how long and how often a scheme was in a mode, and its
//! estimates.
//!
//! Unlike [`metrics`](super::metrics), these have to be requested, because modes and values are specific to a scheme.
//! States are sampled at regular times, so that a mode shorter than the sampling interval may be missed.

use super::Measured;
use crate::RecordError;
use crate::read::{Record, read_states, read_traces, rows_of};
use crate::schema::{StateRow, TraceRow};
use serde::Deserialize;
use serde_json::{Value, json};

/// A question about the states of one flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateQuestion {
    /// The flow.
    pub flow: u16,
    /// A mode: one of the scheme's words, or the part of it before `_` (`probe_bw` matches `probe_bw_up` as well).
    /// Either this or `value`.
    #[serde(default)]
    pub mode: Option<String>,
    /// A column of the states, or a value that the scheme shows.
    #[serde(default)]
    pub value: Option<String>,
    /// For a mode `first`, `visits`, `interval`, `longest` or `share`; for a value `first`, `last`,
    /// `min`, `max` or `mean`.
    pub measure: String,
    /// Samples before this time of the run do not count.
    #[serde(default)]
    pub from_ns: u64,
    /// Samples after this time do not count either.
    #[serde(default)]
    pub until_ns: Option<u64>,
}

impl StateQuestion {
    fn covers(&self, flow: u16, time_ns: u64) -> bool {
        flow == self.flow
            && time_ns >= self.from_ns
            && self.until_ns.is_none_or(|until| time_ns <= until)
    }
}

/// The answers, one object for each question: `{"value": number}` or `{"absent": reason}`.
///
/// # Errors
/// A damaged record.
pub fn answer(record: &Record, questions: &[StateQuestion]) -> Result<Value, RecordError> {
    let states = rows_of(record.states.as_ref(), read_states)?;
    let traces = rows_of(record.traces.as_ref(), read_traces)?;
    let answer = |question: &StateQuestion| match measure(&states, &traces, question) {
        Ok(value) => json!({"value": value}),
        Err(reason) => json!({"absent": reason}),
    };
    Ok(questions.iter().map(answer).collect())
}

fn measure(states: &[StateRow], traces: &[TraceRow], question: &StateQuestion) -> Measured {
    match (&question.mode, &question.value) {
        (Some(mode), None) => measure_mode(states, mode, question),
        (None, Some(value)) => measure_value(states, traces, value, question),
        _ => Err("a question names either a mode or a value".into()),
    }
}

/// True if a scheme that says `word` is in `mode`.
fn is_in(word: &str, mode: &str) -> bool {
    word.strip_prefix(mode)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn measure_mode(states: &[StateRow], mode: &str, question: &StateQuestion) -> Measured {
    let rows: Vec<(u64, bool)> = states
        .iter()
        .filter(|row| question.covers(row.flow, row.time_ns))
        .filter_map(|row| Some((row.time_ns, is_in(row.mode.as_deref()?, mode))))
        .collect();
    if rows.is_empty() {
        return Err("the sender reported no modes in this time".into());
    }
    // Visits: (first sample, first sample after it).
    let mut visits: Vec<(u64, u64)> = vec![];
    let mut inside = false;
    for &(time, now_inside) in &rows {
        if now_inside && !inside {
            visits.push((time, time));
        } else if inside && let Some(visit) = visits.last_mut() {
            visit.1 = time;
        }
        inside = now_inside;
    }
    let never = || format!("the sender was never in {mode}");
    match question.measure.as_str() {
        "visits" => Ok(visits.len() as f64),
        "share" => {
            let count = rows.iter().filter(|(_, inside)| *inside).count();
            Ok(count as f64 / rows.len() as f64)
        }
        "first" => visits.first().map(|visit| visit.0 as f64).ok_or_else(never),
        "longest" => {
            let lengths = visits.iter().map(|(start, end)| end - start);
            lengths.max().map(|length| length as f64).ok_or_else(never)
        }
        "interval" => match (visits.first(), visits.last()) {
            (Some(first), Some(last)) if visits.len() > 1 => {
                Ok((last.0 - first.0) as f64 / (visits.len() - 1) as f64)
            }
            _ => Err(format!("the sender was in {mode} less than twice")),
        },
        other => Err(format!("{other} is not a measure of a mode")),
    }
}

fn measure_value(
    states: &[StateRow],
    traces: &[TraceRow],
    name: &str,
    question: &StateQuestion,
) -> Measured {
    let column = StateRow::optional_numbers().find(|(column, _)| *column == name);
    let columns = states
        .iter()
        .filter(|row| question.covers(row.flow, row.time_ns))
        .filter_map(|row| column?.1(row))
        .map(|value| value as f64);
    let shown = traces
        .iter()
        .filter(|row| row.name == name && question.covers(row.flow, row.time_ns))
        .map(|row| row.value);
    let values: Vec<f64> = columns.chain(shown).collect();
    let value_of_samples = match question.measure.as_str() {
        "first" => values.first().copied(),
        "last" => values.last().copied(),
        "min" => values.iter().copied().reduce(f64::min),
        "max" => values.iter().copied().reduce(f64::max),
        "mean" => (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
        other => return Err(format!("{other} is not a measure of a value")),
    };
    value_of_samples.ok_or_else(|| format!("the sender reported no {name} in this time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(modes: &[&str]) -> Vec<StateRow> {
        (modes.iter().zip(0u64..))
            .map(|(mode, index)| StateRow {
                flow: 1,
                time_ns: index * 10,
                cwnd_bytes: Some(1000 * index),
                mode: Some((*mode).to_owned()),
                ..StateRow::default()
            })
            .collect()
    }

    fn ask(mode: &str, statistic: &str, from_ns: u64) -> Measured {
        let states = states(&[
            "startup",
            "drain",
            "probe_bw_up",
            "probe_bw_down",
            "probe_rtt",
            "probe_rtt",
            "probe_bw_up",
            "probe_rtt",
        ]);
        let question = StateQuestion {
            flow: 1,
            mode: Some(mode.to_owned()),
            value: None,
            measure: statistic.to_owned(),
            from_ns,
            until_ns: None,
        };
        measure(&states, &[], &question)
    }

    #[test]
    fn modes_are_counted_and_timed() {
        assert_eq!(ask("probe_rtt", "first", 0), Ok(40.0));
        assert_eq!(ask("probe_rtt", "visits", 0), Ok(2.0));
        assert_eq!(ask("probe_rtt", "interval", 0), Ok(30.0));
        assert_eq!(ask("probe_rtt", "longest", 0), Ok(20.0));
        assert_eq!(ask("probe_rtt", "share", 0), Ok(3.0 / 8.0));
        // The part before an underscore matches all words that begin with it and an underscore, but no others.
        assert_eq!(ask("probe_bw", "visits", 0), Ok(2.0));
        assert_eq!(ask("probe_b", "visits", 0), Ok(0.0));
        assert_eq!(
            ask("drain", "first", 20),
            Err("the sender was never in drain".into())
        );
        assert_eq!(ask("probe_rtt", "visits", 60), Ok(1.0));
        assert!(ask("startup", "interval", 0).is_err());
        assert!(ask("startup", "most", 0).is_err());
    }

    #[test]
    fn values_come_from_columns_and_from_what_schemes_show() {
        let states = states(&["a", "a", "a"]);
        let traces = [5.0, 9.0, 7.0].map(|value| TraceRow {
            flow: 1,
            time_ns: (value * 10.0) as u64,
            name: "gain".to_owned(),
            value,
        });
        let ask = |name: &str, statistic: &str, until_ns: Option<u64>| {
            let question = StateQuestion {
                flow: 1,
                mode: None,
                value: Some(name.to_owned()),
                measure: statistic.to_owned(),
                from_ns: 0,
                until_ns,
            };
            measure(&states, &traces, &question)
        };
        assert_eq!(ask("cwnd_bytes", "max", None), Ok(2000.0));
        assert_eq!(ask("cwnd_bytes", "max", Some(15)), Ok(1000.0));
        assert_eq!(ask("gain", "last", None), Ok(7.0));
        assert_eq!(ask("gain", "mean", None), Ok(7.0));
        assert!(ask("loss", "mean", None).is_err());
    }
}
