//! Reads logs of any QUIC stack: one JSON document, JSON text sequences, or a line per event.
//!
//! Events of all drafts are recognised by the last part of their name (`transport:packet_sent`, `quic:packet_sent`), in
//! objects or in lists of fields. Only measured events are kept, by connection and packet-number space. Unreadable
//! parts are counted by kind, and do not affect others.

use super::clock::{self, Clock, text_of};
use super::connection::{Connection, Connections};
use super::event::{Data, Event, Kind, Size, Space, event_fields};
use super::log::{Log, Matters, UnreadKind, log_of};
use super::text::{FileText, TraceText, split};
use crate::FormatError;
use std::collections::BTreeMap;

/// Number of kinds of events that are counted separately.
const NAMED_KINDS: usize = 4;
/// Without its frames the acknowledgements of a packet are not known.
const WITHOUT_FRAMES: &str = "received packets whose frames are not logged";
/// Number of first events whose times are examined if they are declared to be relative.
const DOUBTED: usize = 1_000;
/// Maximum number of event names that are distinguished.
const MAX_NAMES: usize = 1_000;

/// Reads all traces of a file: one log per connection.
///
/// # Errors
/// A file that is not a qlog, has no events, or none that can be read.
pub fn read(bytes: &[u8]) -> Result<Vec<Log>, FormatError> {
    if bytes.iter().take(64).any(|&byte| byte == 0) {
        return Err(FormatError::input(
            "the file is not text, so it is not a qlog",
        ));
    }
    let file = split(bytes);
    let version = file
        .traces
        .iter()
        .find_map(|trace| clock::version_of(&trace.heads));
    let Some(version) = version else {
        let problem = if file.traces.is_empty() && file.broken + u64::from(file.cut) > 0 {
            "it is not JSON, so it is not a qlog or damaged"
        } else if file.traces.is_empty() {
            "the qlog is empty"
        } else {
            "it names neither 'qlog_version' nor 'file_schema', so it is not a qlog"
        };
        return Err(FormatError::input(problem));
    };
    let mut logs = Vec::new();
    let (mut events, mut readable) = (0, 0);
    for (index, trace) in (0..).zip(&file.traces) {
        let mut reader = Reader::new(&trace.heads, &version);
        reader.doubt_differences(&trace.events);
        for text in &trace.events {
            reader.read(text);
        }
        events += trace.events.len();
        readable += reader.readable;
        if index == 0 {
            reader.note_file(&file);
        }
        logs.extend(reader.finish(index, trace));
    }
    if logs.is_empty() {
        let unknown = if clock::is_known(&version) {
            String::new()
        } else {
            format!(
                "; its version is '{version}', and supported versions are draft-00 to -02, 0.3, 0.4 and later"
            )
        };
        let problem = match (events, readable) {
            (0, _) if file.cut => "the qlog is cut off before its first event".to_owned(),
            (0, _) => "the qlog has no events".to_owned(),
            (all, 0) => format!("none of its {all} events can be read"),
            (all, _) => {
                format!(
                    "none of its {all} events is about packets or metrics, so it cannot be measured"
                )
            }
        };
        return Err(FormatError::input(format!("{problem}{unknown}")));
    }
    Ok(logs)
}

struct Reader {
    clock: Clock,
    version: String,
    fields: Vec<String>,
    /// The name of the connection of all events that name none.
    group: Option<String>,
    connections: Connections,
    readable: usize,
    /// True if acknowledgements have separate events, which take precedence over frames.
    acked_events: bool,
    unread: BTreeMap<&'static str, (u64, Matters)>,
    others: BTreeMap<String, u64>,
}

impl Reader {
    fn new(heads: &[super::text::Members], version: &str) -> Self {
        let common = |key: &str| text_of(heads, &["common_fields", key]);
        Reader {
            clock: Clock::new(heads),
            version: clock::version_of(heads).unwrap_or_else(|| version.to_owned()),
            fields: event_fields(heads),
            group: common("group_id")
                .or_else(|| common("ODCID"))
                .or_else(|| common("odcid")),
            connections: Connections::default(),
            readable: 0,
            acked_events: false,
            unread: BTreeMap::new(),
            others: BTreeMap::new(),
        }
    }

    fn not_read(&mut self, kind: &'static str, matters: Matters) {
        let entry = self.unread.entry(kind).or_insert((0, matters));
        entry.0 += 1;
    }

    /// Reads times that only increase as times since the start, although the trace declares them as relative: relative
    /// times rise and fall.
    fn doubt_differences(&mut self, events: &[&[u8]]) {
        if !self.clock.is_delta() {
            return;
        }
        let first = events
            .iter()
            .take(DOUBTED)
            .filter_map(|text| Event::read(text, &self.fields));
        let times: Vec<f64> = first.filter_map(|event| event.time.0).collect();
        let mut steps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let rising = steps.clone().filter(|&step| step > 0.0).count();
        if times.len() > 20 && steps.all(|step| step >= 0.0) && 2 * rising > times.len() {
            self.clock.count_from_start();
            let kind = "traces whose times are declared as relative but only increase, so that they were read as times since the start";
            self.not_read(kind, Matters::Always);
        }
    }

    fn note_file(&mut self, file: &FileText<'_>) {
        if file.broken > 0 {
            self.unread
                .insert("records that are not JSON", (file.broken, Matters::Always));
        }
        if file.cut {
            self.not_read("records that the end of the file cuts off", Matters::Never);
        }
        if file.around {
            self.not_read("pieces of text around the log", Matters::Never);
        }
    }

    fn read(&mut self, text: &[u8]) {
        let Some(event) = Event::read(text, &self.fields) else {
            self.not_read("events that are not JSON objects", Matters::Always);
            return;
        };
        self.readable += 1;
        let name = event.short_name();
        let kind = Event::kind(&name);
        let time = self.clock.time(event.time.0, event.is_delta());
        if kind == Kind::Other {
            if self.others.len() < MAX_NAMES || self.others.contains_key(&name) {
                *self.others.entry(name).or_default() += 1;
            }
            return;
        }
        let Some(ns) = time else {
            self.not_read("events without a time", Matters::Always);
            return;
        };
        let Some(data) = event.data.known() else {
            self.not_read("events without data", Matters::Always);
            return;
        };
        let place = self.place(&event, kind, data);
        match kind {
            Kind::Sent => self.sent(place, ns, data),
            Kind::Received => self.received(place, ns, data),
            Kind::Acked => self.acked(place, ns, data),
            Kind::Lost => {
                let own = &mut self.connections.all[place];
                own.lost_ns.push(ns);
                let count = data
                    .lost_packets
                    .0
                    .filter(|count| (1.0..1e9).contains(count));
                own.lost_packets.push(count.map_or(1, |count| count as u64));
            }
            Kind::Metrics => self.metrics(place, ns, data),
            Kind::Other => {}
        }
    }

    /// The connection of an event.
    fn place(&mut self, event: &Event, kind: Kind, data: &Data) -> usize {
        match (event.group(), &self.group) {
            (Some(group), _) => self.connections.named(group),
            (None, Some(common)) => self.connections.named(&common.clone()),
            (None, None) if matches!(kind, Kind::Sent | Kind::Received) => {
                self.connections.by_ids(kind == Kind::Sent, data)
            }
            (None, None) => self.connections.unnamed(),
        }
    }

    fn size(&mut self, data: &Data) -> Size {
        let size = data.size();
        match size {
            Size::Known(_) => {}
            Size::Payload(_) => self.not_read(
                "packets for which only the payload's size is logged",
                Matters::Always,
            ),
            Size::Unknown => self.not_read("packets without a size", Matters::Always),
        }
        size
    }

    fn sent(&mut self, place: usize, ns: i64, data: &Data) {
        let size = self.size(data);
        if data.number().is_none() && data.space() != Space::None {
            self.not_read("packets without a number", Matters::Sender);
        }
        self.connections.all[place]
            .sent
            .push(ns, size, data.space(), data.number());
    }

    fn received(&mut self, place: usize, ns: i64, data: &Data) {
        let size = self.size(data);
        self.connections.all[place]
            .received
            .push(ns, size, data.space(), data.number());
        let Some(frames) = data.frames.0.known() else {
            self.not_read(WITHOUT_FRAMES, Matters::Sender);
            return;
        };
        for frame in frames {
            let Some(frame) = frame.known() else {
                self.not_read("frames that are not objects", Matters::Sender);
                continue;
            };
            if !frame.is_ack() {
                continue;
            }
            let Some(ranges) = frame.acked_ranges.0.known() else {
                self.not_read("acknowledgements without ranges", Matters::Sender);
                continue;
            };
            for range in ranges {
                match range.0 {
                    Some(range) => self.acknowledged(place, data.space(), range, ns),
                    None => self.not_read(
                        "ranges of acknowledgements that are not numbers",
                        Matters::Sender,
                    ),
                }
            }
        }
    }

    fn acked(&mut self, place: usize, ns: i64, data: &Data) {
        self.acked_events = true;
        for &number in data.packet_numbers.0.known().into_iter().flatten() {
            match super::lenient::packet_number(number) {
                Some(number) => self.acknowledged(place, data.space(), (number, number), ns),
                None => self.not_read(
                    "ranges of acknowledgements that are not numbers",
                    Matters::Sender,
                ),
            }
        }
    }

    fn acknowledged(&mut self, place: usize, space: Space, (first, last): (u64, u64), ns: i64) {
        if let Some(acked) = self.connections.all[place].acked.get_mut(space as usize) {
            acked.insert(first, last, ns);
        }
    }

    fn metrics(&mut self, place: usize, ns: i64, data: &Data) {
        let unit = self.clock.unit;
        let samples = &mut self.connections.all[place].samples;
        samples.ns.push(ns);
        let numbers = [
            data.congestion_window,
            data.bytes_in_flight,
            data.ssthresh,
            data.pacing_rate,
        ];
        let times = [data.latest_rtt, data.smoothed_rtt, data.min_rtt];
        let numbers = numbers.map(|number| number.0.unwrap_or(f64::NAN));
        let times = times.map(|number| number.0.unwrap_or(f64::NAN) * unit);
        for (column, value) in samples
            .values
            .iter_mut()
            .zip(numbers.into_iter().chain(times))
        {
            column.push(value);
        }
    }

    /// The logs of the connections that were measured. Unread parts are reported with the first.
    fn finish(mut self, index: u32, trace: &TraceText<'_>) -> Vec<Log> {
        let strangers = self.connections.settle();
        if strangers > 0 {
            self.unread.insert(
                "packets whose connection is not logged",
                (strangers, Matters::Always),
            );
        }
        let all = std::mem::take(&mut self.connections.all);
        let measured = all.into_iter().filter(Connection::is_measured);
        let mut logs: Vec<Log> = measured.map(log_of).collect();
        for log in &mut logs {
            log.version.clone_from(&self.version);
            log.title = text_of(&trace.heads, &["title"]).unwrap_or_default();
            log.vantage_point = text_of(&trace.heads, &["vantage_point", "type"])
                .unwrap_or_default()
                .to_lowercase();
            log.trace = index;
            if log.group.is_empty() {
                log.group = self.group.clone().unwrap_or_default();
            }
        }
        if let Some(first) = logs.first_mut() {
            first.unread = self.unread_kinds();
        }
        logs
    }

    fn unread_kinds(mut self) -> Vec<UnreadKind> {
        if self.acked_events {
            self.unread.remove(WITHOUT_FRAMES);
        }
        let told = self
            .unread
            .into_iter()
            .map(|(kind, (count, matters))| UnreadKind {
                kind: kind.to_owned(),
                count,
                matters,
            });
        let mut all: Vec<UnreadKind> = told.collect();
        if !clock::is_known(&self.version) {
            all.push(UnreadKind {
                kind: format!("versions called '{}', read like 0.4,", self.version),
                count: 1,
                matters: Matters::Always,
            });
        }
        if !self.others.is_empty() {
            let mut names: Vec<(&String, &u64)> = self.others.iter().collect();
            names.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
            let count = self.others.values().sum();
            let mut words: Vec<String> = (names.iter().take(NAMED_KINDS))
                .map(|(name, _)| {
                    if name.is_empty() {
                        "without a name".into()
                    } else {
                        (*name).clone()
                    }
                })
                .collect();
            if names.len() > NAMED_KINDS {
                words.push(format!("{} more", names.len() - NAMED_KINDS));
            }
            let kind = format!("events of other kinds ({})", words.join(", "));
            all.push(UnreadKind {
                kind,
                count,
                matters: Matters::Never,
            });
        }
        all
    }
}
