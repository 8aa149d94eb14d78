//! Lines of logs, their fields and numbers, without an allocation per line.

use crate::error::LogError;
use crate::link::TOLERANCE_NS;

/// One line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLine<'a> {
    /// From 1.
    pub(crate) number: u64,
    /// Without the line terminator.
    pub(crate) text: &'a [u8],
    /// True if the line is terminated. Pantheon's writers always write the terminator, so a line
    /// without one was truncated, even if it looks valid.
    pub(crate) whole: bool,
}

/// The lines of `text`.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = LogLine<'_>> {
    let mut rest = text;
    let mut number = 0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        number += 1;
        let end = rest.iter().position(|&byte| byte == b'\n');
        let (line, whole) = match end {
            Some(end) => {
                let line = &rest[..end];
                rest = &rest[end + 1..];
                (line, true)
            }
            None => (std::mem::take(&mut rest), false),
        };
        Some(LogLine {
            number,
            text: line.strip_suffix(b"\r").unwrap_or(line),
            whole,
        })
    })
}

/// Fields separated by single spaces.
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Fields { rest: Some(text) }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if let Some(end) = rest.iter().position(|&byte| byte == b' ') {
            self.rest = Some(&rest[end + 1..]);
            Some(&rest[..end])
        } else {
            self.rest = None;
            Some(rest)
        }
    }
}

/// An integer of at most 19 digits.
pub(crate) fn whole(field: &[u8]) -> Option<u64> {
    if field.is_empty() || field.len() > 19 {
        return None;
    }
    field.iter().try_fold(0_u64, |value, &byte| {
        byte.is_ascii_digit()
            .then(|| value * 10 + u64::from(byte - b'0'))
    })
}

/// Maximum number of digits of milliseconds before the point. As nanoseconds since 1970 they fit 63
/// bits until the year 2255.
const MAX_DIGITS: usize = 13;
/// Times since the epoch are below this many milliseconds.
const END_OF_TIME_MS: u64 = 9_000_000_000_000;
/// Times within a log and delays are at most 365 days; longer ones are not measurements. Sums of a
/// few of them and a time since the epoch fit 63 bits.
const MAX_SPAN_NS: i64 = 365 * 86_400 * 1_000_000_000;

/// A time within a log or a delay, as [`milliseconds`] of at most 365 days.
pub(crate) fn span(field: &[u8]) -> Option<i64> {
    milliseconds(field).filter(|ns| ns.abs() <= MAX_SPAN_NS)
}

/// A time since 1970, as [`milliseconds`] that are not negative.
pub(crate) fn epoch(field: &[u8]) -> Option<i64> {
    milliseconds(field).filter(|&ns| ns >= 0)
}

/// Milliseconds as nanoseconds, exactly; fractions of a nanosecond are rounded to the nearest.
fn milliseconds(field: &[u8]) -> Option<i64> {
    let (negative, digits) = match field.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, field),
    };
    let point = digits.iter().position(|&byte| byte == b'.');
    let (before, after) = match point {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    if before.len() > MAX_DIGITS || after.len() > 18 || (point.is_some() && after.is_empty()) {
        return None;
    }
    let before = whole(before).filter(|&ms| ms < END_OF_TIME_MS)?;
    let kept = &after[..after.len().min(6)];
    let mut below = if kept.is_empty() { 0 } else { whole(kept)? };
    for _ in kept.len()..6 {
        below *= 10;
    }
    if let Some(rest) = after.get(6..).filter(|rest| !rest.is_empty()) {
        whole(rest)?;
        below += u64::from(rest[0] >= b'5');
    }
    let ns = i64::try_from(before * 1_000_000 + below).ok()?;
    Some(if negative { -ns } else { ns })
}

/// Checks that lines are in the order of time, as Pantheon writes them.
#[derive(Default)]
pub(crate) struct LineOrder {
    latest_ns: Option<i64>,
    /// The first line out of order, and by how much.
    broken: Option<(u64, i64)>,
}

impl LineOrder {
    pub(crate) fn see(&mut self, line: u64, time_ns: i64) {
        let latest_ns = *self.latest_ns.get_or_insert(time_ns);
        // Lines of several tunnels are sorted before their times are rounded.
        if time_ns < latest_ns - TOLERANCE_NS && self.broken.is_none() {
            self.broken = Some((line, latest_ns - time_ns));
        }
        self.latest_ns = Some(latest_ns.max(time_ns));
    }

    pub(crate) fn broken(&self, file: &str) -> Option<LogError> {
        self.broken.map(|(line, back_ns)| {
            let ms = back_ns as f64 / 1e6;
            let problem = format!("this line is {ms:.3} ms earlier than one above it");
            LogError::new(file, line, problem)
        })
    }
}

/// A specific problem with a first line, if it is known.
pub(crate) fn spoilt(text: &[u8], whole: bool, head: bool) -> Option<String> {
    let packed: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "gzip"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ];
    let by = packed.iter().find(|(magic, _)| text.starts_with(magic));
    match by {
        Some((_, by)) => Some(format!("the log is compressed ({by}); unpack it first")),
        None if head && !whole => Some("the log ends in the middle of this line".into()),
        None => None,
    }
}

/// Text of a log for an error: printable, and short.
pub(crate) fn shown(text: &[u8]) -> String {
    const MOST: usize = 60;
    let cut = &text[..text.len().min(MOST)];
    let mut shown: String = String::from_utf8_lossy(cut)
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    if text.len() > MOST {
        shown.push_str("...");
    }
    shown
}

/// Nanoseconds as milliseconds with three decimals, as in logs; with six if three do not suffice,
/// so that values that were read are written again unchanged.
pub(crate) fn write_ms(out: &mut Vec<u8>, ns: i64) {
    let size = ns.unsigned_abs();
    if ns < 0 {
        out.push(b'-');
    }
    write_whole(out, size / 1_000_000);
    out.push(b'.');
    let mut digits = |below: u64| {
        out.extend([below / 100, below / 10 % 10, below % 10].map(|digit| b'0' + digit as u8));
    };
    digits(size / 1000 % 1000);
    if !size.is_multiple_of(1000) {
        digits(size % 1000);
    }
}

/// An integer.
pub(crate) fn write_whole(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; 20];
    let mut rest = value;
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_logs() {
        assert_eq!(milliseconds(b"31.002"), Some(31_002_000));
        assert_eq!(milliseconds(b"-0.5"), Some(-500_000));
        assert_eq!(milliseconds(b"7"), Some(7_000_000));
        assert_eq!(
            milliseconds(b"1500000000123.456"),
            Some(1_500_000_000_123_456_000)
        );
        assert_eq!(milliseconds(b"0.0000005"), Some(1));
        assert_eq!(milliseconds(b"0.0000004999"), Some(0));
        for wrong in [
            &b""[..],
            b".",
            b"1.",
            b".5",
            b"1,5",
            b"1e3",
            b"--1",
            b"+1",
            b"1.2.3",
            b"nan",
            b" 1",
            b"99999999999999",
            b"1.1234567890123456789",
            b"9000000000000",
        ] {
            assert_eq!(milliseconds(wrong), None, "{}", shown(wrong));
        }
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!(whole(b"0012"), Some(12));
        assert_eq!(whole(b"-1"), None);
    }

    #[test]
    fn a_line_without_an_end_was_cut_off() {
        let found: Vec<LogLine<'_>> = lines(b"a\r\n\nb").collect();
        let line = |number, text: &'static [u8], whole| LogLine {
            number,
            text,
            whole,
        };
        assert_eq!(
            found,
            [
                line(1, b"a", true),
                line(2, b"", true),
                line(3, b"b", false)
            ]
        );
        assert_eq!(lines(b"").count(), 0);
        let fields: Vec<&[u8]> = Fields::new(b"a  b ").collect();
        assert_eq!(fields, [&b"a"[..], b"", b"b", b""]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(us in -4_000_000_000_000_000_i64..4_000_000_000_000_000, below in 0_i64..1000) {
            for ns in [us * 1000, us * 1000 + below] {
                let mut text = Vec::new();
                write_ms(&mut text, ns);
                prop_assert_eq!(milliseconds(&text), Some(ns));
                let point = text.iter().position(|&byte| byte == b'.').unwrap();
                prop_assert_eq!(text.len() - point - 1, if ns % 1000 == 0 { 3 } else { 6 });
            }
        }
    }
}
