//! Files of traces: rates, delivery opportunities or delays of a link over time.
//!
//! Two text formats, distinguished by their content:
//!
//! * **Opportunities** (mahimahi): each line is an integer number of milliseconds, not smaller than the one above, and
//!   an opportunity to send one packet. The last, which must be above zero, is the length of the trace: if it is
//!   looped, all opportunities repeat, shifted by that time.
//! * **CSV** with the heading `time_ns,rate_bps` or `time_s,rate_mbps` (delays: `time_ns,delay_ns` or
//!   `time_s,delay_ms`), after comment lines that begin with `#`. The first time is 0 and times increase. A value
//!   applies from its time until the next row's time. The last row marks the end: its time is the length of the trace,
//!   its value is not used.

use narrows_units::{Files, ParamError, Params};
use std::fmt;

/// Maximum of numbers (ns, bit/s): larger ones would overflow in calculations.
const MAX_VALUE: u64 = 1 << 62;
const NS_PER_MS: u64 = 1_000_000;

/// Rates of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateTrace {
    /// Times of delivery opportunities in ms, non-decreasing, the last above zero.
    Opportunities(Vec<u64>),
    /// Rates over time.
    Rates {
        /// (ns, bit/s) with increasing times, the first 0.
        steps: Vec<(u64, u64)>,
        /// Length of the trace in ns.
        end: u64,
    },
}

/// Delays of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// (ns, ns of delay) with increasing times, the first 0.
    pub steps: Vec<(u64, u64)>,
    /// Length of the trace in ns.
    pub end: u64,
}

/// A trace was rejected, with the line of the problem if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// Number of the line, from 1.
    pub line: Option<usize>,
    /// The problem.
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => write!(f, "{}", self.what),
        }
    }
}

/// The trace in the file that the parameter `file` names, read by `parse`.
pub(crate) fn named<T>(
    params: &Params,
    files: &Files,
    parse: fn(&[u8]) -> Result<T, TraceError>,
) -> Result<T, ParamError> {
    let file = params.file("file").ok_or_else(|| ParamError::Missing {
        name: "file".into(),
    })?;
    parse(files.content(file)?).map_err(|error| reject(params, &error))
}

/// The error of an element that cannot use such a trace.
pub(crate) fn reject(params: &Params, why: &dyn fmt::Display) -> ParamError {
    let name = params.file("file").map_or("", |file| &file.name);
    ParamError::Conflict(format!("the trace '{name}': {why}"))
}

fn at<T>(line: usize, what: String) -> Result<T, TraceError> {
    Err(TraceError {
        line: Some(line),
        what,
    })
}

fn whole<T>(what: &str) -> Result<T, TraceError> {
    Err(TraceError {
        line: None,
        what: what.to_owned(),
    })
}

/// Reads a trace of opportunities or of rates.
///
/// # Errors
/// Anything that is not exactly one of the formats, in one sentence.
pub fn parse_rates(content: &[u8]) -> Result<RateTrace, TraceError> {
    let text = text(content)?;
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    if first.is_none_or(|line| !line.contains(',')) {
        return Ok(RateTrace::Opportunities(opportunities(text)?));
    }
    let (steps, end) = table(text, "rate", [("rate_bps", 0), ("rate_mbps", 6)], MAX_VALUE)?;
    if steps.iter().all(|step| step.1 == 0) {
        return whole("every rate is 0, so the trace lets no packet pass");
    }
    Ok(RateTrace::Rates { steps, end })
}

/// Reads a trace of delays.
///
/// # Errors
/// Anything that is not exactly the format, in one sentence.
pub fn parse_delays(content: &[u8]) -> Result<DelayTrace, TraceError> {
    // The same bound as that of the fixed delay: an hour.
    let columns = [("delay_ns", 0), ("delay_ms", 6)];
    let (steps, end) = table(text(content)?, "delay", columns, 3_600_000_000_000)?;
    Ok(DelayTrace { steps, end })
}

fn text(content: &[u8]) -> Result<&str, TraceError> {
    let Ok(text) = std::str::from_utf8(content) else {
        return whole("the file is not text");
    };
    if text.trim().is_empty() {
        return whole("the file is empty; a trace has at least one line");
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The lines without their terminators; a terminator after the last line does not start another.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().zip(1..).map(|(line, number)| (number, line))
}

/// A piece of the file that is short enough for a message.
fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

fn opportunities(text: &str) -> Result<Vec<u64>, TraceError> {
    let mut times = Vec::new();
    let mut before = 0;
    for (number, line) in lines(text) {
        if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) {
            let what = format!(
                "'{}' is not a time; each line is a whole number of milliseconds",
                shown(line)
            );
            return at(number, what);
        }
        let time = line.parse().unwrap_or(u64::MAX);
        if time > MAX_VALUE / NS_PER_MS {
            return at(number, format!("the time {} ms is too large", shown(line)));
        }
        if time < before {
            let what = format!("the time {time} ms comes before {before} ms of the line above");
            return at(number, what);
        }
        times.push(time);
        before = time;
    }
    if before == 0 {
        return whole("the last time is 0 ms, so the trace has no length; it must be above 0");
    }
    Ok(times)
}

/// The rows of a CSV file (ns, value in base units), and the time of the row that marks the end.
fn table(
    text: &str,
    what: &str,
    columns: [(&str, u32); 2],
    maximum: u64,
) -> Result<(Vec<(u64, u64)>, u64), TraceError> {
    let headings = [
        format!("time_ns,{}", columns[0].0),
        format!("time_s,{}", columns[1].0),
    ];
    let mut digits = None;
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for (number, line) in lines(text) {
        let Some((time_digits, value_digits)) = digits else {
            if line.starts_with('#') {
                continue;
            }
            let heading: String = line.split_whitespace().collect::<String>().to_lowercase();
            digits = match headings.iter().position(|known| *known == heading) {
                Some(0) => Some((0, columns[0].1)),
                Some(_) => Some((9, columns[1].1)),
                None => {
                    let what = format!(
                        "the heading must be {} or {}, not '{}'",
                        headings[0],
                        headings[1],
                        shown(line)
                    );
                    return at(number, what);
                }
            };
            continue;
        };
        let cells: Vec<&str> = line.split(',').collect();
        let [time, value] = cells[..] else {
            let what = format!(
                "'{}' is not a time and a {what}, separated by a comma",
                shown(line)
            );
            return at(number, what);
        };
        let read = |text: &str, digits: u32, what: &str, maximum: u64| {
            let text = text.trim();
            let kind = if digits == 0 {
                "whole number"
            } else {
                "number"
            };
            match decimal(text, digits) {
                None => at(
                    number,
                    format!("the {what} '{}' is not a {kind} of 0 or more", shown(text)),
                ),
                Some(value) if value > maximum => {
                    at(number, format!("the {what} '{}' is too large", shown(text)))
                }
                Some(value) => Ok(value),
            }
        };
        let time = read(time, time_digits, "time", MAX_VALUE)?;
        let value = read(value, value_digits, what, maximum)?;
        match rows.last() {
            None if time > 0 => {
                return at(number, format!("the first time is {time} ns; it must be 0"));
            }
            Some((before, _)) if time <= *before => {
                let what =
                    format!("the time {time} ns does not come after {before} ns of the row above");
                return at(number, what);
            }
            _ => rows.push((time, value)),
        }
    }
    match rows.pop() {
        Some((end, _)) if !rows.is_empty() => Ok((rows, end)),
        _ => whole("a trace needs at least two rows: the last row marks its end"),
    }
}

/// A decimal number times 10^`digits`, halves rounded up, saturating. Integers only if `digits` is zero. `None` for
/// anything else.
fn decimal(text: &str, digits: u32) -> Option<u64> {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits == 0 {
        let right = (1..=19).contains(&text.len()) && all_digits(text);
        return right.then(|| text.parse().unwrap_or(u64::MAX));
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        None => (text, 0),
        Some((mantissa, exponent)) => {
            let bare = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if !(1..=2).contains(&bare.len()) || !all_digits(bare) {
                return None;
            }
            (mantissa, exponent.parse::<i32>().ok()?)
        }
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let sized = (1..=19).contains(&integer.len()) && fraction.len() <= 18;
    if !sized || !all_digits(integer) || !all_digits(fraction) {
        return None;
    }
    // At most 37 digits: they fit into 128 bits.
    let number: u128 = format!("{integer}{fraction}").parse().ok()?;
    let shift = exponent + digits as i32 - fraction.len() as i32;
    let power = |shift: i32| 10u128.checked_pow(shift.unsigned_abs());
    let value = if number == 0 {
        Some(0)
    } else if shift >= 0 {
        power(shift).and_then(|power| number.checked_mul(power))
    } else {
        Some(power(shift).map_or(0, |power| {
            number / power + u128::from(number % power >= power.div_ceil(2))
        }))
    };
    Some(value.map_or(u64::MAX, |value| u64::try_from(value).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(content: &str) -> String {
        parse_rates(content.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn opportunities_are_read() {
        let read = parse_rates(b"0\n2\r\n2\n5\n").unwrap();
        assert_eq!(read, RateTrace::Opportunities(vec![0, 2, 2, 5]));
        assert_eq!(
            parse_rates(b"100").unwrap(),
            RateTrace::Opportunities(vec![100])
        );
    }

    #[test]
    fn rates_are_read_in_both_units() {
        let wanted = RateTrace::Rates {
            steps: vec![(0, 1_500_000), (500_000_000, 0)],
            end: 2_000_000_000,
        };
        let ns = b"# made by hand\ntime_ns,rate_bps\n0,1500000\n500000000,0\n2000000000,7\n";
        assert_eq!(parse_rates(ns).unwrap(), wanted);
        let s = "\u{feff}Time_s, rate_Mbps\n0,1.5\n0.5,0\n2e0, 0\n";
        assert_eq!(parse_rates(s.as_bytes()).unwrap(), wanted);
        let delays = parse_delays(b"time_s,delay_ms\n0,20\n1,35.5\n2,0\n").unwrap();
        let steps = vec![(0, 20_000_000), (1_000_000_000, 35_500_000)];
        assert_eq!(
            delays,
            DelayTrace {
                steps,
                end: 2_000_000_000
            }
        );
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        assert_eq!(
            refused(""),
            "the file is empty; a trace has at least one line"
        );
        assert_eq!(
            refused(" \n\n"),
            "the file is empty; a trace has at least one line"
        );
        assert_eq!(
            refused("1\n\n2\n"),
            "line 2: '' is not a time; each line is a whole number of milliseconds"
        );
        assert!(refused("1\n-2\n").starts_with("line 2: '-2' is not a time"));
        assert!(refused("1\n2.5\n").starts_with("line 2: '2.5' is not a time"));
        assert_eq!(
            refused("1\n5\n4\n"),
            "line 3: the time 4 ms comes before 5 ms of the line above"
        );
        assert!(refused("0\n0\n").starts_with("the last time is 0 ms"));
        assert_eq!(
            refused("99999999999999999999\n"),
            "line 1: the time 99999999999999999999 ms is too large"
        );
        assert_eq!(
            refused("time,rate\n0,1\n"),
            "line 1: the heading must be time_ns,rate_bps or time_s,rate_mbps, not 'time,rate'"
        );
        let csv = |rows: &str| refused(&format!("time_ns,rate_bps\n{rows}"));
        assert_eq!(
            csv("5,1\n9,1\n"),
            "line 2: the first time is 5 ns; it must be 0"
        );
        assert_eq!(
            csv("0,1\n9,1\n9,1\n"),
            "line 4: the time 9 ns does not come after 9 ns of the row above"
        );
        assert!(csv("0,1\n").contains("at least two rows"));
        assert!(csv("").contains("at least two rows"));
        assert_eq!(
            csv("0,x\n"),
            "line 2: the rate 'x' is not a whole number of 0 or more"
        );
        assert!(csv("0,1.5\n").contains("not a whole number"));
        assert!(csv("0,1,2\n").contains("separated by a comma"));
        assert!(csv("0,9999999999999999999\n").contains("too large"));
        assert!(csv("0,0\n5,0\n").contains("every rate is 0"));
        assert_eq!(
            parse_rates(&[0xff, 0xfe]).unwrap_err().to_string(),
            "the file is not text"
        );
        let delay = parse_delays(b"time_ns,delay_ns\n0,3600000000001\n1,0\n").unwrap_err();
        assert_eq!(
            delay.to_string(),
            "line 2: the delay '3600000000001' is too large"
        );
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal("0.1", 9), Some(100_000_000));
        assert_eq!(decimal("1.0000000005", 9), Some(1_000_000_001));
        assert_eq!(decimal("1.00000000049", 9), Some(1_000_000_000));
        assert_eq!(decimal("12e-1", 6), Some(1_200_000));
        assert_eq!(decimal("1e99", 6), Some(u64::MAX));
        assert_eq!(decimal("0e99", 6), Some(0));
        assert_eq!(decimal("1e-99", 6), Some(0));
        for wrong in [
            "", ".", ".5", "-1", "1e", "1e+", "1e100", "0x1", "1 2", "nan", "١",
        ] {
            assert_eq!(decimal(wrong, 6), None, "{wrong}");
        }
    }
}
