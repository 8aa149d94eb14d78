//! Reads logs of any QUIC stack: one JSON document, JSON text sequences, or a line per event.
//!
//! Of versions from draft-01 on the events are known by the last part of their name (`transport:packet_sent`,
//! `quic:packet_sent`), in objects or in lists of fields. Only what is measured is kept.

use super::SEPARATOR;
use crate::FormatError;
use serde::Deserialize;
use serde_json::Value;

/// Events of one trace, as columns. Times are nanoseconds since the reference of the trace, or since 1970 where they are
/// absolute; NaN stands for what an event does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Version of the format.
    pub version: String,
    /// Title of the trace.
    pub title: String,
    /// `client`, `server`, or what else the trace says.
    pub vantage_point: String,
    /// Packets sent: time.
    pub sent_ns: Vec<i64>,
    /// Their numbers, -1 if they have none.
    pub sent_number: Vec<i64>,
    /// Their sizes in bytes; 0 if not told.
    pub sent_bytes: Vec<u32>,
    /// Packets received: time.
    pub received_ns: Vec<i64>,
    /// Their sizes in bytes.
    pub received_bytes: Vec<u32>,
    /// Packets acknowledged: time.
    pub acked_ns: Vec<i64>,
    /// Their numbers.
    pub acked_number: Vec<i64>,
    /// Packets lost: time.
    pub lost_ns: Vec<i64>,
    /// Their numbers.
    pub lost_number: Vec<i64>,
    /// Metrics: time.
    pub metrics_ns: Vec<i64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Vec<f64>,
    /// Bytes in flight.
    pub inflight_bytes: Vec<f64>,
    /// Slow-start threshold, bytes.
    pub ssthresh_bytes: Vec<f64>,
    /// Pacing rate, bit/s.
    pub pacing_bps: Vec<f64>,
    /// Latest round-trip time.
    pub rtt_ns: Vec<f64>,
    /// Smoothed round-trip time.
    pub srtt_ns: Vec<f64>,
    /// Smallest round-trip time.
    pub min_rtt_ns: Vec<f64>,
    /// Events of all kinds.
    pub events: u64,
    /// Sent packets in other packet-number spaces than that of application data.
    pub handshake: u64,
}

/// Numbers of a range beyond this are not believed.
const MAX_RANGE: i64 = 1 << 24;

/// Reads all traces of a file.
///
/// # Errors
/// A file that is no qlog, is damaged, or has no events.
pub fn read(bytes: &[u8]) -> Result<Vec<Log>, FormatError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| FormatError::input("the file is no text, so it is no qlog"))?;
    let start = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    let mut logs = if start.as_bytes().first() == Some(&SEPARATOR) {
        vec![sequence(start.split(SEPARATOR as char))?]
    } else if one_per_line(start) {
        vec![sequence(start.lines())?]
    } else {
        whole(start)?
    };
    logs.retain(|log| log.events > 0);
    if logs.is_empty() {
        return Err(FormatError::input("the qlog has no events"));
    }
    Ok(logs)
}

/// True if the first line is a document of its own, and another follows.
fn one_per_line(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map(serde_json::from_str::<Value>);
    matches!(first, Some(Ok(Value::Object(_)))) && lines.next().is_some()
}

fn wrong(place: &str, error: &serde_json::Error) -> FormatError {
    FormatError::input(format!(
        "{place} is no JSON ({error}); the file is damaged or no qlog"
    ))
}

/// The head of a file, of a trace, or of both.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    qlog_version: Option<String>,
    file_schema: Option<String>,
    title: Option<String>,
    vantage_point: VantagePoint,
    common_fields: CommonFields,
    configuration: Configuration,
    trace: Option<Box<Head>>,
    event_fields: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VantagePoint {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CommonFields {
    time_format: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Configuration {
    time_units: Option<String>,
}

fn sequence<'a>(records: impl Iterator<Item = &'a str>) -> Result<Log, FormatError> {
    let mut records = (1..)
        .zip(records)
        .filter(|(_, text)| !text.trim().is_empty());
    let (_, first) = records
        .next()
        .ok_or_else(|| FormatError::input("the qlog is empty"))?;
    let head: Head = serde_json::from_str(first).map_err(|e| wrong("its first record", &e))?;
    let mut reader = Reader::new(&head, None)?;
    let mut last = None;
    for (number, text) in records {
        if let Some(error) = last.take() {
            return Err(error);
        }
        match serde_json::from_str::<Event>(text) {
            Ok(event) => reader.event(&event),
            // A program that was killed leaves half a record at the end.
            Err(error) => last = Some(wrong(&format!("record {number}"), &error)),
        }
    }
    match last {
        Some(error) if reader.log.events == 0 => Err(error),
        _ => Ok(reader.log),
    }
}

#[derive(Deserialize)]
struct Trace {
    #[serde(flatten)]
    head: Head,
    #[serde(default)]
    events: Vec<Value>,
}

#[derive(Deserialize)]
struct File {
    #[serde(flatten)]
    head: Head,
    #[serde(default)]
    traces: Vec<Trace>,
}

fn whole(text: &str) -> Result<Vec<Log>, FormatError> {
    let file: File = serde_json::from_str(text).map_err(|e| wrong("it", &e))?;
    Reader::new(&file.head, None)?;
    let mut logs = Vec::new();
    for trace in &file.traces {
        let mut reader = Reader::new(&trace.head, Some(&file.head))?;
        for event in &trace.events {
            match event {
                Value::Array(values) => reader.listed(values, &trace.head.event_fields),
                other => {
                    if let Ok(event) = Event::deserialize(other) {
                        reader.event(&event);
                    }
                }
            }
        }
        logs.push(reader.log);
    }
    Ok(logs)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    time: Number,
    name: String,
    data: Data,
}

/// A number, or text that holds one (as draft-01 and -02 wrote large numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Number(match Value::deserialize(deserializer)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    header: PacketHeader,
    raw: Raw,
    frames: Vec<Frame>,
    packet_type: Option<String>,
    packet_number: Number,
    packet_size: Number,
    congestion_window: Number,
    cwnd: Number,
    bytes_in_flight: Number,
    ssthresh: Number,
    pacing_rate: Number,
    latest_rtt: Number,
    smoothed_rtt: Number,
    min_rtt: Number,
}

// The names are the format's.
#[allow(clippy::struct_field_names)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PacketHeader {
    packet_type: Option<String>,
    packet_number: Number,
    packet_size: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raw {
    length: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frame {
    frame_type: Option<Value>,
    acked_ranges: Vec<Vec<Number>>,
}

struct Reader {
    log: Log,
    /// Nanoseconds of a unit of time.
    unit: f64,
    /// Times are differences to the event before.
    delta: bool,
    now: f64,
}

impl Reader {
    fn new(head: &Head, file: Option<&Head>) -> Result<Self, FormatError> {
        let trace = head.trace.as_deref().unwrap_or(head);
        let heads = [Some(trace), Some(head), file];
        let of = |pick: fn(&Head) -> Option<&String>| {
            heads.iter().flatten().find_map(|head| pick(head)).cloned()
        };
        let version = of(|head| head.qlog_version.as_ref().or(head.file_schema.as_ref()));
        let Some(version) = version else {
            let problem = "it names neither 'qlog_version' nor 'file_schema', so it is no qlog";
            return Err(FormatError::input(problem));
        };
        let format = of(|head| head.common_fields.time_format.as_ref()).unwrap_or_default();
        let units = of(|head| head.configuration.time_units.as_ref());
        Ok(Reader {
            log: Log {
                version,
                title: of(|head| head.title.as_ref()).unwrap_or_default(),
                vantage_point: of(|head| head.vantage_point.kind.as_ref()).unwrap_or_default(),
                ..Log::default()
            },
            unit: if units.as_deref() == Some("us") {
                1e3
            } else {
                1e6
            },
            delta: format.contains("delta") || format == "relative_to_previous_event",
            now: 0.0,
        })
    }

    /// An event of draft-01 and before: values in the order of `fields`.
    fn listed(&mut self, values: &[Value], fields: &[String]) {
        let mut event = Event::default();
        for (field, value) in fields.iter().zip(values) {
            match (field.as_str(), value) {
                ("time" | "relative_time" | "delta_time", value) => {
                    event.time = Number::deserialize(value).unwrap_or_default();
                    self.delta = field == "delta_time";
                }
                ("event" | "event_type" | "type" | "name", Value::String(name)) => {
                    event.name.clone_from(name);
                }
                ("data", value) => event.data = Data::deserialize(value).unwrap_or_default(),
                _ => {}
            }
        }
        self.event(&event);
    }

    fn event(&mut self, event: &Event) {
        let Some(time) = event.time.0.filter(|time| time.is_finite()) else {
            return;
        };
        self.now = if self.delta { self.now + time } else { time };
        let ns = (self.now * self.unit).round() as i64;
        self.log.events += 1;
        let name = event.name.rsplit(':').next().unwrap_or_default();
        let name = name.strip_prefix("recovery_").unwrap_or(name);
        let data = &event.data;
        match name {
            "packet_sent" => self.sent(ns, data),
            "packet_received" => {
                self.log.received_ns.push(ns);
                self.log.received_bytes.push(size(data));
                self.acknowledged(ns, data);
            }
            "packets_acked" => self.acknowledged(ns, data),
            "packet_lost" if is_application(data) => {
                self.log.lost_ns.push(ns);
                self.log.lost_number.push(number(data));
            }
            "metrics_updated" | "metric_update" => self.metrics(ns, data),
            _ => {}
        }
    }

    fn sent(&mut self, ns: i64, data: &Data) {
        let application = is_application(data);
        self.log.handshake += u64::from(!application);
        self.log.sent_ns.push(ns);
        self.log
            .sent_number
            .push(if application { number(data) } else { -1 });
        self.log.sent_bytes.push(size(data));
    }

    fn acknowledged(&mut self, ns: i64, data: &Data) {
        if !is_application(data) {
            return;
        }
        for frame in &data.frames {
            if frame.frame_type.as_ref().is_none_or(|kind| kind != "ack") {
                continue;
            }
            for range in &frame.acked_ranges {
                let ends: Vec<f64> = range.iter().filter_map(|end| end.0).collect();
                let (Some(&from), Some(&to)) = (ends.first(), ends.last()) else {
                    continue;
                };
                let (from, to) = (from.min(to) as i64, from.max(to) as i64);
                if (0..MAX_RANGE).contains(&(to - from)) {
                    self.log
                        .acked_ns
                        .extend(std::iter::repeat_n(ns, (to - from + 1) as usize));
                    self.log.acked_number.extend(from..=to);
                }
            }
        }
    }

    fn metrics(&mut self, ns: i64, data: &Data) {
        let unit = self.unit;
        let log = &mut self.log;
        let plain = |number: Number| number.0.unwrap_or(f64::NAN);
        let time = |number: Number| number.0.unwrap_or(f64::NAN) * unit;
        log.metrics_ns.push(ns);
        let window = if data.congestion_window.0.is_some() {
            data.congestion_window
        } else {
            data.cwnd
        };
        log.cwnd_bytes.push(plain(window));
        log.inflight_bytes.push(plain(data.bytes_in_flight));
        log.ssthresh_bytes.push(plain(data.ssthresh));
        log.pacing_bps.push(plain(data.pacing_rate));
        log.rtt_ns.push(time(data.latest_rtt));
        log.srtt_ns.push(time(data.smoothed_rtt));
        log.min_rtt_ns.push(time(data.min_rtt));
    }
}

/// True unless a packet is known to belong to the handshake.
fn is_application(data: &Data) -> bool {
    let kind = data
        .header
        .packet_type
        .as_ref()
        .or(data.packet_type.as_ref());
    kind.is_none_or(|kind| {
        ["1rtt", "onertt", "0rtt", "zerortt"].contains(&kind.to_lowercase().as_str())
    })
}

fn number(data: &Data) -> i64 {
    let number = data.header.packet_number.0.or(data.packet_number.0);
    number.map_or(-1, |number| number as i64)
}

fn size(data: &Data) -> u32 {
    let sizes = [data.raw.length, data.header.packet_size, data.packet_size];
    sizes.iter().find_map(|size| size.0).unwrap_or(0.0) as u32
}
