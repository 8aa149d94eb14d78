//! Merged logs, which Pantheon's analysis reads. One per run and direction.
//!
//! ```text
//! # init timestamp: 1500000000123.456     base, ms since 1970
//! 0.544 # 1500                            the emulated link could have carried 1500 bytes
//! 12.345 + 1500 1                         1500 bytes of flow 1 were sent
//! 31.002 - 1500 18.657 1                  1500 bytes of flow 1 arrived, 18.657 ms after that
//! ```
//!
//! The log of a single tunnel has the same format without the flow number, which is then 1. Other lines that begin with
//! `#` are comments.

use crate::error::LogError;
use crate::link::{Arrived, NO_PACKET, OneDirection, Opportunity, SentLine};
use crate::scan::{self, Fields, LineOrder, LogLine, shown};
use std::collections::BTreeSet;

const HEAD: &[u8] = b"# init timestamp: ";

/// Content of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Its events.
    pub link: OneDirection,
    /// Position and reason if reading stopped before the end.
    pub stopped: Option<LogError>,
    /// The first line that is earlier than one above it. Pantheon's logs are in the order of time, unless a clock was
    /// set back.
    pub disorder: Option<LogError>,
    /// Number of arrivals of packets that were never sent.
    pub strangers: u64,
    /// Flows that have separate raw logs, with or without packets.
    pub flows: BTreeSet<u16>,
}

/// Reads a merged log. A `lenient` reader stops at the first invalid line and keeps the lines before it, and it ignores
/// arrivals of packets that were never sent.
///
/// # Errors
/// A log without header; unless the reader is lenient, also an invalid or truncated line, and an arrival of a packet
/// that was never sent.
pub fn read_merged(file: &str, text: &[u8], lenient: bool) -> Result<Reading, LogError> {
    let mut lines = scan::lines(text);
    let base_ns = head(file, lines.next())?;
    let mut reading = Reading {
        link: OneDirection {
            base_ns,
            ..OneDirection::default()
        },
        ..Reading::default()
    };
    let mut numbered = None;
    let mut order = LineOrder::default();
    for line in lines {
        match event(&line, &mut numbered, &mut reading.link) {
            Ok(Some(time_ns)) => order.see(line.number, time_ns),
            Ok(None) => {}
            Err(problem) => {
                let error = LogError::new(file, line.number, problem);
                if !lenient {
                    return Err(error);
                }
                reading.stopped = Some(error);
                break;
            }
        }
    }
    reading.disorder = order.broken(file);
    let strangers = reading.link.match_up();
    match strangers.first() {
        Some(&first) if !lenient => {
            let one = &reading.link.arrived[first];
            let mut ms = Vec::new();
            scan::write_ms(&mut ms, one.delay_ns);
            let problem = format!(
                "a packet of {} bytes of flow {} arrives {} ms after it was sent, but no line says \
                 that such a packet was sent",
                one.size,
                one.flow,
                String::from_utf8_lossy(&ms)
            );
            Err(LogError::new(file, u64::from(one.line), problem))
        }
        _ => {
            reading.strangers = strangers.len() as u64;
            Ok(reading)
        }
    }
}

fn head(file: &str, first: Option<LogLine<'_>>) -> Result<i64, LogError> {
    let Some(line) = first else {
        return Err(LogError::new(file, 0, "the log is empty"));
    };
    let base = line.text.strip_prefix(HEAD);
    base.filter(|_| line.whole)
        .and_then(scan::epoch)
        .ok_or_else(|| {
            let head = base.is_some() || HEAD.starts_with(line.text);
            let problem = scan::spoilt(line.text, line.whole, head).unwrap_or_else(|| {
                format!(
                    "a merged log begins with \"# init timestamp: \" and milliseconds since 1970, \
                     not with \"{}\"",
                    shown(line.text)
                )
            });
            LogError::new(file, 1, problem)
        })
}

/// Adds the event of a line to `link` and returns its time, `None` for a comment; `numbered` is whether events name
/// their flow, once that is known.
fn event(
    line: &LogLine<'_>,
    numbered: &mut Option<bool>,
    link: &mut OneDirection,
) -> Result<Option<i64>, String> {
    if !line.whole {
        return Err("the log ends in the middle of this line".into());
    }
    if line.text.starts_with(b"#") {
        return Ok(None);
    }
    let mut fields = Fields::new(line.text);
    let mut take = || fields.next();
    let parsed = (|| {
        let time_ns = scan::span(take()?)?;
        let kind = take()?;
        let size = u32::try_from(scan::whole(take()?)?).ok()?;
        let delay_ns = match kind {
            b"-" => scan::span(take()?)?,
            b"+" | b"#" => 0,
            _ => return None,
        };
        let flow = match take() {
            Some(field) => Some(u16::try_from(scan::whole(field)?).ok().filter(|&n| n > 0)?),
            None => None,
        };
        let fits = size > 0 && take().is_none() && (kind != b"#" || flow.is_none());
        fits.then_some((time_ns, kind, size, delay_ns, flow))
    })();
    let Some((time_ns, kind, size, delay_ns, flow)) = parsed else {
        return Err(format!(
            "\"{}\" is not an event; events are TIME + BYTES FLOW, TIME - BYTES DELAY FLOW and TIME # \
             BYTES",
            shown(line.text)
        ));
    };
    if kind == b"#" {
        link.opportunities.push(Opportunity {
            time_ns,
            bytes: size,
        });
        return Ok(Some(time_ns));
    }
    if *numbered.get_or_insert(flow.is_some()) != flow.is_some() {
        let problem = if flow.is_some() {
            "names"
        } else {
            "does not name"
        };
        return Err(format!(
            "\"{}\" {problem} its flow, unlike the events before it",
            shown(line.text)
        ));
    }
    let flow = flow.unwrap_or(1);
    if kind == b"+" {
        link.sent.push(SentLine {
            time_ns,
            size,
            flow,
        });
    } else {
        link.arrived.push(Arrived {
            time_ns,
            delay_ns,
            size,
            flow,
            line: u32::try_from(line.number).unwrap_or(u32::MAX),
            sent: NO_PACKET,
        });
    }
    Ok(Some(time_ns))
}

/// The merged log of a link. Events of the same time are written in the order opportunity, sent,
/// arrived.
pub fn write_merged(link: &OneDirection) -> Vec<u8> {
    let mut order: Vec<(i64, u8, u32)> = Vec::new();
    let count = link.sent.len() + link.arrived.len() + link.opportunities.len();
    order.reserve(count);
    let times = link.opportunities.iter().map(|one| one.time_ns);
    order.extend((0..).zip(times).map(|(index, time)| (time, 0, index)));
    let times = link.sent.iter().map(|sent| sent.time_ns);
    order.extend((0..).zip(times).map(|(index, time)| (time, 1, index)));
    let times = link.arrived.iter().map(|arrived| arrived.time_ns);
    order.extend((0..).zip(times).map(|(index, time)| (time, 2, index)));
    order.sort_unstable();
    // Most lines have about 25 bytes.
    let mut text = Vec::with_capacity(count * 28 + 64);
    text.extend_from_slice(HEAD);
    scan::write_ms(&mut text, link.base_ns);
    text.push(b'\n');
    for (time, kind, index) in order {
        scan::write_ms(&mut text, time);
        let index = index as usize;
        match kind {
            0 => {
                text.extend_from_slice(b" # ");
                scan::write_whole(&mut text, u64::from(link.opportunities[index].bytes));
            }
            1 => {
                let sent = &link.sent[index];
                text.extend_from_slice(b" + ");
                scan::write_whole(&mut text, u64::from(sent.size));
                text.push(b' ');
                scan::write_whole(&mut text, u64::from(sent.flow));
            }
            _ => {
                let arrived = &link.arrived[index];
                text.extend_from_slice(b" - ");
                scan::write_whole(&mut text, u64::from(arrived.size));
                text.push(b' ');
                scan::write_ms(&mut text, arrived.delay_ns);
                text.push(b' ');
                scan::write_whole(&mut text, u64::from(arrived.flow));
            }
        }
        text.push(b'\n');
    }
    text
}
