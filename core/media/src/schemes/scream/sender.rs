//! The sending end.

use super::delay::Delay;
use super::rate::{RateControl, RateControlState};
use super::report::ScreamReport;
use super::sent::InFlight;
use super::window::{ScreamWindowStep, ScreamWindow};
use super::{ScreamSettings, rtp};
use crate::encoder::EncoderConfig;
use crate::source::MediaSource;
use crate::{FrameSent, MediaSender, MediaSetup};
use narrows_cc::Fields;
use narrows_transport::{Body, Endpoint, Header, Media, Outgoing, SenderCounters, SenderSnapshot};
use narrows_units::{Bytes, Ecn, Rate, Span, Time};

/// After this time without sending, a packet is sent regardless of the window.
const SILENCE: Span = Span::from_ms(200);
/// Minimum time between discards of the queue.
const CLEAR_APART: Span = Span::from_ms(1000);

pub(super) struct ScreamSender {
    settings: ScreamSettings,
    source: MediaSource,
    flight: InFlight,
    delay: Delay,
    window: ScreamWindow,
    rate: RateControl,
    /// Round-trip times in seconds: the newest, the smallest, and smoothed in two stages.
    rtt: f64,
    min_rtt: f64,
    short: f64,
    smoothed: f64,
    smoothed_at: Time,
    lost_at: Option<Time>,
    sent_at: Time,
    /// The pacing interval has passed.
    due: Time,
    cleared: Option<Time>,
    delivered: u64,
    counters: SenderCounters,
    stopped: bool,
}

impl ScreamSender {
    pub(super) fn new(settings: ScreamSettings, config: EncoderConfig, setup: MediaSetup) -> Self {
        let now = setup.now;
        ScreamSender {
            source: MediaSource::new(config, now, setup.random),
            flight: InFlight::default(),
            delay: Delay::new(now, settings.target),
            window: ScreamWindow::new(now, &settings),
            rate: RateControl::new(now, &settings),
            settings,
            rtt: 0.0,
            min_rtt: f64::INFINITY,
            short: 0.0,
            smoothed: 0.0,
            smoothed_at: now,
            lost_at: None,
            sent_at: now,
            due: now,
            cleared: None,
            delivered: 0,
            counters: SenderCounters::default(),
            stopped: false,
        }
    }

    fn capture(&mut self, now: Time) {
        while let Some(frame) = self.source.capture(now) {
            let packets = frame.bytes.div_ceil(self.source.encoder.config().payload);
            self.rate.coded.add(u64::from(frame.bytes + packets * rtp::HEADER));
            self.rate.meter(now);
            self.give_up(now);
            let state = RateControlState {
                now,
                queue_bits: self.source.outbox.bytes() as f64 * 8.0,
                fast: self.window.is_fast(),
                trend: self.delay.trend(),
            };
            self.rate.frame(&state, &self.settings);
            self.source.encoder.set_target(self.rate.told());
        }
    }

    /// Discards frames that have waited for too long.
    fn give_up(&mut self, now: Time) {
        let recently = self.cleared.is_some_and(|cleared| now - cleared <= CLEAR_APART);
        if !recently && self.source.outbox.age(now) > self.settings.params.queue_limit {
            self.cleared = Some(now);
            self.source.outbox.clear();
            self.source.encoder.request_key();
        }
    }

    fn report(&mut self, now: Time, report: &ScreamReport) {
        let Some(outcome) = self.flight.report(report) else { return };
        self.counters.acked_packets += outcome.acked_packets;
        self.counters.lost_packets += outcome.lost;
        self.delivered += outcome.acked;
        self.rate.reported(now);
        self.rate.acked.add(outcome.acked);
        self.rate.meter(now);
        let stamp = self.settings.clock.read(now);
        self.round_trip(now, (stamp - outcome.sent_at).secs());
        let one_way = report.arrived.ns().wrapping_sub(outcome.sent_at.ns()) as i64;
        self.delay.update(now, one_way);
        let again = |at: Time| (now - at).secs() >= self.smoothed;
        let loss = outcome.lost > 0 && self.lost_at.is_none_or(again);
        if loss {
            self.lost_at = Some(now);
            self.counters.recoveries += 1;
            self.rate.loss(now, &self.settings);
        }
        let step = ScreamWindowStep {
            now,
            newly: outcome.newly as f64,
            in_flight: self.flight.bytes() as f64,
            bps: self.rate.bps(),
            rtt: self.smoothed,
            loss,
        };
        let fallen = self.window.report(&step, &self.delay, &self.settings);
        if fallen > 0.0 {
            self.rate.fallen(fallen, &self.settings);
        }
    }

    fn round_trip(&mut self, now: Time, sample: f64) {
        let first = self.min_rtt == f64::INFINITY;
        self.rtt = sample;
        self.min_rtt = self.min_rtt.min(sample);
        if first && !self.settings.params.cold_rtt {
            (self.short, self.smoothed, self.smoothed_at) = (sample, sample, now);
            return;
        }
        self.short += (sample - self.short) / 8.0;
        if (now - self.smoothed_at).secs() >= self.short {
            self.smoothed += (self.short - self.smoothed) / 8.0;
            self.smoothed_at = now;
        }
    }

    /// True if a packet of `size` bytes fits into the window.
    fn fits(&self, size: u32) -> bool {
        let extra = if self.delay.queueing() < self.settings.target { self.window.mss() } else { 0.0 };
        self.flight.bytes() as f64 + f64::from(size) <= self.window.bytes() + extra
    }
}

impl Endpoint for ScreamSender {
    fn receive(&mut self, now: Time, _: Ecn, header: &Header, body: &Body) {
        if let (Header::Media(Media { feedback: true, .. }), false) = (header, self.stopped)
            && let Ok(report) = ScreamReport::read(&body.bytes)
        {
            self.report(now, &report);
        }
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        if self.stopped {
            return None;
        }
        self.capture(now);
        let packet = self.source.outbox.peek()?;
        let free = self.fits(packet.size()) || now - self.sent_at >= SILENCE;
        if now < self.due || !free {
            return None;
        }
        self.source.outbox.pop();
        let number = self.flight.next();
        self.flight.sent(self.settings.clock.read(now), packet.size());
        let in_flight = self.flight.bytes() as f64;
        self.window.sent(now, f64::from(packet.size()), in_flight, &self.settings);
        self.rate.sent.add(u64::from(packet.size()));
        self.sent_at = now;
        self.due = now + Span::from_secs(self.window.pacing(self.smoothed, &self.delay));
        body.clear();
        packet.rtp.write(&mut body.bytes);
        let outgoing = Outgoing::media(number, rtp::length(packet.payload), false, body);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(outgoing.size);
        Some(outgoing)
    }

    fn next_wakeup(&self) -> Time {
        if self.stopped {
            return Time::FAR;
        }
        let frame = self.source.encoder.next_capture();
        let Some(packet) = self.source.outbox.peek() else { return frame };
        let free = if self.fits(packet.size()) { Time::ZERO } else { self.sent_at + SILENCE };
        frame.min(self.due.max(free))
    }
}

impl MediaSender for ScreamSender {
    fn stop(&mut self) {
        self.stopped = true;
        self.source.outbox.clear();
    }

    fn snapshot(&self) -> SenderSnapshot {
        let known = |seconds: f64| (self.min_rtt < f64::INFINITY).then(|| Span::from_secs(seconds));
        SenderSnapshot {
            cwnd: Some(Bytes::new(self.window.bytes() as u64)),
            latest_rtt: known(self.rtt),
            smoothed_rtt: known(self.smoothed),
            min_rtt: known(self.min_rtt),
            in_flight: Bytes::new(self.flight.bytes()),
            delivered: Bytes::new(self.delivered),
            delivery_rate: Some(Rate::from_bps(self.rate.acked.bps() as u64)),
            lost_packets: self.counters.lost_packets,
            scheme: Fields {
                ssthresh: None,
                mode: if self.window.is_fast() { "fast_start" } else { "avoidance" },
                values: vec![
                    ("target_bps", self.rate.target()),
                    ("queueing_ns", self.delay.queueing() * 1e9),
                    ("trend", self.delay.trend()),
                    ("waiting_bytes", self.source.outbox.bytes() as f64),
                ],
            },
            ..SenderSnapshot::default()
        }
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn take_frames(&mut self, frames: &mut Vec<FrameSent>) {
        self.source.outbox.take_settled(frames);
    }
}
