//! The sending end: encoder, pacer, probes, repairs and the estimate.

use super::GccSettings;
use super::applimit::AppLimit;
use super::controller::{Controller, LossTally};
use super::feedback::{self, GccMessage};
use super::history::{GccPacketFate, GccHistory};
use super::probe::Probes;
use super::repair::Repairs;
use crate::encoder::EncoderConfig;
use crate::packetizer::RtpPacket;
use crate::rtp::{self, Rtp};
use crate::source::MediaSource;
use crate::{FrameSent, MediaSender, MediaSetup};
use narrows_cc::Fields;
use narrows_transport::{Body, Endpoint, Header, Media, Outgoing, SenderCounters, SenderSnapshot};
use narrows_units::{Bytes, Ecn, Rate, Span, Time};

/// Maximum time in which the queue is sent, regardless of the target.
const QUEUE_TIME: f64 = 2.0;
/// Maximum amount by which a delayed pacer catches up.
const CATCH_UP: Span = Span::from_ms(5);
/// Initial round-trip time.
const FIRST_RTT: Span = Span::from_ms(200);
/// Minimum time between requested key frames.
const KEYS_APART: Span = Span::from_ms(300);
/// Later probes in multiples of the target (Chromium: ProbeController, probes while application-limited).
const PROBE: f64 = 2.0;

pub(super) struct GccSender {
    settings: GccSettings,
    source: MediaSource,
    history: GccHistory,
    controller: Controller,
    probes: Probes,
    application: AppLimit,
    repairs: Repairs,
    due: Time,
    rtt: Option<Span>,
    smoothed: Span,
    min_rtt: Span,
    key_at: Option<Time>,
    delivered: u64,
    counters: SenderCounters,
    stopped: bool,
}

fn ms(time: Time) -> f64 {
    time.ns() as f64 / 1e6
}

impl GccSender {
    pub(super) fn new(settings: GccSettings, config: EncoderConfig, setup: MediaSetup) -> Self {
        let now = setup.now;
        let mut probes = Probes::new(settings.max_bps);
        if settings.params.probing {
            probes.start(settings.start_bps);
        }
        GccSender {
            source: MediaSource::new(config, now, setup.random),
            history: GccHistory::default(),
            controller: Controller::new(&settings),
            probes,
            application: AppLimit::new(settings.params.probe_interval, now),
            repairs: Repairs::new(now),
            due: now,
            rtt: None,
            smoothed: FIRST_RTT,
            min_rtt: Span::MAX,
            key_at: None,
            delivered: 0,
            counters: SenderCounters::default(),
            stopped: false,
            settings,
        }
    }

    fn arrivals(&mut self, now: Time, base: u64, sent: Time, reference: Time, ticks: &[u8]) {
        let stamp = self.settings.clock.read(now);
        let end = base.saturating_add(ticks.len() as u64 / 2);
        self.history.passed(base, end);
        let (mut expected, mut lost, mut rtt) = (0, 0u64, None);
        for (number, arrived) in feedback::arrivals(base, reference, ticks) {
            let Some(at) = arrived else {
                if self.history.settle(number, GccPacketFate::Missing).is_some() {
                    (expected, lost) = (expected + 1, lost + 1);
                    self.counters.lost_packets += 1;
                }
                continue;
            };
            let Some((packet, before)) = self.history.settle(number, GccPacketFate::Arrived) else { continue };
            if before == GccPacketFate::Missing {
                lost = lost.saturating_sub(1);
                self.counters.spurious_losses += 1;
            } else {
                expected += 1;
            }
            let size = f64::from(packet.size);
            self.counters.acked_packets += 1;
            self.delivered += u64::from(packet.size);
            let arrived_ms = at as f64 / 1e6;
            self.controller.arrived(ms(packet.at), arrived_ms, size);
            if packet.cluster > 0 {
                self.probes.arrived(packet.cluster, arrived_ms, size);
            }
            rtt = Some((stamp - packet.at).saturating_sub(feedback::held(sent, at)));
        }
        if let Some(sample) = rtt {
            self.round_trip(sample);
        }
        let probe = self.probes.result(ms(now));
        self.controller.reported(&LossTally {
            now,
            expected,
            lost,
            rtt: self.smoothed,
            probe,
        });
        self.tell_encoder(now);
    }

    fn round_trip(&mut self, sample: Span) {
        self.min_rtt = self.min_rtt.min(sample);
        self.smoothed = match self.rtt {
            None => sample,
            Some(_) => Span::from_ns((self.smoothed.ns() / 8).saturating_mul(7).saturating_add(sample.ns() / 8)),
        };
        self.rtt = Some(sample);
    }

    /// The encoder uses the rate left by retransmissions, at least half.
    fn tell_encoder(&mut self, now: Time) {
        let target = self.controller.target();
        let rest = (target - self.repairs.bps(now)).max(target / 2.0);
        self.source.encoder.set_target(rest);
    }

    /// The next packet to send.
    fn next_packet(&mut self) -> Option<RtpPacket> {
        if let Some(packet) = self.repairs.pop() {
            return Some(packet);
        }
        if let Some(packet) = self.source.outbox.pop() {
            return Some(self.repairs.keep(packet));
        }
        self.probes.rate()?;
        let payload = self.probes.padding();
        Some(RtpPacket { rtp: Rtp::padding(), payload })
    }

    fn pacing_bps(&self) -> f64 {
        let waiting = self.source.outbox.bytes() + self.repairs.bytes();
        let queue = waiting as f64 * 8.0 / QUEUE_TIME;
        let paced = (self.settings.params.pacing_factor * self.controller.target()).max(queue);
        self.probes.rate().unwrap_or(paced)
    }
}

impl Endpoint for GccSender {
    fn receive(&mut self, now: Time, _: Ecn, header: &Header, body: &Body) {
        if self.stopped || !matches!(header, Header::Media(Media { feedback: true, .. })) {
            return;
        }
        match GccMessage::read(&body.bytes) {
            Ok(GccMessage::Arrivals { base, sent, reference, ticks }) => {
                self.arrivals(now, base, sent, reference, ticks);
            }
            Ok(GccMessage::Missing { base, above }) => {
                let target = self.controller.target();
                self.repairs.asked(now, self.smoothed, target, feedback::missing(base, above));
            }
            Ok(GccMessage::Key) if self.key_at.is_none_or(|then| now - then >= KEYS_APART) => {
                self.key_at = Some(now);
                self.source.encoder.request_key();
            }
            _ => {}
        }
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        if self.stopped {
            return None;
        }
        while self.source.capture(now).is_some() {}
        if now < self.due {
            return None;
        }
        let rate = self.pacing_bps();
        let packet = self.next_packet()?;
        let number = self.history.next();
        let stamp = self.settings.clock.read(now);
        let size = f64::from(packet.size());
        let cluster = self.probes.sent(ms(stamp), size);
        self.history.push(stamp, packet.size(), cluster);
        let target = self.controller.target();
        if self.application.sent(now, size, target) {
            self.probes.probe(PROBE * target);
        }
        let span = Span::from_secs(size * 8.0 / rate.max(1.0));
        // Probes are measured: they do not begin with a burst.
        let from = if cluster > 0 { now } else { now - CATCH_UP };
        self.due = self.due.max(from) + span;
        body.clear();
        packet.rtp.write(&mut body.bytes);
        let outgoing = Outgoing::media(number, rtp::length(packet.payload), false, body);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(outgoing.size);
        if packet.rtp.repeated {
            self.counters.retransmitted_packets += 1;
            self.counters.retransmitted_bytes += u64::from(outgoing.size);
        }
        Some(outgoing)
    }

    fn next_wakeup(&self) -> Time {
        if self.stopped {
            return Time::FAR;
        }
        let frame = self.source.encoder.next_capture();
        let waits = !self.repairs.is_empty() || !self.source.outbox.is_empty() || self.probes.rate().is_some();
        if waits { frame.min(self.due) } else { frame }
    }
}

impl MediaSender for GccSender {
    fn stop(&mut self) {
        self.stopped = true;
        self.source.outbox.clear();
    }

    fn snapshot(&self) -> SenderSnapshot {
        let known = self.rtt.is_some();
        let (trend, threshold, loss) = self.controller.values();
        SenderSnapshot {
            pacing: Some(Rate::from_bps(self.pacing_bps() as u64)),
            latest_rtt: self.rtt,
            smoothed_rtt: known.then_some(self.smoothed),
            min_rtt: known.then_some(self.min_rtt),
            in_flight: Bytes::new(self.history.in_flight()),
            delivered: Bytes::new(self.delivered),
            delivery_rate: self.controller.acked_bps().map(|bps| Rate::from_bps(bps as u64)),
            retransmitted: Bytes::new(self.counters.retransmitted_bytes),
            lost_packets: self.counters.lost_packets,
            scheme: Fields {
                ssthresh: None,
                mode: self.controller.mode(),
                values: vec![
                    ("target_bps", self.controller.target()),
                    ("trend_ns", trend * 1e6),
                    ("threshold_ns", threshold * 1e6),
                    ("loss_share", loss),
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
