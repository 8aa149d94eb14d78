//! The receiving end: the newest packet, a vector of those before it, and when to report.

use super::ScreamSettings;
use super::report::{LENGTH, ScreamReport};
use crate::rate_meter::RateMeter;
use crate::reassembly::{Reassembly, Inserted};
use crate::rtp::{self, Rtp};
use crate::{FrameArrived, MediaReceiver};
use narrows_transport::{Body, Endpoint, Header, Outgoing, ReceiverCounters, wire};
use narrows_units::{Ecn, Span, Time};

/// Window over which the received rate is measured.
const WINDOW: Span = Span::from_ms(200);

pub(super) struct ScreamReceiver {
    settings: ScreamSettings,
    assembly: Reassembly,
    counters: ReceiverCounters,
    report: Option<ScreamReport>,
    pending: bool,
    reported: Option<Time>,
    number: u64,
    /// The rate of arrivals.
    meter: RateMeter,
}

impl ScreamReceiver {
    pub(super) fn new(settings: ScreamSettings, now: Time) -> Self {
        ScreamReceiver {
            settings,
            assembly: Reassembly::default(),
            counters: ReceiverCounters::default(),
            report: None,
            pending: false,
            reported: None,
            number: 0,
            meter: RateMeter::new(now, WINDOW, 0.0),
        }
    }

    /// Records packet `number`; returns whether it is new according to the vector.
    fn note(&mut self, now: Time, number: u64) -> bool {
        let arrived = self.settings.clock.read(now);
        let Some(report) = &mut self.report else {
            let vector = 0;
            self.report = Some(ScreamReport { highest: number, vector, arrived });
            return true;
        };
        if number > report.highest {
            let up = number - report.highest;
            // The previous highest is bit `up - 1` of the new vector.
            let shifted = if up < 64 { report.vector << up } else { 0 };
            let bit = if up <= 64 { 1 << (up - 1) } else { 0 };
            *report = ScreamReport { highest: number, vector: shifted | bit, arrived };
            return true;
        }
        let new = !report.has(number);
        if let below @ 1..=64 = report.highest - number {
            report.vector |= 1 << (below - 1);
        }
        new
    }

    fn interval(&self) -> Span {
        if !self.settings.params.report_interval.is_zero() {
            return self.settings.params.report_interval;
        }
        Span::from_secs(1.0 / (self.meter.bps() / 10e3).clamp(10.0, 100.0))
    }

    fn due(&self) -> Time {
        if !self.pending {
            return Time::FAR;
        }
        self.reported.map_or(Time::ZERO, |reported| reported + self.interval())
    }
}

impl Endpoint for ScreamReceiver {
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, body: &Body) {
        let Header::Media(media) = header else { return };
        let Some(rtp) = Rtp::read(&body.bytes).filter(|_| !media.feedback) else { return };
        self.counters.on_packet(wire::size(header, body), ecn);
        self.meter.add(rtp::size(media.length));
        self.meter.update(now);
        let new = self.note(now, media.number);
        self.pending = true;
        if !new || rtp.padding || self.assembly.insert(now, &rtp) == Inserted::Old {
            self.counters.duplicate_packets += 1;
        } else {
            self.counters.goodput_bytes += u64::from(rtp::payload(media.length));
        }
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        if now < self.due() {
            return None;
        }
        self.pending = false;
        self.reported = Some(now);
        body.clear();
        self.report?.write(&mut body.bytes);
        let number = self.number;
        self.number += 1;
        Some(Outgoing::media(number, LENGTH, true, body))
    }

    fn next_wakeup(&self) -> Time {
        self.due()
    }
}

impl MediaReceiver for ScreamReceiver {
    fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    fn take_frames(&mut self, frames: &mut Vec<FrameArrived>) {
        self.assembly.take_complete(frames);
    }
}
