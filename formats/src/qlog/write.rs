//! Writes the events at the sender of one flow.
//!
//! - Packets are numbered in the order in which its data packets were sent. An acknowledgement covers the packets that
//!   had arrived since the previous one that reached the sender.
//! - A packet counts as lost when the sender receives an acknowledgement of one that was sent at least three packets
//!   later (RFC 9002, section 6.1.1); the record does not contain when the scheme detected the loss.
//! - Metrics are the sampled states.

use super::SEPARATOR;
use crate::packets::Packets;
use crate::streams::{Flow, HEADERS, IP_UDP, Notices, Streams, THRESHOLD};
use crate::{FormatError, Traffic};
use narrows_record::{Fate, StateRow};
use serde_json::{Value, json};
use std::io::Write;

/// Bytes that are buffered before they are written.
const BLOCK: usize = 1 << 20;
/// Maximum number of ranges written per acknowledgement.
const MAX_RANGES: usize = 64;

/// Facts for the header of the file.
#[derive(Clone, Debug)]
pub struct Header {
    /// Version of the format, `0.4` or `0.3`.
    pub version: String,
    /// Name of the run.
    pub title: String,
    /// Further description.
    pub description: String,
    /// Time zero, since 1970.
    pub base_ns: u64,
}

/// Counts of what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets sent.
    pub sent: u64,
    /// Packets that were acknowledged.
    pub acknowledged: u64,
    /// Packets that were declared lost.
    pub lost: u64,
    /// Samples of the states.
    pub metrics: u64,
}

/// An event of the sender.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An acknowledgement arrived: its index, and the range of arrivals that it covers.
    Received { place: u32, from: u32, to: u32 },
    /// A packet counts as lost: its index and number.
    Lost { place: u32, number: u32 },
    /// A data packet was sent: its index and number.
    Sent { place: u32, number: u32 },
    /// The states were sampled: index of the row.
    Sampled(u32),
}

impl Event {
    /// At the same time, arrivals precede departures, and those precede samples.
    fn rank(&self) -> u8 {
        match self {
            Event::Received { .. } => 0,
            Event::Lost { .. } => 1,
            Event::Sent { .. } => 2,
            Event::Sampled(_) => 3,
        }
    }
}

/// Writes the log of flow `number`; `None` if the flow does not exist.
///
/// # Errors
/// A file that cannot be written.
pub fn write(
    traffic: &Traffic,
    number: u16,
    header: &Header,
    out: &mut impl Write,
) -> Result<Option<Written>, FormatError> {
    let Some(flow) = traffic.streams.flows.get(&number) else {
        return Ok(None);
    };
    let states = traffic.states.iter().filter(|row| row.flow == number);
    let states: Vec<&StateRow> = states.collect();
    let mut writer = Writer {
        out,
        buffer: Vec::with_capacity(BLOCK + 4096),
        packets: &traffic.packets,
        streams: &traffic.streams,
        written: Written::default(),
    };
    writer.head(header, flow)?;
    writer.events(flow, &states)?;
    writer.flush()?;
    Ok(Some(writer.written))
}

struct Writer<'a, W: Write> {
    out: &'a mut W,
    buffer: Vec<u8>,
    packets: &'a Packets,
    streams: &'a Streams,
    written: Written,
}

impl<W: Write> Writer<'_, W> {
    fn head(&mut self, header: &Header, flow: &Flow) -> Result<(), FormatError> {
        let transport = if flow.kind == "native" || !flow.reliable {
            "UDP"
        } else {
            "TCP"
        };
        let file = json!({
            "qlog_version": header.version, "qlog_format": "JSON-SEQ",
            "title": header.title, "description": header.description,
            "trace": {
                "title": format!("{}, flow {}: {}", header.title, flow.number, flow.scheme),
                "description": "the sender of the flow's data",
                "vantage_point": {"name": "sender", "type": "client"},
                "common_fields": {
                    "group_id": format!("flow {}", flow.number), "protocol_type": [transport],
                    "time_format": "relative", "reference_time": header.base_ns as f64 / 1e6,
                },
            },
        });
        self.record(&file)?;
        let started = flow.places.iter().flatten();
        let started = started
            .map(|&place| self.packets.all[place as usize].sent_ns)
            .min();
        let data = json!({
            "ip_version": "ipv4", "src_ip": "10.77.0.1", "dst_ip": "10.77.0.2", "protocol": transport,
            "src_port": crate::pcapng::client_port(flow.number), "dst_port": crate::pcapng::server_port(flow.number),
        });
        self.event(
            started.unwrap_or(0),
            "connectivity:connection_started",
            &data,
        )?;
        let data = json!({"reordering_threshold": THRESHOLD});
        self.event(started.unwrap_or(0), "recovery:parameters_set", &data)
    }

    fn events(&mut self, flow: &Flow, states: &[&StateRow]) -> Result<(), FormatError> {
        let all = &self.packets.all;
        let data = flow.direction as usize;
        let sent = &flow.places[data];
        let mut arrivals: Vec<(u64, u32)> = (0_u32..)
            .zip(sent)
            .filter(|(_, place)| all[**place as usize].is_sound())
            .map(|(number, &place)| (all[place as usize].sound_ns, number))
            .collect();
        arrivals.sort_unstable();
        let mut events: Vec<(u64, u8, Event)> = Vec::new();
        let mut covered = 0;
        for &place in &flow.places[1 - data] {
            let packet = &all[place as usize];
            if !packet.is_sound() {
                continue;
            }
            let to = arrivals.partition_point(|arrival| arrival.0 <= packet.sent_ns) as u32;
            let event = Event::Received {
                place,
                from: covered,
                to: to.max(covered),
            };
            covered = to.max(covered);
            events.push((packet.sound_ns, event.rank(), event));
        }
        let notices = Notices::new(self.packets, sent, &flow.places[1 - data]);
        for (number, &place) in (0..).zip(sent) {
            let packet = &all[place as usize];
            let event = Event::Sent { place, number };
            events.push((packet.sent_ns, event.rank(), event));
            let noticed = notices.time_for_packet(number);
            if packet.fate != Fate::InFlight && !packet.is_sound() && noticed < u64::MAX {
                let event = Event::Lost { place, number };
                events.push((noticed, event.rank(), event));
            }
        }
        for (index, row) in (0..).zip(states) {
            let event = Event::Sampled(index);
            events.push((row.time_ns, event.rank(), event));
        }
        events.sort_by_key(|event| (event.0, event.1));
        let mut mode: Option<&str> = None;
        for (time, _, event) in events {
            match event {
                Event::Sent { place, number } => self.sent(time, flow, place, number)?,
                Event::Lost { place, number } => self.lost(time, flow, number, place)?,
                Event::Received { place, from, to } => {
                    self.received(time, place, &arrivals[from as usize..to as usize])?;
                }
                Event::Sampled(index) => {
                    let row = states[index as usize];
                    if let Some(new) = row.mode.as_deref().filter(|new| mode != Some(new)) {
                        let data = match mode {
                            Some(old) => json!({"old": old, "new": new}),
                            None => json!({"new": new}),
                        };
                        self.event(time, "recovery:congestion_state_updated", &data)?;
                        mode = Some(new);
                    }
                    self.sampled(row)?;
                }
            }
        }
        Ok(())
    }

    fn sent(&mut self, time: u64, flow: &Flow, place: u32, number: u32) -> Result<(), FormatError> {
        self.begin(time, "transport:packet_sent")?;
        let size = self.packets.all[place as usize].size;
        write!(
            self.buffer,
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}}"#
        )?;
        let payload = size.saturating_sub(if flow.reliable { HEADERS } else { IP_UDP });
        write!(
            self.buffer,
            r#","raw":{{"length":{size},"payload_length":{payload}}}"#
        )?;
        self.frame(flow, place, payload)?;
        self.buffer.extend(b"}}");
        self.written.sent += 1;
        self.end()
    }

    /// The stream frame of a data packet.
    fn frame(&mut self, flow: &Flow, place: u32, payload: u32) -> Result<(), FormatError> {
        if flow.reliable {
            let segment = &self.streams.segments[place as usize];
            let (offset, length) = (segment.position - 1, segment.length);
            write!(
                self.buffer,
                r#","frames":[{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":{length}}}]"#
            )?;
        } else {
            write!(
                self.buffer,
                r#","frames":[{{"frame_type":"datagram","length":{payload}}}]"#
            )?;
        }
        Ok(())
    }

    fn received(
        &mut self,
        time: u64,
        place: u32,
        covered: &[(u64, u32)],
    ) -> Result<(), FormatError> {
        let size = self.packets.all[place as usize].size;
        self.begin(time, "transport:packet_received")?;
        write!(
            self.buffer,
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{place}}},"raw":{{"length":{size}}}"#
        )?;
        if !covered.is_empty() {
            let mut numbers: Vec<u32> = covered.iter().map(|arrival| arrival.1).collect();
            numbers.sort_unstable();
            self.written.acknowledged += numbers.len() as u64;
            let ranges = numbers.chunk_by(|a, b| *a + 1 == *b);
            self.buffer
                .extend(br#","frames":[{"frame_type":"ack","acked_ranges":["#);
            for (index, range) in ranges.enumerate() {
                if index > 0 && index % MAX_RANGES == 0 {
                    self.buffer
                        .extend(br#"]},{"frame_type":"ack","acked_ranges":["#);
                } else if index > 0 {
                    self.buffer.push(b',');
                }
                write!(self.buffer, "[{},{}]", range[0], range[range.len() - 1])?;
            }
            self.buffer.extend(b"]}]");
        }
        self.buffer.extend(b"}}");
        self.end()
    }

    fn lost(&mut self, time: u64, flow: &Flow, number: u32, place: u32) -> Result<(), FormatError> {
        self.begin(time, "recovery:packet_lost")?;
        write!(
            self.buffer,
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}}"#
        )?;
        let size = self.packets.all[place as usize].size;
        let payload = size.saturating_sub(if flow.reliable { HEADERS } else { IP_UDP });
        self.frame(flow, place, payload)?;
        self.buffer
            .extend(br#","trigger":"reordering_threshold"}}"#);
        self.written.lost += 1;
        self.end()
    }

    fn sampled(&mut self, row: &StateRow) -> Result<(), FormatError> {
        self.begin(row.time_ns, "recovery:metrics_updated")?;
        self.buffer.push(b'{');
        let mut first = true;
        let mut member = |buffer: &mut Vec<u8>, name: &str| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            write!(buffer, r#"{comma}"{name}":"#)
        };
        let times = [
            ("min_rtt", row.min_rtt_ns),
            ("smoothed_rtt", row.srtt_ns),
            ("latest_rtt", row.rtt_ns),
        ];
        for (name, ns) in times {
            if let Some(ns) = ns {
                member(&mut self.buffer, name)?;
                milliseconds(&mut self.buffer, ns)?;
            }
        }
        let numbers = [
            ("congestion_window", row.cwnd_bytes),
            ("bytes_in_flight", row.inflight_bytes),
            ("ssthresh", row.ssthresh_bytes),
            ("pacing_rate", row.pacing_bps),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                member(&mut self.buffer, name)?;
                write!(self.buffer, "{number}")?;
            }
        }
        self.buffer.extend(b"}}");
        self.written.metrics += 1;
        self.end()
    }

    fn begin(&mut self, time: u64, name: &str) -> Result<(), FormatError> {
        self.buffer.push(SEPARATOR);
        self.buffer.extend(br#"{"time":"#);
        milliseconds(&mut self.buffer, time)?;
        write!(self.buffer, r#","name":"{name}","data":"#)?;
        Ok(())
    }

    fn event(&mut self, time: u64, name: &str, data: &Value) -> Result<(), FormatError> {
        self.begin(time, name)?;
        write!(self.buffer, "{data}}}")?;
        self.end()
    }

    fn record(&mut self, document: &Value) -> Result<(), FormatError> {
        self.buffer.push(SEPARATOR);
        write!(self.buffer, "{document}")?;
        self.end()
    }

    fn end(&mut self) -> Result<(), FormatError> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= BLOCK {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), FormatError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Milliseconds with nanosecond precision.
fn milliseconds(buffer: &mut Vec<u8>, ns: u64) -> Result<(), FormatError> {
    write!(buffer, "{}.{:06}", ns / 1_000_000, ns % 1_000_000)?;
    Ok(())
}
