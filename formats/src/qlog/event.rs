//! Events of all drafts and their names, in objects or in lists of fields.

use super::lenient::{Field, List, Number, NumberRange, Text};
use super::text::{Members, elements};
use serde::Deserialize;

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub time: Number,
    time_format: Text,
    name: Text,
    // Draft-00 and -01 wrote the name in two parts.
    #[serde(rename = "event", alias = "event_type", alias = "type")]
    old_name: Text,
    group_id: Text,
    #[serde(rename = "ODCID", alias = "odcid")]
    odcid: Text,
    pub data: Field<Data>,
    /// Whether the time is relative, overriding the trace.
    #[serde(skip)]
    pub delta: Option<bool>,
}

/// Its data, for all kinds of events that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Data {
    pub header: Field<PacketHeader>,
    pub raw: Field<Raw>,
    pub frames: List<Field<Frame>>,
    packet_type: Text,
    packet_number_space: Text,
    packet_number: Number,
    packet_size: Number,
    /// Of `packets_acked`.
    pub packet_numbers: List<Number>,
    /// Of `packets_lost`.
    pub lost_packets: Number,
    #[serde(alias = "cwnd", alias = "current_cwnd")]
    pub congestion_window: Number,
    #[serde(alias = "current_bytes_in_flight")]
    pub bytes_in_flight: Number,
    pub ssthresh: Number,
    pub pacing_rate: Number,
    pub latest_rtt: Number,
    pub smoothed_rtt: Number,
    pub min_rtt: Number,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PacketHeader {
    packet_type: Text,
    packet_number: Number,
    packet_size: Number,
    pub scid: Text,
    pub dcid: Text,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Raw {
    length: Number,
    payload_length: Number,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Frame {
    #[serde(rename = "frame_type")]
    kind: Text,
    #[serde(rename = "frame_type_value")]
    number: Number,
    pub acked_ranges: List<NumberRange>,
    #[serde(alias = "new_connection_id")]
    pub connection_id: Text,
}

/// Packet-number spaces (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    Initial,
    Handshake,
    Application,
    /// Retry, Version Negotiation: packets without a number.
    None,
}

/// Events that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sent,
    Received,
    Acked,
    Lost,
    Metrics,
    Other,
}

/// The size of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Bytes.
    Known(u32),
    /// Bytes of the payload alone.
    Payload(u32),
    Unknown,
}

impl Event {
    /// Reads one event; `None` if the text is not JSON, or neither an object nor a list with known fields.
    pub(super) fn read(text: &[u8], fields: &[String]) -> Option<Event> {
        if text.first() == Some(&b'[') {
            return Self::from_list(text, fields);
        }
        match serde_json::from_slice::<Field<Event>>(text) {
            Ok(Field::Known(event)) => Some(event),
            Ok(_) => None,
            // Invalid UTF-8 within a string, or a duplicate key.
            Err(_) => {
                let lossy = String::from_utf8_lossy(text);
                let value: serde_json::Value = serde_json::from_str(&lossy).ok()?;
                Event::deserialize(value).ok()
            }
        }
    }

    /// An event of draft-01 and before: values in the order of `fields`.
    fn from_list(text: &[u8], fields: &[String]) -> Option<Event> {
        let mut event = Event::default();
        let mut known = false;
        for (field, value) in fields.iter().zip(elements(text)) {
            let text = || serde_json::from_slice::<Text>(value).unwrap_or_default();
            match field.to_lowercase().as_str() {
                name @ ("time" | "relative_time" | "delta_time") => {
                    event.time = serde_json::from_slice(value).unwrap_or_default();
                    event.delta = Some(name == "delta_time");
                    known = true;
                }
                "event" | "event_type" | "type" => event.old_name = text(),
                "name" => event.name = text(),
                "group_id" => event.group_id = text(),
                "odcid" => event.odcid = text(),
                "data" => event.data = serde_json::from_slice(value).unwrap_or(Field::Odd),
                _ => {}
            }
        }
        known.then_some(event)
    }

    /// The last part of its name, in lower case.
    pub(super) fn short_name(&self) -> String {
        let name = self
            .name
            .0
            .as_deref()
            .or(self.old_name.0.as_deref())
            .unwrap_or_default();
        let name = name.rsplit(':').next().unwrap_or_default().to_lowercase();
        name.strip_prefix("recovery_")
            .map(str::to_owned)
            .unwrap_or(name)
    }

    /// The kind of the event of a name.
    pub(super) fn kind(name: &str) -> Kind {
        match name {
            "packet_sent" => Kind::Sent,
            "packet_received" => Kind::Received,
            "packets_acked" => Kind::Acked,
            "packet_lost" | "packets_lost" => Kind::Lost,
            "metrics_updated"
            | "metric_update"
            | "metrics_update"
            | "congestion_metric_update"
            | "cwnd_update"
            | "bytes_in_flight_update"
            | "rtt_update" => Kind::Metrics,
            _ => Kind::Other,
        }
    }

    /// The connection that it names.
    pub(super) fn group(&self) -> Option<&str> {
        self.group_id.0.as_deref().or(self.odcid.0.as_deref())
    }

    /// Whether its time is relative to the previous event; `None` if it does not say.
    pub(super) fn is_delta(&self) -> Option<bool> {
        let own = self.time_format.0.as_deref().map(is_delta);
        own.or(self.delta)
    }
}

/// True for relative time formats.
pub(super) fn is_delta(format: &str) -> bool {
    format == "delta" || format == "relative_to_previous_event"
}

impl Data {
    fn header(&self) -> PacketHeader {
        self.header.known().cloned().unwrap_or_default()
    }

    /// The packet-number space; application data by default.
    pub(super) fn space(&self) -> Space {
        let header = self.header.known();
        let kind = header.and_then(|header| header.packet_type.0.as_deref());
        let kind = kind
            .or(self.packet_type.0.as_deref())
            .or(self.packet_number_space.0.as_deref());
        let kind = kind.unwrap_or_default();
        let is = |names: &[&str]| names.iter().any(|name| kind.eq_ignore_ascii_case(name));
        if is(&["initial"]) {
            Space::Initial
        } else if is(&["handshake"]) {
            Space::Handshake
        } else if is(&[
            "retry",
            "version_negotiation",
            "versionnegotiation",
            "stateless_reset",
        ]) {
            Space::None
        } else {
            Space::Application
        }
    }

    /// The packet number.
    pub(super) fn number(&self) -> Option<u64> {
        let header = self.header.known().map(|header| header.packet_number);
        let number = header
            .filter(|number| number.0.is_some())
            .unwrap_or(self.packet_number);
        super::lenient::packet_number(number)
    }

    /// The size of the packet.
    pub(super) fn size(&self) -> Size {
        let header = self
            .header
            .known()
            .map(|header| header.packet_size)
            .unwrap_or_default();
        let (length, payload) = (self.raw.known())
            .map(|raw| (raw.length, raw.payload_length))
            .unwrap_or_default();
        let believable = |size: Number| {
            let size = size.0.filter(|size| (1.0..65_536.0).contains(size))?;
            Some(size as u32)
        };
        let sizes = [length, header, self.packet_size];
        match (sizes.into_iter().find_map(believable), believable(payload)) {
            (Some(size), _) => Size::Known(size),
            (None, Some(size)) => Size::Payload(size),
            (None, None) => Size::Unknown,
        }
    }

    /// Connection IDs of the header: source and destination.
    pub(super) fn ids(&self) -> [Option<String>; 2] {
        let header = self.header();
        [header.scid.0, header.dcid.0].map(|id| id.filter(|id| !id.is_empty()))
    }
}

impl Frame {
    /// True for ACK and ACK_ECN.
    pub(super) fn is_ack(&self) -> bool {
        let name = self.kind.0.as_deref().unwrap_or_default();
        let named = ["ack", "ack_ecn", "2", "3"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        named || matches!(self.number.0, Some(2.0 | 3.0))
    }
}

/// The names of the fields of events in lists.
pub(super) fn event_fields(heads: &[Members]) -> Vec<String> {
    let fields = heads
        .iter()
        .find_map(|head| head.get("event_fields")?.as_array());
    let names = fields
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str());
    names.map(str::to_owned).collect()
}
