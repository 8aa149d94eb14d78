//! Finds where the records of a file begin and end: one JSON document, JSON text sequences (RFC 7464), or a line per
//! event.
//!
//! Only structure is examined here, not content: a value is skipped by its brackets and quotes alone. Therefore one
//! broken event costs only that event, and a truncated document is read up to the truncation.

use super::SEPARATOR;
use serde_json::{Map, Value};

/// Members of the head of a file or of a trace.
pub(super) type Members = Map<String, Value>;

/// One trace of a file: headers and the texts of its events.
#[derive(Debug, Default)]
pub(super) struct TraceText<'a> {
    /// Members of the trace, then of the file.
    pub heads: Vec<Members>,
    pub events: Vec<&'a [u8]>,
}

/// The parts of a file.
#[derive(Debug, Default)]
pub(super) struct FileText<'a> {
    pub traces: Vec<TraceText<'a>>,
    /// Records that are not JSON.
    pub broken: u64,
    /// True if the file ends within a record.
    pub cut: bool,
    /// True if text precedes the first record or follows the document.
    pub around: bool,
}

/// Splits a file.
pub(super) fn split(bytes: &[u8]) -> FileText<'_> {
    let mut file = FileText::default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let begin = first_record(bytes);
    file.around = bytes[..begin]
        .iter()
        .any(|byte| !byte.is_ascii_whitespace());
    let bytes = &bytes[begin..];
    if bytes.first() == Some(&SEPARATOR) {
        records(bytes.split(|&byte| byte == SEPARATOR), &mut file);
    } else if let Some(rest) = document(bytes, &mut file) {
        file.around |= rest.iter().any(|byte| !byte.is_ascii_whitespace());
    } else {
        records(bytes.split(|&byte| byte == b'\n'), &mut file);
    }
    file
}

/// The place of the first record: a separator or a brace at the start of a line.
fn first_record(bytes: &[u8]) -> usize {
    let mut start = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let blank = line.iter().take_while(|byte| byte.is_ascii_whitespace());
        let at = blank.count();
        if matches!(line.get(at), Some(&(SEPARATOR | b'{'))) {
            return start + at;
        }
        start += line.len();
    }
    0
}

/// Reads one document with all its traces; returns the bytes behind it, or `None` if the first value is not a document.
fn document<'a>(bytes: &'a [u8], file: &mut FileText<'a>) -> Option<&'a [u8]> {
    if bytes.first() != Some(&b'{') {
        return None;
    }
    let mut scanner = Scanner {
        bytes,
        at: 0,
        cut: false,
    };
    let mut head = Members::new();
    let mut traces: Option<Vec<TraceText<'a>>> = None;
    let mut broken = 0;
    scanner.object(|scanner, key| {
        if key == b"traces" && scanner.peek() == Some(b'[') {
            let all = traces.get_or_insert_default();
            scanner.array(|scanner| {
                if scanner.peek() == Some(b'{') {
                    all.push(trace(scanner, &mut broken));
                } else {
                    scanner.value();
                    broken += 1;
                }
            });
        } else {
            member(key, scanner, &mut head, &mut broken);
        }
    });
    let traces = match traces {
        Some(traces) => traces,
        // A truncated document has at least a header; a line of a sequence is complete.
        None if scanner.cut && !bytes.contains(&b'\n') => Vec::new(),
        None => return None,
    };
    file.cut = scanner.cut;
    file.broken += broken;
    file.traces = traces;
    if file.traces.is_empty() {
        file.traces.push(TraceText::default());
    }
    for trace in &mut file.traces {
        trace.heads.push(head.clone());
    }
    Some(&bytes[scanner.at..])
}

fn trace<'a>(scanner: &mut Scanner<'a>, broken: &mut u64) -> TraceText<'a> {
    let mut members = Members::new();
    let mut events = Vec::new();
    scanner.object(|scanner, key| {
        if key == b"events" && scanner.peek() == Some(b'[') {
            scanner.array(|scanner| {
                let event = scanner.value();
                // A truncated event is reported for the file.
                if !scanner.cut {
                    events.push(event);
                }
            });
        } else {
            member(key, scanner, &mut members, broken);
        }
    });
    TraceText {
        heads: vec![members],
        events,
    }
}

fn member(key: &[u8], scanner: &mut Scanner<'_>, members: &mut Members, broken: &mut u64) {
    let text = scanner.value();
    if scanner.cut {
        return;
    }
    match serde_json::from_slice(text) {
        Ok(value) => {
            members.insert(String::from_utf8_lossy(key).into_owned(), value);
        }
        Err(_) => *broken += 1,
    }
}

/// Reads records, the first of which is a header. A later one with a version begins another trace.
fn records<'a>(texts: impl Iterator<Item = &'a [u8]>, file: &mut FileText<'a>) {
    let mut texts = texts
        .map(<[u8]>::trim_ascii)
        .filter(|text| !text.is_empty())
        .peekable();
    while let Some(text) = texts.next() {
        let (mut scanner, last) = (
            Scanner {
                bytes: text,
                at: 0,
                cut: false,
            },
            texts.peek().is_none(),
        );
        if matches!(text[0], b'{' | b'[') {
            scanner.value();
        }
        if scanner.cut && last {
            file.cut = true;
        } else if scanner.cut || scanner.at != text.len() {
            file.broken += 1;
        } else if let Some(head) = head(text) {
            let versioned = head.contains_key("qlog_version") || head.contains_key("file_schema");
            match file.traces.last_mut() {
                Some(trace) if !versioned && trace.events.is_empty() => trace.heads.insert(0, head),
                _ => file.traces.push(TraceText {
                    heads: vec![head],
                    events: Vec::new(),
                }),
            }
        } else {
            if file.traces.is_empty() {
                file.traces.push(TraceText::default());
            }
            file.traces
                .last_mut()
                .expect("there is one")
                .events
                .push(text);
        }
    }
    for trace in &mut file.traces {
        // In sequences the header of the trace is inside that of the file.
        let inner: Vec<Members> = (trace.heads.iter())
            .filter_map(|head| head.get("trace")?.as_object().cloned())
            .collect();
        trace.heads.splice(0..0, inner);
    }
}

/// The record as a header, if it is not an event.
fn head(text: &[u8]) -> Option<Members> {
    const KEYS: [&[u8]; 5] = [
        b"qlog_version",
        b"file_schema",
        b"vantage_point",
        b"common_fields",
        b"trace",
    ];
    let mut scanner = Scanner {
        bytes: text,
        at: 0,
        cut: false,
    };
    if scanner.peek() != Some(b'{') {
        return None;
    }
    let (mut known, mut event) = (false, false);
    scanner.object(|scanner, key| {
        known |= KEYS.contains(&key);
        event |= matches!(key, b"time" | b"name" | b"data");
        scanner.value();
    });
    (known && !event)
        .then(|| serde_json::from_slice(text).ok())
        .flatten()
}

/// A position in JSON text.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// True if the text ended within a value.
    cut: bool,
}

impl<'a> Scanner<'a> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is neither white space nor comma; the end of the text is a truncation.
    fn next_item(&mut self) -> Option<u8> {
        while self.peek() == Some(b',') {
            self.at += 1;
        }
        let next = self.peek();
        self.cut |= next.is_none();
        next
    }

    /// Iterates over an object; `member` has to read or skip the value of each key.
    fn object(&mut self, mut member: impl FnMut(&mut Self, &[u8])) {
        self.at += 1;
        while let Some(byte) = self.next_item() {
            match byte {
                b'}' => {
                    self.at += 1;
                    return;
                }
                b'"' => {
                    let key = self.value();
                    if self.peek() == Some(b':') {
                        self.at += 1;
                        self.peek();
                        member(self, &key[1..key.len().max(2) - 1]);
                    }
                }
                _ => self.at += 1,
            }
            if self.cut {
                return;
            }
        }
    }

    /// Iterates over an array; `element` has to read or skip each element.
    fn array(&mut self, mut element: impl FnMut(&mut Self)) {
        self.at += 1;
        while let Some(byte) = self.next_item() {
            let before = self.at;
            if byte == b']' {
                self.at += 1;
                return;
            }
            element(self);
            if self.cut {
                return;
            }
            // An extra closing brace.
            self.at += usize::from(self.at == before);
        }
    }

    /// Skips a value and returns its text.
    fn value(&mut self) -> &'a [u8] {
        let Some(first) = self.peek() else {
            self.cut = true;
            return &[];
        };
        let from = self.at;
        let mut depth = 0_u32;
        let mut quoted = first == b'"';
        let scalar = !matches!(first, b'"' | b'{' | b'[');
        if scalar {
            let rest = &self.bytes[from..];
            let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
            let length = rest.iter().position(ends);
            self.cut |= length.is_none();
            self.at += length.unwrap_or(rest.len());
            return &self.bytes[from..self.at];
        }
        let only_text = quoted;
        depth += u32::from(!quoted);
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' if quoted => self.at += 1,
                b'"' => {
                    quoted = !quoted;
                    if only_text {
                        return &self.bytes[from..self.at];
                    }
                }
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => {
                    depth -= 1;
                    if depth == 0 {
                        return &self.bytes[from..self.at];
                    }
                }
                _ => {}
            }
        }
        self.at = self.bytes.len();
        self.cut = true;
        &self.bytes[from..]
    }
}

/// The elements of an array; none if the text is not an array.
pub(super) fn elements(text: &[u8]) -> Vec<&[u8]> {
    let mut scanner = Scanner {
        bytes: text,
        at: 0,
        cut: false,
    };
    let mut found = Vec::new();
    if scanner.peek() == Some(b'[') {
        scanner.array(|scanner| found.push(scanner.value()));
    }
    found
}
