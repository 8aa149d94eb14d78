//! Writes the packets seen at one end of a run.

use super::headers::{HOSTS, Heading, Opening, append};
use super::{
    APPLICATION, BYTE_ORDER, COMMENT, DESCRIPTION, END_OF_OPTIONS, ENHANCED_PACKET, INTERFACE,
    NAME, NAMES, PACKET_ID, RAW, RESOLUTION, SECTION,
};
use crate::packets::{Packet, Packets};
use crate::streams::{Flow, Segment, Streams};
use crate::{FormatError, Traffic};
use narrows_record::{Direction, Fate};
use std::collections::BTreeSet;
use std::io::Write;

/// Bytes that are buffered before they are written.
const BLOCK: usize = 1 << 20;
/// Maximum number of bytes kept of a packet: the headers.
const SNAP: u32 = 80;
/// Flag in the list of events: the packet was sent here (rather than arrived here).
const SENT: u32 = 1 << 31;

/// The end of the flows at which packets are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the data of each flow are sent.
    Sender,
    /// Where the data are received.
    Receiver,
}

impl End {
    /// The word used for it.
    pub const fn word(self) -> &'static str {
        match self {
            End::Sender => "sender",
            End::Receiver => "receiver",
        }
    }
}

/// Counts of what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets in the file.
    pub packets: u64,
    /// Packets among them that repeat data and were sent at this end.
    pub repeated: u64,
}

/// Writes the packets of a record as they passed `end`, its time zero at `base_ns` since 1970 (at least 2). `comment`
/// describes the file.
///
/// # Errors
/// A file that cannot be written.
pub fn write(
    traffic: &Traffic,
    end: End,
    base_ns: u64,
    comment: &str,
    out: &mut impl Write,
) -> Result<Written, FormatError> {
    let (packets, streams) = (&traffic.packets, &traffic.streams);
    let mut file = Writer {
        out,
        buffer: Vec::with_capacity(BLOCK + 4096),
    };
    file.head(end, comment);
    let mut written = Written::default();
    let mut introduced: BTreeSet<u16> = BTreeSet::new();
    let mut headers = Vec::with_capacity(128);
    let mut events = events(packets, streams, end);
    events.sort_unstable();
    for (time_ns, place) in events {
        let sent = place & SENT != 0;
        let place = (place & !SENT) as usize;
        let packet = &packets.all[place];
        let original = packet.copy_of.map_or(place, |original| original as usize);
        let flow = streams.flows.get(&packet.flow);
        let segment = flow
            .filter(|flow| flow.reliable)
            .map(|_| &streams.segments[original]);
        let mut remarks = Vec::new();
        if let Some(flow) = flow.filter(|flow| introduced.insert(flow.number)) {
            if flow.reliable {
                file.opening(base_ns + time_ns, flow)?;
            } else {
                remarks.push(introduction(flow));
            }
        }
        headers.clear();
        let heading = Heading {
            flow: packet.flow,
            from: usize::from(!is_data(packet, flow)),
            uid: original as u32 + 1,
            sent_ns: packet.sent_ns,
            size: packet.size,
            segment,
            opens: None,
        };
        append(&mut headers, &heading);
        if let (Some(segment), true) = (segment.filter(|it| it.repeats > 0), sent) {
            written.repeated += 1;
            remarks.push(format!("repeats packet {}", segment.repeats));
        }
        remarks.extend(fate(packets, packet, sent));
        file.packet(
            base_ns + time_ns,
            packet.size,
            original as u64 + 1,
            &headers,
            &remarks,
        )?;
        written.packets += 1;
    }
    file.flush()?;
    Ok(written)
}

/// Times at which packets pass `end`. At the same time, arrivals precede packets that are sent in answer.
fn events(packets: &Packets, streams: &Streams, end: End) -> Vec<(u64, u32)> {
    let mut events = Vec::with_capacity(packets.all.len());
    for (place, packet) in (0_u32..).zip(&packets.all) {
        let data = is_data(packet, streams.flows.get(&packet.flow));
        let leaves = data == (end == End::Sender);
        if leaves && packet.copy_of.is_none() {
            events.push((packet.sent_ns, place | SENT));
        } else if !leaves && packet.arrived() {
            events.push((packet.arrived_ns, place));
        }
    }
    events
}

/// True if a packet travels as the data of its flow do.
fn is_data(packet: &Packet, flow: Option<&Flow>) -> bool {
    packet.direction == flow.map_or(Direction::Forward, |flow| flow.direction)
}

fn introduction(flow: &Flow) -> String {
    let how = match (flow.reliable, flow.kind.as_str()) {
        (true, "native") => " (ran over UDP; TCP headers are made up)",
        (true, _) => " (headers are reconstructed)",
        (false, _) => "",
    };
    format!("flow {}: {}{how}", flow.number, flow.scheme)
}

fn fate(packets: &Packets, packet: &Packet, sent: bool) -> Option<String> {
    if packet.arrived() && !packet.is_sound() {
        return Some("damaged in transit".to_owned());
    }
    if packet.copy_of.is_some() {
        return Some("a copy made by the network".to_owned());
    }
    match packet.fate {
        Fate::Dropped if sent => {
            let (element, reason) = packets.drop_of(packet);
            Some(format!("dropped by {element}: {reason}"))
        }
        Fate::InFlight if sent => Some("still in flight when the run ended".to_owned()),
        _ => None,
    }
}

struct Writer<'a, W: Write> {
    out: &'a mut W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<'_, W> {
    fn head(&mut self, end: End, comment: &str) {
        let at = self.begin(SECTION);
        self.buffer.extend(BYTE_ORDER.to_le_bytes());
        self.buffer.extend([1, 0, 0, 0]);
        self.buffer.extend(u64::MAX.to_le_bytes());
        self.option(COMMENT, comment.as_bytes());
        self.option(APPLICATION, b"narrows export");
        self.end(at);
        let at = self.begin(INTERFACE);
        self.buffer.extend(RAW.to_le_bytes());
        self.buffer.extend([0, 0]);
        self.buffer.extend(SNAP.to_le_bytes());
        self.option(NAME, end.word().as_bytes());
        let what = match end {
            End::Sender => "where the data of each flow are sent",
            End::Receiver => "where the data of each flow are received",
        };
        self.option(DESCRIPTION, what.as_bytes());
        self.option(RESOLUTION, &[9]);
        self.end(at);
        let at = self.begin(NAMES);
        for (host, name) in HOSTS.iter().zip(["sender", "receiver"]) {
            let mut record = host.to_vec();
            record.extend(name.as_bytes());
            record.push(0);
            self.option(1, &record);
        }
        self.buffer.extend([0; 4]);
        self.close(at);
    }

    /// The three packets that open the connection of `flow` before `time_ns`. They are not packets of the run, but
    /// analysers expect them. From their round-trip time analysers decide which packets are out of order instead of
    /// repeated; it is as small as possible, because at its sender no packet is ever out of order.
    fn opening(&mut self, time_ns: u64, flow: &Flow) -> Result<(), FormatError> {
        let mut headers = Vec::with_capacity(SNAP as usize);
        let steps = [
            (Some(Opening::Asks), 0, (0, 0), 60),
            (Some(Opening::Answers), 1, (0, 1), 60),
            (None, 0, (1, 1), 52),
        ];
        for (step, (opens, from, (position, ack), size)) in (0_u64..).zip(steps) {
            let segment = Segment {
                position,
                ack,
                ..Segment::default()
            };
            headers.clear();
            let heading = Heading {
                flow: flow.number,
                from,
                uid: 0,
                sent_ns: 0,
                size,
                segment: Some(&segment),
                opens,
            };
            append(&mut headers, &heading);
            let mut remarks = vec!["made up: opens the connection for analysers".to_owned()];
            if step == 0 {
                remarks.push(introduction(flow));
            }
            let at = (time_ns + step).saturating_sub(2);
            self.packet(at, size, 0, &headers, &remarks)?;
        }
        Ok(())
    }

    fn packet(
        &mut self,
        time_ns: u64,
        size: u32,
        uid: u64,
        headers: &[u8],
        remarks: &[String],
    ) -> Result<(), FormatError> {
        let at = self.begin(ENHANCED_PACKET);
        let kept = headers.len().min(size as usize);
        self.buffer.extend([0; 4]);
        self.buffer.extend(((time_ns >> 32) as u32).to_le_bytes());
        self.buffer.extend((time_ns as u32).to_le_bytes());
        self.buffer.extend((kept as u32).to_le_bytes());
        self.buffer.extend(size.to_le_bytes());
        self.buffer.extend(&headers[..kept]);
        self.pad();
        for remark in remarks {
            self.option(COMMENT, remark.as_bytes());
        }
        if uid > 0 {
            self.option(PACKET_ID, &uid.to_le_bytes());
        }
        self.end(at);
        if self.buffer.len() >= BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    fn begin(&mut self, kind: u32) -> usize {
        let at = self.buffer.len();
        self.buffer.extend(kind.to_le_bytes());
        self.buffer.extend([0; 4]);
        at
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.buffer.extend(code.to_le_bytes());
        self.buffer.extend((value.len() as u16).to_le_bytes());
        self.buffer.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        // Blocks begin at multiples of four, and so do flushed parts.
        self.buffer.resize(self.buffer.len().next_multiple_of(4), 0);
    }

    /// Ends the options and the block that began at `at`.
    fn end(&mut self, at: usize) {
        self.buffer.extend(END_OF_OPTIONS.to_le_bytes());
        self.buffer.extend([0; 2]);
        self.close(at);
    }

    fn close(&mut self, at: usize) {
        let length = ((self.buffer.len() - at + 4) as u32).to_le_bytes();
        self.buffer.extend(length);
        self.buffer[at + 4..at + 8].copy_from_slice(&length);
    }

    fn flush(&mut self) -> Result<(), FormatError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
