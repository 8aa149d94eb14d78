//! Simulated connections: events as reported by the transport, with consistent members, driven by random numbers or the
//! bytes of a fuzzer.

use super::MSS;
pub(super) use super::decisions::{Decisions, Event};
use crate::{
    AckEvent, AckedPacket, CaState, EcnEvent, LossCause, LossEvent, LostPacket, RateSample,
    SendEvent, SpuriousLossEvent,
};
use narrows_units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// Maximum number of packets acknowledged at once.
const MAX_ACKED: u64 = 20;
/// Offset of the peer's clock.
const CLOCK_OFFSET: Span = Span::from_ms(12_345);

/// A sent packet, with the state at its sending.
#[derive(Clone, Copy)]
struct Packet {
    number: u64,
    sent: Time,
    in_flight: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    app_limited: bool,
}

/// A connection.
pub(super) struct History<'a> {
    decisions: Decisions<'a>,
    pub(super) now: Time,
    /// Payload bytes delivered.
    pub(super) delivered: u64,
    /// Events that follow from the last decision.
    pending: VecDeque<Event>,
    base_rtt: Span,
    min_rtt: Span,
    smoothed_rtt: Span,
    next_number: u64,
    flights: VecDeque<Packet>,
    /// Losses of the current epoch, which may turn out to be spurious.
    missing: Vec<Packet>,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    app_limited_until: u64,
    last_activity: Time,
    round: u64,
    round_end: u64,
    phase: CaState,
    cause: LossCause,
    /// The epoch ends when this packet is acknowledged: the data in flight when it began has then been acknowledged or
    /// lost, and lost data has been retransmitted.
    phase_end: u64,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
    /// Lost packets whose data has not been retransmitted.
    repairs: u64,
}

impl<'a> History<'a> {
    pub(super) fn new(mut decisions: Decisions<'a>) -> Self {
        // From a data centre to a satellite and beyond.
        let base_rtt = Span::from_us(10u64.pow(2 + decisions.below(5) as u32));
        History {
            decisions,
            now: Time::ZERO,
            delivered: 0,
            pending: VecDeque::new(),
            base_rtt,
            min_rtt: Span::MAX,
            smoothed_rtt: Span::ZERO,
            next_number: 1,
            flights: VecDeque::new(),
            missing: Vec::new(),
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost: 0,
            app_limited_until: 0,
            last_activity: Time::ZERO,
            round: 0,
            round_end: 0,
            phase: CaState::Open,
            cause: LossCause::Reordering,
            phase_end: 0,
            timeouts: 0,
            repairs: 0,
        }
    }

    /// True if all decisions were made and all events returned.
    pub(super) fn is_over(&self) -> bool {
        self.decisions.is_over() && self.pending.is_empty()
    }

    /// The next event of a sender with a window of `cwnd` bytes.
    pub(super) fn next(&mut self, cwnd: u64) -> Event {
        if self.pending.is_empty() {
            self.decide(cwnd);
        }
        self.pending.pop_front().expect("a decision has an event")
    }

    fn decide(&mut self, cwnd: u64) {
        let pause = if self.decisions.chance(0.001) {
            self.base_rtt * 1000
        } else {
            part(self.base_rtt, 4)
        };
        self.pass(pause);
        let roll = self.decisions.below(1000);
        // Time passes without events.
        let silence = if self.timeouts > 0 { 300 } else { 10 };
        let room = self.in_flight() + MSS <= cwnd.max(MSS);
        if self.flights.is_empty() || (roll < 450 && room) {
            self.send();
        } else if roll >= 1000 - silence {
            self.timeout();
        } else if (450..455).contains(&roll) && !self.missing.is_empty() {
            self.all_were_late();
        } else {
            self.ack();
        }
    }

    fn pass(&mut self, most: Span) {
        self.now += Span::from_ns(self.decisions.below(most.ns() + 1));
    }

    fn in_flight(&self) -> u64 {
        self.flights.len() as u64 * MSS
    }

    fn send(&mut self) {
        let mut idle = None;
        if self.flights.is_empty() {
            if self.decisions.chance(0.5) {
                self.pass(Span::from_ms(2_000));
            }
            idle = Some(self.now.since(self.last_activity));
            (self.first_sent_at, self.delivered_at) = (self.now, self.now);
        }
        if self.decisions.chance(0.02) {
            self.app_limited_until = (self.delivered + self.in_flight()).max(1);
        }
        let flight = Packet {
            number: self.next_number,
            sent: self.now,
            in_flight: self.in_flight() + MSS,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            app_limited: self.app_limited_until > 0,
        };
        self.flights.push_back(flight);
        self.next_number += 1;
        self.last_activity = self.now;
        let mut send = SendEvent::new(self.now, flight.number, Bytes::new(MSS));
        send.in_flight = Bytes::new(self.in_flight());
        send.idle = idle;
        send.app_limited = flight.app_limited;
        send.retransmission = self.repairs > 0;
        self.repairs = self.repairs.saturating_sub(1);
        self.pending.push_back(Event::Send(send));
    }

    /// An acknowledgement; it may reveal losses among earlier packets.
    fn ack(&mut self) {
        let before = self.in_flight();
        let count = self.flights.len() as u64;
        let skipped = if count > 1 && self.decisions.chance(0.05) {
            1 + self.decisions.below((count - 1).min(5))
        } else {
            0
        };
        let acked = 1 + self.decisions.below((count - skipped).min(MAX_ACKED));
        let lost: Vec<Packet> = self.flights.drain(..skipped as usize).collect();
        let arrived: Vec<Packet> = self.flights.drain(..acked as usize).collect();
        let newest = arrived[arrived.len() - 1];
        // Nothing is faster than the path, and occasionally a queue builds up.
        let queue = if self.decisions.chance(0.3) { 3 } else { 0 };
        self.now = self.now.max(newest.sent + self.base_rtt);
        self.pass(part(self.base_rtt, 8) + self.base_rtt * queue);
        let rtt = self.now.since(newest.sent);
        self.min_rtt = self.min_rtt.min(rtt);
        self.smoothed_rtt = match self.smoothed_rtt {
            Span::ZERO => rtt,
            smoothed => part(smoothed * 7 + rtt, 8),
        };
        self.timeouts = 0;
        if !lost.is_empty() {
            self.lose(LossCause::Reordering, lost, before);
        }
        let mut ack = AckEvent::new(self.now);
        ack.latest_rtt = Some(rtt);
        ack.lost = Bytes::new(skipped * MSS);
        if self.decisions.chance(0.1) {
            let marked = 1 + self.decisions.below(acked);
            ack.ce_bytes = Bytes::new(marked * MSS);
            let mut ecn = EcnEvent::new(self.now, Bytes::new(before));
            ecn.packets = marked;
            ecn.new_epoch = self.phase == CaState::Open;
            self.pending.push_back(Event::Ecn(ecn));
            if self.phase == CaState::Open {
                self.open(CaState::Cwr, LossCause::Reordering);
            }
        }
        if self.phase != CaState::Open && newest.number >= self.phase_end {
            self.phase = CaState::Open;
            self.pending.push_back(Event::RecoveryExit(self.now));
        }
        self.tell(ack, &arrived, before);
    }

    /// Completes an acknowledgement of `arrived` packets.
    fn tell(&mut self, mut ack: AckEvent<'static>, arrived: &[Packet], before: u64) {
        let newest = arrived[arrived.len() - 1];
        let bytes = arrived.len() as u64 * MSS;
        self.delivered += bytes;
        self.delivered_at = self.now;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.last_activity = self.now;
        if newest.delivered >= self.round_end {
            self.round_end = self.delivered;
            self.round += 1;
            ack.round_start = true;
        }
        ack.bytes = Bytes::new(bytes);
        ack.smoothed_rtt = self.smoothed_rtt;
        ack.min_rtt = self.min_rtt;
        ack.rate = self.sample(&newest);
        ack.delivered = Bytes::new(self.delivered);
        ack.lost_total = Bytes::new(self.lost);
        ack.round = self.round;
        ack.in_flight_before = Bytes::new(before);
        ack.in_flight = Bytes::new(self.in_flight());
        ack.cwnd_limited = self.decisions.chance(0.8);
        ack.phase = self.phase;
        ack.in_recovery = matches!(self.phase, CaState::Cwr | CaState::Recovery);
        // The arrival times by the peer's clock; the peer reports only a few.
        let arrival = self.now - part(self.base_rtt, 2) + CLOCK_OFFSET;
        let told = self.decisions.below(4);
        let packets = arrived
            .iter()
            .rev()
            .zip(0..)
            .map(|(flight, index)| AckedPacket {
                number: flight.number,
                bytes: MSS as u32,
                sent: flight.sent,
                arrived: (index <= told).then_some(arrival),
            });
        let mut packets: Vec<AckedPacket> = packets.collect();
        packets.reverse();
        self.pending.push_back(Event::Ack(Box::new(ack), packets));
    }

    fn sample(&mut self, newest: &Packet) -> Option<RateSample> {
        self.first_sent_at = newest.sent;
        let sending = newest.sent.since(newest.first_sent_at);
        let arriving = self.delivered_at.since(newest.delivered_at);
        let interval = sending.max(arriving);
        if interval.is_zero() || interval < self.min_rtt {
            return None;
        }
        let delivered = Bytes::new(self.delivered - newest.delivered);
        Some(RateSample {
            rate: Rate::of(delivered, interval),
            delivered,
            interval,
            app_limited: newest.app_limited,
            prior_delivered: Bytes::new(newest.delivered),
            in_flight_at_send: Bytes::new(newest.in_flight),
            lost: Bytes::new(self.lost - newest.lost),
        })
    }

    /// Declares packets lost that are no longer in flight.
    fn lose(&mut self, cause: LossCause, lost: Vec<Packet>, before: u64) {
        let bytes = lost.len() as u64 * MSS;
        let packets = lost.iter().map(|flight| LostPacket {
            number: flight.number,
            bytes: MSS as u32,
            sent: flight.sent,
            in_flight_at_send: Bytes::new(flight.in_flight),
            delivered_before: Bytes::new(flight.delivered),
            lost_before: Bytes::new(flight.lost),
            app_limited: flight.app_limited,
        });
        let packets: Vec<LostPacket> = packets.collect();
        self.lost += bytes;
        self.repairs += lost.len() as u64;
        let mut loss = LossEvent::new(self.now, cause, Bytes::new(bytes));
        loss.packets = lost.len() as u64;
        loss.lost_total = Bytes::new(self.lost);
        loss.newest_sent = lost[lost.len() - 1].sent;
        loss.in_flight = Bytes::new(before);
        loss.new_epoch = match cause {
            LossCause::Reordering => self.phase == CaState::Open,
            LossCause::Timeout | LossCause::Persistent => self.timeouts == 0,
        };
        loss.smoothed_rtt = self.smoothed_rtt;
        if loss.new_epoch {
            let phase = match cause {
                LossCause::Reordering => CaState::Recovery,
                LossCause::Timeout | LossCause::Persistent => CaState::Loss,
            };
            self.open(phase, cause);
        } else {
            self.phase_end = self.phase_end.max(self.last_of_epoch());
            if self.phase == CaState::Cwr {
                // An epoch opened by marks continues with losses.
                self.phase = CaState::Recovery;
            }
        }
        self.missing.extend(lost);
        self.pending.push_back(Event::Loss(loss, packets));
    }

    fn open(&mut self, phase: CaState, cause: LossCause) {
        self.phase = phase;
        self.cause = cause;
        self.phase_end = self.last_of_epoch();
        self.missing.clear();
    }

    fn last_of_epoch(&self) -> u64 {
        self.next_number + self.repairs - 1
    }

    /// No acknowledgement arrives for long: everything in flight is lost.
    fn timeout(&mut self) {
        let before = self.in_flight();
        self.now += (self.smoothed_rtt * 2).max(Span::from_ms(200));
        let cause = if self.timeouts >= 3 {
            LossCause::Persistent
        } else {
            LossCause::Timeout
        };
        let lost = self.flights.drain(..).collect();
        self.lose(cause, lost, before);
        self.timeouts += 1;
    }

    /// All packets that the epoch declared lost arrive after all.
    fn all_were_late(&mut self) {
        let before = self.in_flight();
        let late = std::mem::take(&mut self.missing);
        // Forgotten, if they were lost repeatedly.
        let first = late.len().saturating_sub(MAX_ACKED as usize);
        if self.phase != CaState::Open {
            self.phase = CaState::Open;
            let spurious = SpuriousLossEvent::new(self.now, self.cause);
            self.pending.push_back(Event::Spurious(spurious));
        }
        self.timeouts = 0;
        self.min_rtt = self.min_rtt.min(self.now.since(late[late.len() - 1].sent));
        self.tell(AckEvent::new(self.now), &late[first..], before);
    }
}

fn part(span: Span, of: u64) -> Span {
    Span::from_ns(span.ns() / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks all guarantees that a scheme may rely on, for many connections.
    #[test]
    fn histories_are_in_agreement_with_themselves() {
        let (mut phases, mut causes, mut spurious) = ([0u32; 4], [0u32; 3], 0u32);
        for seed in 0..40 {
            let mut history = History::new(Decisions::by_chance(seed));
            let (mut now, mut sent, mut delivered, mut lost, mut newest) = (Time::ZERO, 0, 0, 0, 0);
            for _ in 0..3_000 {
                match history.next(30 * MSS) {
                    Event::Send(send) => {
                        assert_eq!(send.number, newest + 1);
                        assert!(send.in_flight.get() >= MSS && send.now >= now);
                        assert_eq!(send.idle.is_some(), send.in_flight.get() == MSS);
                        (now, newest, sent) = (send.now, send.number, sent + MSS);
                    }
                    Event::Ack(ack, packets) => {
                        assert!(ack.now >= now);
                        now = ack.now;
                        delivered += ack.bytes.get();
                        assert_eq!(packets.len() as u64 * MSS, ack.bytes.get());
                        assert!(packets.is_sorted_by_key(|packet| packet.number));
                        assert!(packets.iter().all(|packet| packet.sent <= now));
                        assert_eq!(
                            (ack.delivered.get(), ack.lost_total.get()),
                            (delivered, lost)
                        );
                        assert!(ack.in_flight <= ack.in_flight_before);
                        assert!(ack.ce_bytes <= ack.bytes && ack.lost <= ack.lost_total);
                        assert!(ack.latest_rtt.is_none_or(|rtt| rtt >= ack.min_rtt));
                        if let Some(rate) = ack.rate {
                            assert!(rate.prior_delivered + rate.delivered == ack.delivered);
                            assert!(rate.interval >= ack.min_rtt);
                            assert!(rate.in_flight_at_send.get() >= MSS);
                            assert!(rate.lost <= ack.lost_total);
                        }
                        phases[ack.phase as usize] += 1;
                    }
                    Event::Loss(loss, packets) => {
                        lost += loss.bytes.get();
                        assert_eq!(packets.len() as u64, loss.packets);
                        assert_eq!(loss.lost_total.get(), lost);
                        assert!(loss.in_flight >= loss.bytes);
                        assert!(packets.iter().all(|packet| {
                            packet.in_flight_at_send.get() >= MSS
                                && packet.delivered_before.get() <= delivered
                                && packet.lost_before.get() < lost
                                && packet.sent <= loss.newest_sent
                        }));
                        causes[loss.cause as usize] += 1;
                    }
                    Event::Ecn(ecn) => assert!(ecn.packets > 0 && ecn.in_flight.get() >= MSS),
                    Event::Spurious(_) => spurious += 1,
                    Event::RecoveryExit(at) => assert!(at >= now),
                    Event::Duplicate(_) | Event::Timer(_) => unreachable!("not part of a history"),
                }
            }
            assert!(
                sent > delivered / 2,
                "{sent} bytes sent, {delivered} delivered"
            );
        }
        // A kit in which some event never occurs tests less than it claims.
        let least = 20;
        assert!(phases.iter().all(|&count| count > least), "{phases:?}");
        assert!(causes.iter().all(|&count| count > 0), "{causes:?}");
        assert!(spurious > least, "{spurious}");
    }
}
