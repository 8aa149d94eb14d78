//! The end that listens: it infers the rate of the link from the arrivals in each tick, and reports forecasts.

use super::forecast::{Belief, Forecast, Tables};
use super::message::{COUNTED, SproutData, SproutReport};
use super::sleep::Sleep;
use super::{SproutSettings, TICK, UNIT};
use crate::{MediaReceiver, MediaSetup};
use narrows_transport::wire;
use narrows_transport::{Body, Endpoint, Header, Media, Outgoing, RangeSet, ReceiverCounters};
use narrows_units::{Ecn, Span, Time};
use std::collections::VecDeque;

/// Time between reports.
const REPORT_INTERVAL: Span = Span::from_ms(20);
/// After this much silence a flow counts as ended, and reports pause until the next packet.
const GIVEN_UP: Span = Span::from_ms(10_000);
/// More ticks than this at once change nothing: 30 s without a packet are an outage, regardless of the earlier belief.
const MAX_TICKS: u64 = 1500;
/// Maximum number of packets remembered; older ones count as lost.
const MAX_REMEMBERED: usize = 8192;
/// Packet numbers further below the largest than this are forgotten, and no longer recognised as duplicates.
const NUMBERS_KEPT: u64 = 8192;

/// The bytes that are received or lost.
#[derive(Debug, Default)]
struct Settled {
    /// Everything before this position is one or the other.
    floor: u64,
    /// Positions and lengths from there on, ascending.
    received: VecDeque<(u64, u32)>,
    /// Sum of the lengths.
    bytes: u64,
}

impl Settled {
    fn add(&mut self, position: u64, length: u32, young: u32) {
        self.raise(position.saturating_sub(u64::from(young)));
        // Almost always after all others.
        let index = match self.received.back() {
            Some((last, _)) if *last >= position => {
                self.received.partition_point(|(known, _)| *known < position)
            }
            _ => self.received.len(),
        };
        let copy = self.received.get(index).is_some_and(|(known, _)| *known == position);
        if copy || position < self.floor {
            return;
        }
        self.received.insert(index, (position, length));
        self.bytes += u64::from(length);
        if self.received.len() > MAX_REMEMBERED {
            let (first, length) = self.received[0];
            self.raise(first.saturating_add(u64::from(length.max(1))));
        }
    }

    fn raise(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        while let Some((position, length)) = self.received.front().copied() {
            if position >= self.floor {
                break;
            }
            self.received.pop_front();
            self.bytes -= u64::from(length);
        }
    }

    fn total(&self) -> u64 {
        self.floor.saturating_add(self.bytes)
    }
}

/// Sprout's receiver.
#[derive(Debug)]
pub(super) struct SproutReceiver {
    settings: SproutSettings,
    sleep: Sleep,
    belief: Belief,
    /// Ticks before this have been taken into account; the first one begins with the first packet.
    ticked: Time,
    /// Silence before this was announced.
    silent_until: Time,
    /// Packets, in units, since `ticked`.
    count: f64,
    settled: Settled,
    /// The forecast for `ticked`, once it is requested.
    forecast: Option<Forecast>,
    /// In clock time.
    next_report: Time,
    /// When the end wakes for it.
    wakeup: Time,
    heard_at: Time,
    /// True if anything has arrived.
    begun: bool,
    /// When the packet with the largest number arrived.
    largest_at: Time,
    number: u64,
    largest: u64,
    numbers: RangeSet,
    received: u64,
    counters: ReceiverCounters,
}

impl SproutReceiver {
    pub(super) fn new(settings: SproutSettings, setup: MediaSetup) -> Self {
        let now = settings.clock.read(setup.now);
        SproutReceiver {
            sleep: Sleep::new(settings.clock, settings.params.lateness, setup.random),
            belief: Belief::new(Tables::from_model(settings.model)),
            settings,
            ticked: now,
            silent_until: now,
            count: 0.0,
            settled: Settled::default(),
            forecast: None,
            next_report: Time::FAR,
            wakeup: Time::FAR,
            heard_at: now,
            begun: false,
            largest_at: now,
            number: 0,
            largest: 0,
            numbers: RangeSet::default(),
            received: 0,
            counters: ReceiverCounters::default(),
        }
    }

    /// Accounts for the ticks that have passed.
    fn advance(&mut self, now: Time) {
        let ticks = now.since(self.ticked).ns() / TICK.ns();
        if ticks > MAX_TICKS {
            self.ticked += TICK * (ticks - MAX_TICKS);
        }
        while self.ticked + TICK < now {
            let seen = self.count > 0.0 || self.ticked >= self.silent_until;
            // Any arrival is a sign of life.
            let count = if self.count > 0.0 {
                self.count.round().max(1.0)
            } else {
                0.0
            };
            self.belief.tick(seen.then_some(count));
            self.count = 0.0;
            self.ticked += TICK;
            self.forecast = None;
        }
    }
}

impl Endpoint for SproutReceiver {
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, body: &Body) {
        let Header::Media(Media {
            number,
            length,
            feedback: false,
        }) = *header
        else {
            return;
        };
        let length = u32::from(length);
        let Ok(data) = SproutData::read(&body.bytes, length) else {
            return;
        };
        self.counters.on_packet(wire::size(header, body), ecn);
        let mut new = number.saturating_add(NUMBERS_KEPT) > self.largest;
        if new {
            new = false;
            if number > self.largest || !self.begun {
                self.largest_at = now;
            }
            self.numbers.insert(number, number, |_, _| new = true);
            self.largest = self.largest.max(number);
            self.numbers
                .remove_below(self.largest.saturating_sub(NUMBERS_KEPT));
        }
        if new {
            self.received += 1;
            self.counters.goodput_bytes += u64::from(data.payload);
        } else {
            self.counters.duplicate_packets += 1;
        }

        let first = !std::mem::replace(&mut self.begun, true);
        let clock = self.settings.clock.read(now);
        if first {
            // Before that, nothing was expected.
            self.ticked = clock;
            self.silent_until = clock;
            self.next_report = clock + REPORT_INTERVAL;
        } else if self.next_report == Time::FAR {
            self.next_report = clock;
        }
        self.advance(clock);
        self.count += f64::from(data.payload.max(1)) / UNIT as f64;
        let silence = Span::from_ms(u64::from(data.time_to_next_ms));
        self.silent_until = self.silent_until.max(self.ticked + silence);
        self.settled.add(data.position, COUNTED + u32::from(data.payload), data.young);
        self.heard_at = clock;
    }

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        let clock = self.settings.clock.read(now);
        if clock < self.next_report {
            self.wakeup = self.sleep.until(now, self.next_report);
            return None;
        }
        self.advance(clock);
        if clock.since(self.heard_at) > GIVEN_UP {
            (self.next_report, self.wakeup) = (Time::FAR, Time::FAR);
            return None;
        }
        self.next_report = clock + REPORT_INTERVAL;
        let quantile = 1.0 - self.settings.params.confidence;
        let forecast = *(self.forecast).get_or_insert_with(|| self.belief.forecast(quantile));
        body.clear();
        let report = SproutReport {
            settled: self.settled.total() as u32,
            forecast,
            received: self.received as u16,
            missing: (self.largest + 1).saturating_sub(self.received) as u16,
            payload: self.counters.goodput_bytes as u32,
            held: SproutReport::held(now.since(self.largest_at).ns()),
        };
        report.write(&mut body.bytes);
        let number = self.number;
        self.number += 1;
        Some(Outgoing::media(number, SproutReport::SIZE, true, body))
    }

    fn next_wakeup(&self) -> Time {
        self.wakeup
    }
}

impl MediaReceiver for SproutReceiver {
    fn counters(&self) -> ReceiverCounters {
        self.counters
    }
}
