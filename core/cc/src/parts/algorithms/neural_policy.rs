//! The common part of Indigo and Muses: the five actions on the window, the records of each packet, and averages over a
//! step.

use crate::parts::datagrams::{DATAGRAMS, GAPS_ARE_LOSSES, Setting, settings, timeout};
use crate::{AckedPacket, Fields, LossEvent, SendEvent};
use narrows_units::{Bytes, Span, Time};
use std::collections::VecDeque;

/// The transport of their senders: datagrams, each acknowledged, on a clock of milliseconds.
pub const TRANSPORT: &[Setting] = &settings::<9>(&[
    &DATAGRAMS,
    &GAPS_ARE_LOSSES,
    &[("clock", "1000000")],
    &timeout("60000000000"),
]);

/// A decision is made with the first acknowledgement more than this time after the last.
pub const STEP: Span = Span::from_ms(10);
/// Number of actions: the window's half, ten packets less, the same, ten more, twice.
pub const ACTIONS: usize = 5;
/// Packets overtaken by this many others are forgotten, whether or not they arrive.
const MAX_OVERTAKEN: u64 = 1_024;

/// The window after an action, in packets.
pub fn window_after(action: usize, window: f64) -> f64 {
    match action {
        0 => window / 2.0,
        1 => window - 10.0,
        2 => window,
        3 => window + 10.0,
        _ => window * 2.0,
    }
}

/// An exponential average with gain 1/8, initialised with the first value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ewma(Option<f64>);

impl Ewma {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.0 = Some(
            self.0
                .map_or(value, |before| before * 7.0 / 8.0 + value / 8.0),
        );
    }

    /// The average, if any value was added.
    pub fn get(self) -> Option<f64> {
        self.0
    }
}

/// Averages over a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Queueing delay in ms.
    pub delay: Ewma,
    /// Delivery rate in Mbit/s.
    pub delivery: Ewma,
    /// Sending rate in Mbit/s.
    pub sending: Ewma,
}

impl Step {
    /// Adds an acknowledged packet with a queueing delay of `delay_ms`.
    pub fn add(&mut self, delay_ms: f64, echo: Option<Echo>) {
        self.delay.add(delay_ms);
        if let Some(echo) = echo {
            self.delivery.add(echo.delivery_mbps);
            self.sending.add(echo.send_mbps);
        }
    }

    /// The averages, for plots.
    pub fn trace(&self, fields: &mut Fields) {
        let values = [
            ("queueing_delay_ms", self.delay),
            ("delivery_mbps", self.delivery),
            ("send_mbps", self.sending),
        ];
        let known = values
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.get()?)));
        fields.values.extend(known);
    }
}

/// Bytes in flight, and one packet that may be sent although the window is full.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Payload of a full packet in bytes.
    pub mss: u64,
    /// Bytes in flight.
    pub bytes: u64,
    /// True if one packet may be sent regardless of the window.
    pub regardless: bool,
}

impl Flight {
    /// Nothing in flight, for packets of `mss` bytes.
    pub fn new(mss: u64) -> Self {
        Flight {
            mss,
            bytes: 0,
            regardless: false,
        }
    }

    /// A packet was sent.
    pub fn on_send(&mut self, send: &SendEvent) {
        self.bytes = send.in_flight.get();
        self.regardless = false;
    }

    /// Packets were lost.
    pub fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.bytes = loss.in_flight.get().saturating_sub(loss.bytes.get());
    }

    /// Bytes that a window of this many packets allows in flight: another packet is sent as long as fewer are in
    /// flight.
    pub fn cwnd(&self, window: f64) -> Bytes {
        let window = window.ceil() as u64 * self.mss;
        let least = if self.regardless {
            self.bytes + self.mss
        } else {
            0
        };
        Bytes::new(window.max(least))
    }
}

/// Counters of the sender when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtSend {
    /// Bytes sent before it.
    pub sent: u64,
    /// Bytes delivered, and when the last of them were.
    pub delivered: u64,
    /// See `delivered`.
    pub delivered_at: Time,
    /// The sender was application-limited: the packet says nothing about the window.
    pub app_limited: bool,
}

/// Measurements of an acknowledged packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo {
    /// The counters when the packet was sent.
    pub then: AtSend,
    /// Rates since then in Mbit/s: delivered and sent.
    pub delivery_mbps: f64,
    /// See `delivery_mbps`.
    pub send_mbps: f64,
    /// Round trip in ms.
    pub rtt_ms: f64,
}

/// The sender's counters and a snapshot of them for each packet, which the originals write into their packets for the
/// receiver to return.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Bytes counted for a packet beyond its payload.
    header: u64,
    now: AtSend,
    /// Number of the first packet remembered.
    first: u64,
    packets: VecDeque<AtSend>,
}

impl Counters {
    /// Counters at `now` with nothing sent; a packet counts as its payload plus `header`.
    pub fn new(header: u64, now: Time) -> Self {
        let now = AtSend {
            delivered_at: now,
            ..AtSend::default()
        };
        Counters {
            header,
            now,
            first: 0,
            packets: VecDeque::with_capacity(32),
        }
    }

    /// A packet is sent.
    pub fn on_send(&mut self, send: &SendEvent) {
        if self.first + self.packets.len() as u64 != send.number {
            // Numbers are consecutive; otherwise the snapshots would belong to other packets.
            self.packets.clear();
            self.first = send.number;
        }
        self.packets.push_back(AtSend {
            app_limited: send.app_limited,
            ..self.now
        });
        self.now.sent += send.bytes.get() + self.header;
    }

    /// A packet is acknowledged at `now`; `None` if it has been forgotten.
    pub fn on_ack(&mut self, now: Time, packet: &AckedPacket) -> Option<Echo> {
        self.now.delivered += u64::from(packet.bytes) + self.header;
        self.now.delivered_at = now;
        let index = packet.number.checked_sub(self.first)?;
        let then = *self.packets.get(usize::try_from(index).ok()?)?;
        let old = index.saturating_sub(MAX_OVERTAKEN);
        self.packets.drain(..old as usize);
        self.first += old;
        let rtt_ms = ms(now.since(packet.sent));
        // 8 bits per byte, 1000 bits per ms for a Mbit/s; with a clock granularity of 1 ms the interval may be zero.
        let mbps = |bytes: u64, ms: f64| 0.008 * bytes as f64 / ms.max(1.0);
        Some(Echo {
            then,
            delivery_mbps: mbps(
                self.now.delivered - then.delivered,
                ms(now.since(then.delivered_at)),
            ),
            send_mbps: mbps(self.now.sent - then.sent, rtt_ms),
            rtt_ms,
        })
    }

    /// Bytes delivered.
    pub fn delivered(&self) -> u64 {
        self.now.delivered
    }
}

/// A span in ms.
pub fn ms(span: Span) -> f64 {
    span.ns() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(counters: &mut Counters, number: u64, bytes: u64) {
        counters.on_send(&SendEvent::new(Time::ZERO, number, Bytes::new(bytes)));
    }

    #[test]
    fn the_actions_are_those_of_the_networks() {
        let after: Vec<f64> = (0..ACTIONS)
            .map(|action| window_after(action, 25.0))
            .collect();
        assert_eq!(after, [12.5, 15.0, 25.0, 35.0, 50.0]);
    }

    #[test]
    fn an_average_begins_with_its_first_value() {
        let mut average = Ewma::default();
        assert_eq!(average.get(), None);
        average.add(8.0);
        average.add(16.0);
        assert_eq!(average.get(), Some(9.0));
    }

    #[test]
    fn rates_count_from_when_a_packet_was_sent() {
        let at = |ms: u64| Time::ZERO + Span::from_ms(ms);
        let mut counters = Counters::new(100, at(0));
        let packet = |number, ms| AckedPacket {
            number,
            bytes: 900,
            sent: at(ms),
            arrived: None,
        };
        for number in 5..10 {
            send(&mut counters, number, 900);
        }
        // Sent at 0 with nothing before it: 1000 bytes delivered and 5000 sent within 40 ms.
        let echo = counters.on_ack(at(40), &packet(5, 0)).unwrap();
        assert_eq!(
            (echo.delivery_mbps, echo.send_mbps, echo.rtt_ms),
            (0.2, 1.0, 40.0)
        );
        send(&mut counters, 10, 900);
        // Packets 6 and 10; the latter was sent when 1000 bytes had been delivered at 40 ms.
        counters.on_ack(at(50), &packet(6, 0)).unwrap();
        let echo = counters.on_ack(at(90), &packet(10, 40)).unwrap();
        assert_eq!((echo.then.sent, echo.then.delivered), (5_000, 1_000));
        // 2000 bytes in 50 ms, 1000 in 50 ms: both lower than with 1 ms.
        assert!((echo.delivery_mbps - 0.32).abs() < 1e-12 && (echo.send_mbps - 0.16).abs() < 1e-12);
        // Within one clock step a millisecond is assumed.
        send(&mut counters, 11, 900);
        assert_eq!(
            counters.on_ack(at(90), &packet(11, 90)).unwrap().send_mbps,
            8.0
        );
    }

    #[test]
    fn packets_far_behind_are_forgotten() {
        let mut counters = Counters::new(0, Time::ZERO);
        for number in 0..10_000 {
            send(&mut counters, number, 1);
            let packet = AckedPacket {
                number,
                bytes: 1,
                sent: Time::ZERO,
                arrived: None,
            };
            assert!(counters.on_ack(Time::ZERO, &packet).is_some());
        }
        assert!(counters.packets.len() <= MAX_OVERTAKEN as usize + 1);
        let old = AckedPacket {
            number: 3,
            bytes: 1,
            sent: Time::ZERO,
            arrived: None,
        };
        assert!(counters.on_ack(Time::ZERO, &old).is_none());
    }
}
