//! Versions of the format, and the meaning of its times.

use super::event::is_delta;
use super::text::Members;
use serde_json::Value;

/// Times since 1970 and not since the start are beyond this, in ns: ten years.
pub(super) const ABSOLUTE_NS: i64 = 10 * 365 * 86_400 * 1_000_000_000;

/// The value at `path` in the first of these headers that contains it.
fn look<'a>(heads: &'a [Members], path: &[&str]) -> Option<&'a Value> {
    heads.iter().find_map(|head| {
        let mut value = head.get(path[0])?;
        for key in &path[1..] {
            value = value.get(key)?;
        }
        (!value.is_null()).then_some(value)
    })
}

/// A text in the headers of a trace; numbers are converted to text.
pub(super) fn text_of(heads: &[Members], path: &[&str]) -> Option<String> {
    match look(heads, path)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The version that a file names.
pub(super) fn version_of(heads: &[Members]) -> Option<String> {
    text_of(heads, &["file_schema"]).or_else(|| text_of(heads, &["qlog_version"]))
}

/// True for the versions whose events are known: draft-00 to -02, 0.3, 0.4 and the schemas of later drafts.
pub(super) fn is_known(version: &str) -> bool {
    let version = version.to_lowercase();
    let version = version.strip_prefix("qlog-").unwrap_or(&version);
    if let Some(schema) = version.strip_prefix("urn:ietf:params:qlog:file:") {
        return ["sequential", "contained"]
            .contains(&schema.trim_end_matches(|c| "#0123456789-".contains(c)));
    }
    let version = version.strip_prefix("draft-").unwrap_or(version);
    // Some stacks add a word: draft-02-RC1, 0.3-wip.
    let number = version.split(['-', '_']).next().unwrap_or_default();
    ["00", "01", "02", "0.1", "0.2", "0.3", "0.4"].contains(&number)
}

/// Turns times of events into nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Nanoseconds per unit.
    pub unit: f64,
    delta: bool,
    /// Added to all times.
    base_ns: i64,
    now: f64,
}

impl Clock {
    /// The clock of a trace.
    pub(super) fn new(heads: &[Members]) -> Self {
        let unit = match text_of(heads, &["configuration", "time_units"]).as_deref() {
            Some("us") => 1e3,
            Some("ns") => 1.0,
            Some("s") => 1e9,
            _ => 1e6,
        };
        let format = text_of(heads, &["common_fields", "time_format"]).unwrap_or_default();
        let reference = look(heads, &["common_fields", "reference_time"]);
        let reference = reference.or_else(|| look(heads, &["reference_time"]));
        let base_ns = match reference {
            _ if format == "absolute" => 0,
            Some(reference) => reference_ns(reference),
            None => 0,
        };
        let offset = text_of(heads, &["configuration", "time_offset"]);
        let offset: f64 = offset
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0.0);
        let offset = if offset.is_finite() {
            offset * unit
        } else {
            0.0
        };
        Clock {
            unit,
            delta: is_delta(&format),
            base_ns: base_ns.saturating_add(offset as i64),
            now: 0.0,
        }
    }

    /// True if times are relative to the previous event.
    pub(super) fn is_delta(&self) -> bool {
        self.delta
    }

    /// Reads times as times since the start, regardless of the trace.
    pub(super) fn count_from_start(&mut self) {
        self.delta = false;
    }

    /// The time of an event in ns; `None` if it has no valid one.
    pub(super) fn time(&mut self, time: Option<f64>, delta: Option<bool>) -> Option<i64> {
        let time = time.filter(|time| time.is_finite())?;
        self.now = if delta.unwrap_or(self.delta) {
            self.now + time
        } else {
            time
        };
        let ns = self.now * self.unit;
        // Within 250 years of 1970.
        let ns = (ns.abs() < 8e18).then(|| ns.round() as i64)?;
        // Times since 1970 have no other base, regardless of the header.
        Some(if ns > ABSOLUTE_NS {
            ns
        } else {
            self.base_ns.saturating_add(ns)
        })
    }
}

/// A reference time in ns since 1970; 0 if unknown.
fn reference_ns(reference: &Value) -> i64 {
    match reference {
        Value::Object(object) => {
            let epoch = object
                .get("epoch")
                .and_then(Value::as_str)
                .and_then(date_ns);
            let wall = || {
                object
                    .get("wall_clock_time")
                    .and_then(Value::as_str)
                    .and_then(date_ns)
            };
            epoch.or_else(wall).unwrap_or(0)
        }
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) => number_ns(number),
            Err(_) => date_ns(text).unwrap_or(0),
        },
        other => other.as_f64().map_or(0, number_ns),
    }
}

/// Milliseconds, or microseconds or nanoseconds if milliseconds would be thousands of years ahead.
fn number_ns(number: f64) -> i64 {
    let unit = match number {
        _ if number.is_nan() => 0.0,
        _ if number >= 1e17 => 1.0,
        _ if number >= 1e14 => 1e3,
        _ => 1e6,
    };
    (number * unit) as i64
}

/// A date of RFC 3339 in ns since 1970.
fn date_ns(text: &str) -> Option<i64> {
    let text = text.trim();
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let rest = text.get(19..)?;
    let digits: String = (rest.strip_prefix('.').unwrap_or_default().chars())
        .take_while(char::is_ascii_digit)
        .take(9)
        .collect();
    let fraction = format!("{digits:0<9}").parse::<i64>().ok()?;
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let zone_s = match zone.as_bytes() {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), ..] => {
            let part = |range: std::ops::Range<usize>| zone.get(range)?.parse::<i64>().ok();
            let ahead = part(1..3)? * 3600 + part(4..6).or_else(|| part(3..5))? * 60;
            if *sign == b'+' { ahead } else { -ahead }
        }
        _ => return None,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of the civil calendar, counted from March so that leap days come last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - zone_s;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn clock(trace: &Value) -> Clock {
        Clock::new(&[trace.as_object().unwrap().clone()])
    }

    #[test]
    fn dates_are_those_of_date() {
        // `date -u -d ... +%s%N`
        for (text, ns) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2024-02-29T12:34:56.789Z", 1_709_210_096_789_000_000),
            ("2000-03-01T00:00:00+01:00", 951_865_200_000_000_000),
            ("1999-12-31T23:59:59.5", 946_684_799_500_000_000),
        ] {
            assert_eq!(date_ns(text), Some(ns), "{text}");
        }
        assert_eq!(date_ns("unknown"), None);
    }

    #[test]
    fn times_have_the_unit_and_the_reference_of_their_trace() {
        let mut plain = clock(&json!({}));
        assert_eq!(plain.time(Some(1.5), None), Some(1_500_000));
        let mut micro = clock(&json!({"configuration": {"time_units": "us", "time_offset": "10"}}));
        assert_eq!(micro.time(Some(1.5), None), Some(11_500));
        let epoch = json!({"clock_type": "system", "epoch": "1970-01-01T00:00:01.000Z"});
        let fields =
            json!({"common_fields": {"time_format": "relative_to_epoch", "reference_time": epoch}});
        assert_eq!(clock(&fields).time(Some(2.0), None), Some(1_002_000_000));
        let fields = json!({"common_fields": {"time_format": "relative_to_previous_event"}});
        let mut delta = clock(&fields);
        assert_eq!(
            (delta.time(Some(2.0), None), delta.time(Some(2.0), None)),
            (Some(2_000_000), Some(4_000_000))
        );
        let fields = json!({"common_fields": {"reference_time": "1700000000000"}});
        assert_eq!(
            clock(&fields).time(Some(1.0), None),
            Some(1_700_000_000_001_000_000)
        );
        assert_eq!(plain.time(Some(f64::NAN), None), None);
        assert_eq!(plain.time(Some(1e300), None), None);
    }

    #[test]
    fn versions_are_known_by_their_number() {
        for known in [
            "draft-00",
            "draft-02-RC1",
            "qlog-02",
            "0.3",
            "0.4",
            "urn:ietf:params:qlog:file:sequential",
        ] {
            assert!(is_known(known), "{known}");
        }
        for unknown in [
            "0.9",
            "1.0",
            "draft-17",
            "urn:ietf:params:qlog:file:other",
            "",
        ] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }
}
