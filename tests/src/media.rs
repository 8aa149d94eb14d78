//! A real-time scheme for tests of the drivers of such schemes. It is unregistered and has no control: it sends a frame
//! of three packets every 40 ms, of which every tenth is discarded, and a report for every packet.

use narrows_cc::Fields;
use narrows_media::{FrameArrived, FrameSent, Media, MediaReceiver, MediaSender, MediaSetup};
use narrows_transport::{
    Body, Endpoint, Header, Media as Message, Outgoing, ReceiverCounters, SenderCounters,
    SenderSnapshot, wire,
};
use narrows_units::{Bytes, Ecn, Kind, ParamSpec, Rate, Span, Time};

/// The scheme.
pub static METRONOME: Media = Media {
    name: "metronome",
    summary: "Frames at a steady beat",
    source: "made for tests",
    frames: true,
    params: &[ParamSpec::new("beat", Kind::Span, "Time between two frames.").default("40000000")],
    profiles: &[],
    sender: |params, setup| {
        Ok(Box::new(Sender {
            beat: params.span("beat").unwrap_or_default(),
            length: payload(&setup),
            due: setup.now,
            frame: 0,
            part: PARTS,
            captured: setup.now,
            sent: Vec::new(),
            frames: Vec::new(),
            rtt: None,
            delivered: 0,
            stopped: false,
            counters: SenderCounters::default(),
        }))
    },
    receiver: |_, _| Ok(Box::<Receiver>::default()),
};

/// Packets of a frame.
pub const PARTS: u8 = 3;
/// One frame in this many is discarded.
pub const DISCARDED: u64 = 10;

fn payload(setup: &MediaSetup) -> u16 {
    (setup.packet_size - wire::IP_UDP - wire::MEDIA_HEADER) as u16
}

struct Sender {
    beat: Span,
    length: u16,
    due: Time,
    frame: u64,
    /// Next packet of the current frame.
    part: u8,
    captured: Time,
    /// When each packet was sent, by number.
    sent: Vec<Time>,
    frames: Vec<FrameSent>,
    rtt: Option<Span>,
    delivered: u64,
    stopped: bool,
    counters: SenderCounters,
}

impl Endpoint for Sender {
    fn receive(&mut self, now: Time, _: Ecn, _: &Header, body: &Body) {
        let number = body
            .bytes
            .first_chunk()
            .map(|bytes| u64::from_be_bytes(*bytes));
        let sent = number.and_then(|number| self.sent.get(usize::try_from(number).ok()?));
        if let Some(&sent) = sent {
            self.rtt = Some(now.since(sent));
            self.delivered += u64::from(self.length);
            self.counters.acked_packets += 1;
        }
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        if self.stopped {
            return None;
        }
        while self.part == PARTS {
            if now < self.due {
                return None;
            }
            self.captured = self.due;
            self.due += self.beat;
            if self.frame % DISCARDED == DISCARDED - 1 {
                self.settle(true);
            } else {
                self.part = 0;
            }
        }
        body.clear();
        body.bytes.extend(self.frame.to_be_bytes());
        body.bytes.push(self.part);
        let header = Header::Media(Message {
            number: self.sent.len() as u64,
            length: self.length,
            feedback: false,
        });
        let size = wire::size(&header, body);
        self.sent.push(now);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(size);
        self.part += 1;
        if self.part == PARTS {
            self.settle(false);
        }
        Some(Outgoing {
            header,
            size,
            ecn: Ecn::NotEct,
        })
    }

    fn next_wakeup(&self) -> Time {
        if self.stopped { Time::FAR } else { self.due }
    }
}

impl Sender {
    fn settle(&mut self, discarded: bool) {
        self.frames.push(FrameSent {
            number: self.frame,
            at: self.captured,
            bytes: u32::from(self.length) * u32::from(PARTS),
            key: self.frame == 0,
            discarded,
        });
        self.frame += 1;
    }
}

impl MediaSender for Sender {
    fn stop(&mut self) {
        self.stopped = true;
    }

    fn snapshot(&self) -> SenderSnapshot {
        let bits = u64::from(self.length) * u64::from(PARTS) * 8;
        let target = bits as f64 / self.beat.secs();
        SenderSnapshot {
            pacing: Some(Rate::from_bps(target as u64)),
            latest_rtt: self.rtt,
            delivered: Bytes::new(self.delivered),
            scheme: Fields {
                values: vec![("target_bps", target)],
                ..Fields::default()
            },
            ..SenderSnapshot::default()
        }
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn take_frames(&mut self, frames: &mut Vec<FrameSent>) {
        frames.append(&mut self.frames);
    }
}

#[derive(Default)]
struct Receiver {
    /// The packets of each frame that have arrived, as bits.
    parts: Vec<u8>,
    reports: Vec<u64>,
    told: u64,
    frames: Vec<FrameArrived>,
    counters: ReceiverCounters,
}

impl Endpoint for Receiver {
    fn receive(&mut self, now: Time, _: Ecn, header: &Header, body: &Body) {
        let Header::Media(message) = header else {
            return;
        };
        self.counters.received_packets += 1;
        self.counters.received_bytes += u64::from(wire::size(header, body));
        self.reports.push(message.number);
        let Some((number, [part])) = body.bytes.split_first_chunk() else {
            return;
        };
        let number = u64::from_be_bytes(*number);
        let frame = number as usize;
        if self.parts.len() <= frame {
            self.parts.resize(frame + 1, 0);
        }
        let all = (1 << PARTS) - 1;
        let (before, bit) = (self.parts[frame], 1 << part);
        self.parts[frame] |= bit;
        if before & bit == 0 {
            self.counters.goodput_bytes += u64::from(message.length);
            if self.parts[frame] == all {
                self.frames.push(FrameArrived { number, at: now });
            }
        }
    }

    fn transmit(&mut self, _: Time, body: &mut Body) -> Option<Outgoing> {
        let number = self.reports.pop()?;
        body.clear();
        body.bytes.extend(number.to_be_bytes());
        let header = Header::Media(Message {
            number: self.told,
            length: 8,
            feedback: true,
        });
        self.told += 1;
        Some(Outgoing {
            header,
            size: wire::size(&header, body),
            ecn: Ecn::NotEct,
        })
    }

    fn next_wakeup(&self) -> Time {
        if self.reports.is_empty() {
            Time::FAR
        } else {
            Time::ZERO
        }
    }
}

impl MediaReceiver for Receiver {
    fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    fn take_frames(&mut self, frames: &mut Vec<FrameArrived>) {
        frames.append(&mut self.frames);
    }
}
