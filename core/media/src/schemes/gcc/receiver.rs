//! The receiving end: arrival times of all packets, requests for what is missing.

use super::GccSettings;
use super::feedback::{ArrivalReport, KEY_LENGTH};
use super::nack::NackList;
use crate::rate_meter::RateMeter;
use crate::reassembly::{Reassembly, Inserted};
use narrows_cc::parts::StepClock;
use crate::rtp::{self, Rtp};
use crate::{FrameArrived, MediaReceiver};
use narrows_transport::{Body, Endpoint, Header, Outgoing, ReceiverCounters, wire};
use narrows_units::{Ecn, Span, Time};

/// Time to wait for a frame with retransmissions, and without (for packets that are merely late).
const PATIENCE: Span = Span::from_ms(1000);
const PATIENCE_WITHOUT: Span = Span::from_ms(100);
/// Bounds of the interval between reports, and the assumed size of a report in bytes with IP and UDP.
const INTERVALS: (f64, f64) = (0.05, 0.25);
const REPORT: f64 = 68.0;
const SHARE: f64 = 0.05;
/// Window over which the received rate is measured.
const WINDOW: Span = Span::from_ms(500);

/// The next frame to be decoded, and the time since which it has been missing.
#[derive(Clone, Debug, Default)]
struct Decoder {
    next: u32,
    newest: Option<u32>,
    waiting: Option<Time>,
}

impl Decoder {
    fn complete(&mut self, now: Time, frame: &Rtp, assembly: &Reassembly) {
        self.newest = self.newest.max(Some(frame.frame));
        let before = self.next;
        if frame.key && frame.frame >= self.next {
            self.next = frame.frame.saturating_add(1);
        }
        while assembly.is_complete(self.next) && self.next < u32::MAX {
            self.next += 1;
        }
        if self.newest < Some(self.next) {
            self.waiting = None;
        } else if self.waiting.is_none() || self.next > before {
            self.waiting = Some(now);
        }
    }
}

pub(super) struct GccReceiver {
    clock: StepClock,
    interval: Span,
    patience: Span,
    assembly: Reassembly,
    decoder: Decoder,
    arrivals: ArrivalReport,
    nack: Option<NackList>,
    /// A key frame is requested at once: too much is missing.
    hopeless: bool,
    reported: Time,
    number: u64,
    /// The rate of arrivals.
    meter: RateMeter,
    counters: ReceiverCounters,
}

impl GccReceiver {
    pub(super) fn new(settings: GccSettings, now: Time) -> Self {
        GccReceiver {
            clock: settings.clock,
            interval: settings.params.feedback_interval,
            patience: if settings.params.nack { PATIENCE } else { PATIENCE_WITHOUT },
            assembly: Reassembly::default(),
            decoder: Decoder::default(),
            arrivals: ArrivalReport::default(),
            nack: settings.params.nack.then(NackList::new),
            hopeless: false,
            reported: now,
            number: 0,
            meter: RateMeter::new(now, WINDOW, settings.start_bps),
            counters: ReceiverCounters::default(),
        }
    }

    fn interval(&self) -> Span {
        if !self.interval.is_zero() {
            return self.interval;
        }
        let seconds = REPORT * 8.0 / (SHARE * self.meter.bps().max(1.0));
        Span::from_secs(seconds.clamp(INTERVALS.0, INTERVALS.1))
    }

    fn report_due(&self) -> Time {
        if self.arrivals.is_pending() { self.reported + self.interval() } else { Time::FAR }
    }

    fn key_due(&self) -> Time {
        let waiting = self.decoder.waiting;
        if self.hopeless { Time::ZERO } else { waiting.map_or(Time::FAR, |since| since + self.patience) }
    }

    fn nack_due(&self) -> Time {
        self.nack.as_ref().map_or(Time::FAR, NackList::due)
    }

    /// Writes the most urgent message; returns its length.
    fn write(&mut self, now: Time, out: &mut Vec<u8>) -> Option<u16> {
        if now >= self.nack_due()
            && let Some(nack) = &mut self.nack
            && nack.write(now, out)
        {
            return Some(out.len() as u16);
        }
        if now >= self.key_due() {
            self.decoder.waiting = Some(now);
            self.hopeless = false;
            out.push(3);
            return Some(KEY_LENGTH);
        }
        if now >= self.report_due() {
            self.arrivals.write(self.clock.read(now), out);
            if !self.arrivals.is_pending() {
                self.reported = now;
            }
            return Some(out.len() as u16);
        }
        None
    }
}

impl Endpoint for GccReceiver {
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, body: &Body) {
        let Header::Media(media) = header else { return };
        let Some(rtp) = Rtp::read(&body.bytes).filter(|_| !media.feedback) else { return };
        self.counters.on_packet(wire::size(header, body), ecn);
        self.meter.add(rtp::size(media.length));
        self.meter.update(now);
        if !self.arrivals.is_pending() && now - self.reported > self.interval() {
            // After a silence, reports are an interval apart again, from the first packet on.
            self.reported = now;
        }
        self.arrivals.note(self.clock.read(now), media.number);
        if rtp.padding {
            return;
        }
        if let Some(nack) = &mut self.nack {
            self.hopeless |= nack.arrived(now, &rtp);
        }
        match self.assembly.insert(now, &rtp) {
            Inserted::Old => self.counters.duplicate_packets += 1,
            inserted => {
                self.counters.goodput_bytes += u64::from(rtp::payload(media.length));
                if inserted == Inserted::Complete {
                    self.decoder.complete(now, &rtp, &self.assembly);
                    if let Some(nack) = &mut self.nack
                        && rtp.key
                        && self.decoder.next > rtp.frame
                    {
                        nack.give_up_before(u64::from(rtp.sequence).saturating_sub(u64::from(rtp.index)));
                    }
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        body.clear();
        let length = self.write(now, &mut body.bytes)?;
        let number = self.number;
        self.number += 1;
        Some(Outgoing::media(number, length, true, body))
    }

    fn next_wakeup(&self) -> Time {
        self.nack_due().min(self.key_due()).min(self.report_due())
    }
}

impl MediaReceiver for GccReceiver {
    fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    fn take_frames(&mut self, frames: &mut Vec<FrameArrived>) {
        self.assembly.take_complete(frames);
    }
}
