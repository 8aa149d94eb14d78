//! Raw logs of the tunnel, two per direction: packets that one end sent and packets that the other received.
//!
//! ```text
//! # 'mm-tunnelclient' '10.0.0.1' ... egress: 1500000000123.456     command, side, ms since 1970
//! 12.345 - 0 - 1500                                                time, number of the packet, size
//! ```
//!
//! *Egress* packets were sent into the tunnel by an end, *ingress* packets were received from it. Each end counts time
//! from its start by its own clock; offsets measured by NTP are added.

use crate::error::LogError;
use crate::link::{Arrived, NO_PACKET, OneDirection, SentLine};
use crate::merged::Reading;
use crate::scan::{self, Fields, LineOrder, LogLine, shown};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum time between the starts of two ends of a tunnel, which start within seconds of each other. A week allows for
/// clocks that were never set, and keeps sums of times far from their limits.
const MAX_APART_NS: u64 = 7 * 86_400 * 1_000_000_000;

/// Content of a raw log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawLogSide {
    /// Packets that an end sent.
    Egress,
    /// Packets that an end received.
    Ingress,
}

impl RawLogSide {
    const fn word(self) -> &'static str {
        match self {
            RawLogSide::Egress => "egress",
            RawLogSide::Ingress => "ingress",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawLogRow {
    time_ns: i64,
    uid: u64,
    size: u32,
}

/// A raw log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelLog {
    file: String,
    start_ns: i64,
    /// The first row is in line 2, and so on.
    rows: Vec<RawLogRow>,
    stopped: Option<LogError>,
    disorder: Option<LogError>,
}

/// Corrections by NTP to be added to the clocks, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// Offset of the sending end.
    pub sender_ns: i64,
    /// Offset of the receiving end.
    pub receiver_ns: i64,
}

/// Reads a raw log of the given side. A `lenient` reader stops at the first invalid line and keeps the lines before it.
///
/// # Errors
/// A log without header or of the other side; unless the reader is lenient, also an invalid or truncated line.
pub fn read_tunnel(
    file: &str,
    text: &[u8],
    side: RawLogSide,
    lenient: bool,
) -> Result<TunnelLog, LogError> {
    let mut lines = scan::lines(text);
    let start_ns = head(file, lines.next(), side)?;
    let mut log = TunnelLog {
        file: file.to_owned(),
        start_ns,
        rows: Vec::new(),
        stopped: None,
        disorder: None,
    };
    let mut order = LineOrder::default();
    for line in lines {
        match row(&line) {
            Ok(row) => {
                order.see(line.number, row.time_ns);
                log.rows.push(row);
            }
            Err(problem) => {
                let error = LogError::new(file, line.number, problem);
                if !lenient {
                    return Err(error);
                }
                log.stopped = Some(error);
                break;
            }
        }
    }
    log.disorder = order.broken(file);
    Ok(log)
}

fn head(file: &str, first: Option<LogLine<'_>>, side: RawLogSide) -> Result<i64, LogError> {
    let Some(line) = first else {
        return Err(LogError::new(file, 0, "the log is empty"));
    };
    // The command before it may contain anything, so the line is read from its end.
    let mut words = line.text.rsplitn(3, |&byte| byte == b' ');
    let start = words.next().and_then(scan::epoch);
    let word = words.next().and_then(|word| word.strip_suffix(b":"));
    match (line.text.starts_with(b"#") && line.whole, word, start) {
        (true, Some(word), Some(start)) if word == side.word().as_bytes() => Ok(start),
        (true, Some(word), Some(_)) if [&b"egress"[..], b"ingress"].contains(&word) => {
            let problem = format!(
                "this is the log of packets {}, not of packets {}",
                if word == b"egress" {
                    "sent (egress)"
                } else {
                    "received (ingress)"
                },
                if side == RawLogSide::Egress {
                    "sent"
                } else {
                    "received"
                },
            );
            Err(LogError::new(file, 1, problem))
        }
        _ => {
            let comment = line.text.starts_with(b"#");
            let problem = scan::spoilt(line.text, line.whole, comment).unwrap_or_else(|| {
                format!(
                    "a log of the tunnel begins with \"# COMMAND {}: \" and milliseconds since 1970, \
                     not with \"{}\"",
                    side.word(),
                    shown(line.text)
                )
            });
            Err(LogError::new(file, 1, problem))
        }
    }
}

fn row(line: &LogLine<'_>) -> Result<RawLogRow, String> {
    if !line.whole {
        return Err("the log ends in the middle of this line".into());
    }
    let mut fields = Fields::new(line.text);
    let mut take = || fields.next();
    let parsed = (|| {
        let time_ns = scan::span(take()?)?;
        let dash = take()? == b"-";
        let uid = scan::whole(take()?)?;
        let dash = dash && take()? == b"-";
        let size = u32::try_from(scan::whole(take()?)?).ok()?;
        let fits = dash && size > 0 && take().is_none();
        fits.then_some(RawLogRow { time_ns, uid, size })
    })();
    parsed.ok_or_else(|| {
        format!(
            "\"{}\" is not a packet; lines are TIME - NUMBER - BYTES",
            shown(line.text)
        )
    })
}

/// Merges the two logs of one direction of one tunnel, as flow number `flow`. A `lenient` merge stops reading arrivals
/// at the first one that matches no packet, as Pantheon's did silently. It also stops reading sent packets where a
/// number is reused.
///
/// # Errors
/// Logs that begin days apart; unless the merge is lenient, also a number that was sent twice, and an arrival of a
/// packet that was not sent or had another size.
pub fn merge(
    egress: &TunnelLog,
    ingress: &TunnelLog,
    offsets: Offsets,
    flow: u16,
    lenient: bool,
) -> Result<Reading, LogError> {
    let starts = [
        egress.start_ns + offsets.sender_ns,
        ingress.start_ns + offsets.receiver_ns,
    ];
    let apart = starts[0].abs_diff(starts[1]);
    if apart > MAX_APART_NS {
        let problem = format!(
            "the log begins {:.0} days apart from {}; logs of one tunnel belong together, or the \
             clock of one end is wrong",
            apart as f64 / 86_400e9,
            egress.file
        );
        return Err(LogError::new(&ingress.file, 1, problem));
    }
    let base_ns = starts[0].min(starts[1]);
    let mut link = OneDirection {
        base_ns,
        ..OneDirection::default()
    };
    let shift = starts[0] - base_ns;
    link.sent = egress
        .rows
        .iter()
        .map(|row| SentLine {
            time_ns: row.time_ns + shift,
            size: row.size,
            flow,
        })
        .collect();
    let (numbers, repeated) = Numbers::from_log(egress);
    if let Some(error) = &repeated {
        if !lenient {
            return Err(error.clone());
        }
        // Packets sent in this line or a later one are not known.
        link.sent.truncate(error.line as usize - 2);
    }
    let shift = starts[1] - base_ns;
    let mut stopped = None;
    for (index, row) in ingress.rows.iter().enumerate() {
        let time_ns = row.time_ns + shift;
        let sent = numbers.place(row.uid);
        let problem = match sent.map(|place| link.sent[place as usize].size) {
            None => format!(
                "packet {} arrives, but {} does not have it",
                row.uid, egress.file
            ),
            Some(size) if size != row.size => format!(
                "packet {} arrives with {} bytes, but was sent with {size}",
                row.uid, row.size
            ),
            Some(_) => {
                let sent = sent.unwrap_or(NO_PACKET);
                link.arrived.push(Arrived {
                    time_ns,
                    delay_ns: time_ns - link.sent[sent as usize].time_ns,
                    size: row.size,
                    flow,
                    line: u32::try_from(index + 2).unwrap_or(u32::MAX),
                    sent,
                });
                continue;
            }
        };
        let error = LogError::new(&ingress.file, index as u64 + 2, problem);
        if !lenient {
            return Err(error);
        }
        stopped = Some(error);
        break;
    }
    Ok(Reading {
        link,
        stopped: repeated
            .or_else(|| egress.stopped.clone())
            .or(stopped)
            .or_else(|| ingress.stopped.clone()),
        disorder: egress.disorder.clone().or(ingress.disorder.clone()),
        strangers: 0,
        flows: BTreeSet::from([flow]),
    })
}

/// Maps numbers to the indices of sent packets.
enum Numbers {
    /// In the order of their numbers, from 0, as the tunnel assigns them.
    Plain(u64),
    Listed(BTreeMap<u64, u32>),
}

impl Numbers {
    /// The numbers of a log up to the first duplicate, and the error there.
    fn from_log(log: &TunnelLog) -> (Self, Option<LogError>) {
        if (0..).zip(&log.rows).all(|(place, row)| row.uid == place) {
            return (Numbers::Plain(log.rows.len() as u64), None);
        }
        let mut places = BTreeMap::new();
        for (place, row) in (0_u32..).zip(&log.rows) {
            if let Some(other) = places.get(&row.uid) {
                let problem = format!(
                    "packet {} is sent again; it was sent in line {}",
                    row.uid,
                    other + 2
                );
                let error = LogError::new(&log.file, u64::from(place) + 2, problem);
                return (Numbers::Listed(places), Some(error));
            }
            places.insert(row.uid, place);
        }
        (Numbers::Listed(places), None)
    }

    fn place(&self, uid: u64) -> Option<u32> {
        match self {
            Numbers::Plain(count) => (uid < *count).then_some(uid as u32),
            Numbers::Listed(places) => places.get(&uid).copied(),
        }
    }
}
