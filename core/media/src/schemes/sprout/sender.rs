//! The end that sends: as much as the forecast predicts to pass the queue in time.

use super::forecast::{Forecast, HORIZON, first_forecast};
use super::message::{COUNTED, SproutData, HEADER, OWN_FORECAST, SproutReport, complete};
use super::sleep::Sleep;
use super::{Drain, SproutSettings, TICK, UNIT};
use crate::{MediaSender, MediaSetup};
use narrows_cc::Fields;
use narrows_transport::wire::{IP_UDP, MEDIA_HEADER};
use narrows_transport::{Body, Endpoint, Header, Media, Outgoing, SenderCounters, SenderSnapshot};
use narrows_units::{Bytes, Ecn, Span, Time};
use std::collections::VecDeque;

/// After this much silence an empty packet is sent.
const FALLBACK: Span = Span::from_ms(50);
/// Packets sent less than this apart may be reordered.
const REORDERING: Span = Span::from_ms(10);
/// Maximum number of arrivals per tick in the tables: larger forecasts are invalid.
const MAX_PER_TICK: u32 = 30;

/// Sprout's sender.
#[derive(Debug)]
pub(super) struct SproutSender {
    settings: SproutSettings,
    sleep: Sleep,
    /// When the end wakes if nothing arrives.
    wakeup: Time,
    /// Largest payload of a packet.
    payload: u32,
    /// Start and end of the application's pause.
    pause: (Time, Time),
    born: Time,
    /// Payload bytes sent so far.
    taken: u64,
    forecast: Forecast,
    /// When the forecast arrived, and how many of its ticks have passed.
    forecast_at: Time,
    tick: usize,
    /// Estimated bytes in flight.
    queued: u64,
    /// Bytes sent so far, including the per-packet overhead.
    position: u64,
    /// Bytes of the current flight still to be sent.
    flight: u64,
    /// When a packet was last sent.
    sent_at: Option<Time>,
    /// Positions at which the latest bursts began.
    bursts: VecDeque<(Time, u64)>,
    /// When the sender's own forecast is sent next.
    own_forecast: Time,
    /// Number of the first packet whose fate is unknown, and send times from it on.
    unheard: u64,
    sent: VecDeque<Time>,
    /// Number of the newest report.
    report: Option<u64>,
    stopped: bool,
    empty_packets: u64,
    delivered: u64,
    latest_rtt: Option<Span>,
    smoothed_rtt: Option<Span>,
    min_rtt: Option<Span>,
    counters: SenderCounters,
}

impl SproutSender {
    /// A sender whose packets do not exceed the configured size.
    pub(super) fn new(settings: SproutSettings, setup: MediaSetup) -> Self {
        let headers = IP_UDP + MEDIA_HEADER + HEADER + OWN_FORECAST;
        let room = setup.packet_size.saturating_sub(headers).max(1);
        let now = setup.now;
        let silent = now + settings.params.pause_at;
        SproutSender {
            sleep: Sleep::new(settings.clock, settings.params.lateness, setup.random),
            wakeup: now,
            payload: (settings.params.payload.get() as u32).min(room),
            pause: (silent, silent + settings.params.pause_for),
            born: now,
            taken: 0,
            forecast: first_forecast(settings.model, 1.0 - settings.params.confidence),
            forecast_at: settings.clock.read(now),
            settings,
            tick: 0,
            queued: 0,
            position: 0,
            flight: 0,
            sent_at: None,
            bursts: VecDeque::with_capacity(16),
            own_forecast: now,
            unheard: 0,
            sent: VecDeque::with_capacity(64),
            report: None,
            stopped: false,
            empty_packets: 0,
            delivered: 0,
            latest_rtt: None,
            smoothed_rtt: None,
            min_rtt: None,
            counters: SenderCounters::default(),
        }
    }

    /// Bytes that will pass the queue within the look-ahead, from the present tick on.
    fn through(&self) -> u64 {
        let ahead = (self.tick + self.settings.lookahead).min(HORIZON - 1);
        let packets = self.forecast[ahead].saturating_sub(self.forecast[self.tick]);
        UNIT * u64::from(packets)
    }

    /// Bytes, and rate, that may be sent now.
    fn window(&self) -> u64 {
        let through = self.through();
        // One packet per tick never reveals that the link would carry two: small windows are sent at once.
        let small = through <= UNIT * self.settings.params.whole as u64;
        if small && self.queued >= UNIT { 0 } else { through.saturating_sub(self.queued) }
    }

    /// Payload bytes that the application has to send.
    fn supply(&self, now: Time) -> u64 {
        let Some(rate) = self.settings.content else {
            let silent = now >= self.pause.0 && now < self.pause.1;
            return if silent { 0 } else { u64::MAX };
        };
        let paused = now.min(self.pause.1).since(self.pause.0);
        let given = rate.bytes_in((now - self.born).saturating_sub(paused)).get();
        let packet = u64::from(self.payload);
        given.saturating_sub(self.taken) / packet * packet
    }

    /// When a limited application has produced another packet.
    fn supplied(&self) -> Time {
        let Some(rate) = self.settings.content else { return Time::FAR };
        let bytes = Bytes::new(self.taken + u64::from(self.payload));
        let at = self.born + rate.time_for(bytes);
        if at > self.pause.0 { at + self.settings.params.pause_for } else { at }
    }

    /// Subtracts the forecast from the queue for each tick that has passed.
    fn advance(&mut self, now: Time) {
        let ticks = now.since(self.forecast_at).ns() / TICK.ns();
        let ticks = ticks.min(HORIZON as u64 - 1) as usize;
        while self.tick < ticks {
            let upto = self.forecast[self.tick];
            let before = match (self.settings.params.drain, self.tick.checked_sub(1)) {
                (Drain::Tick, Some(before)) => self.forecast[before],
                _ => 0,
            };
            let drained = UNIT * u64::from(upto.saturating_sub(before));
            self.queued = self.queued.saturating_sub(drained);
            self.tick += 1;
        }
    }

    /// Bytes before the current position sent so recently that they may still be overtaken.
    fn young(&mut self, now: Time) -> u32 {
        while self.bursts.front().is_some_and(|(at, _)| *at + REORDERING < now) {
            self.bursts.pop_front();
        }
        if self.bursts.back().is_none_or(|(at, _)| *at < now) {
            self.bursts.push_back((now, self.position));
        }
        let oldest = self.bursts.front().map_or(self.position, |burst| burst.1);
        u32::try_from(self.position - oldest).unwrap_or(u32::MAX)
    }

    /// When a packet may have to be sent, in clock time, if no report arrives earlier.
    fn due(&self) -> Time {
        let Some(sent_at) = self.sent_at else {
            return self.forecast_at;
        };
        // Whether a tick has opened the window is checked at the periodic wake-up.
        let due = sent_at + FALLBACK;
        if self.window() > 0 { due.min(self.supplied()) } else { due }
    }

    /// Counts the packets received and missing, and the payload bytes, of a report.
    fn count(&mut self, now: Time, report: &SproutReport, (received, missing, payload): (u64, u64, u64)) {
        self.counters.acked_packets = self.counters.acked_packets.max(received);
        self.delivered = self.delivered.max(payload);
        // Packets missing now may only be late.
        let known = self.counters.lost_packets - self.counters.spurious_losses;
        self.counters.lost_packets += missing.saturating_sub(known);
        self.counters.spurious_losses += known.saturating_sub(missing);
        let mut sent = None;
        while self.unheard < received + missing
            && let Some(at) = self.sent.pop_front()
        {
            (sent, self.unheard) = (Some(at), self.unheard + 1);
        }
        let passed = sent.map(|sent| now.since(sent).ns());
        let Some(rtt) = passed.and_then(|passed| passed.checked_sub(report.held_ns()?)) else {
            return;
        };
        let rtt = Span::from_ns(rtt);
        self.latest_rtt = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.smoothed_rtt = Some(match self.smoothed_rtt {
            Some(smoothed) => Span::from_ns(smoothed.ns() - smoothed.ns() / 8 + rtt.ns() / 8),
            None => rtt,
        });
    }
}

impl Endpoint for SproutSender {
    fn receive(&mut self, now: Time, _ecn: Ecn, header: &Header, body: &Body) {
        let Header::Media(Media {
            number,
            feedback: true,
            ..
        }) = *header
        else {
            return;
        };
        let Ok(report) = SproutReport::read(&body.bytes) else {
            return;
        };
        if self.report.is_some_and(|newest| number <= newest) {
            return;
        }
        // A report of packets that were never sent is not from our receiver.
        let sent = self.counters.sent_packets;
        let Some(settled) = complete(self.position, report.settled, 32) else { return };
        let Some(received) = complete(sent, u32::from(report.received), 16) else { return };
        let Some(missing) = complete(sent - received, u32::from(report.missing), 16) else { return };
        let Some(payload) = complete(self.taken, report.payload, 32) else { return };
        self.report = Some(number);
        self.count(now, &report, (received, missing, payload));
        self.forecast = report.forecast;
        for (count, ticks) in self.forecast.iter_mut().zip(1..) {
            *count = (*count).min(MAX_PER_TICK * ticks);
        }
        self.forecast_at = self.settings.clock.read(now);
        self.tick = 0;
        self.queued = self.position - settled;
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        if self.stopped {
            return None;
        }
        let clock = self.settings.clock.read(now);
        self.advance(clock);
        if self.flight == 0 {
            self.flight = self.window().min(self.supply(now));
            if self.flight == 0 {
                if self.sent_at.is_some_and(|sent| clock < sent + FALLBACK) {
                    self.wakeup = self.sleep.until(now, self.due());
                    return None;
                }
                self.empty_packets += 1;
            }
        }
        let payload = self.flight.min(u64::from(self.payload)) as u32;
        self.flight -= u64::from(payload);
        let last = self.flight == 0;
        let data = SproutData {
            position: self.position,
            young: self.young(clock),
            time_to_next_ms: if last { (FALLBACK.ns() / 1_000_000) as u16 } else { 0 },
            forecast: clock >= self.own_forecast,
            payload: payload as u16,
        };
        if data.forecast {
            self.own_forecast = clock + TICK;
        }
        self.sent.push_back(now);
        body.clear();
        data.write(&mut body.bytes);
        let outgoing = Outgoing::media(self.counters.sent_packets, data.length() as u16, false, body);
        let bytes = u64::from(COUNTED + payload);
        self.position += bytes;
        self.taken += u64::from(payload);
        self.queued += bytes;
        self.sent_at = Some(clock);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(outgoing.size);
        Some(outgoing)
    }

    fn next_wakeup(&self) -> Time {
        if self.stopped { Time::FAR } else { self.wakeup }
    }
}

impl MediaSender for SproutSender {
    fn stop(&mut self) {
        self.stopped = true;
    }

    fn snapshot(&self) -> SenderSnapshot {
        let rate = f64::from(self.forecast[0]) * UNIT as f64 * 8.0 / TICK.secs();
        SenderSnapshot {
            // An empty packet is always allowed, but only occasionally.
            cwnd: Some(Bytes::new(self.through().max(u64::from(COUNTED)))),
            latest_rtt: self.latest_rtt,
            smoothed_rtt: self.smoothed_rtt,
            min_rtt: self.min_rtt,
            in_flight: Bytes::new(self.queued),
            delivered: Bytes::new(self.delivered),
            lost_packets: self.counters.lost_packets,
            scheme: Fields {
                mode: if self.through() == 0 { "fallback" } else { "forecast" },
                values: vec![
                    ("forecast_bps", rate),
                    ("tick", self.tick as f64),
                    ("empty_packets", self.empty_packets as f64),
                ],
                ..Fields::default()
            },
            ..SenderSnapshot::default()
        }
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }
}
