//! What an acknowledgement does to a sender: deliveries, samples, losses.

use super::{Phase, Repair, Sender};
use crate::sent::State;
use crate::{Ack, Body};
use narrows_cc::{AckEvent, AckedPacket, LossCause, LostPacket};
use narrows_units::{Bytes, Span, Time};
use std::cmp::Reverse;

/// How long a lost packet is remembered in case it was only late: two round trips and this.
const LATE_GRACE: Span = Span::from_ms(50);

/// What one acknowledgement has brought.
#[derive(Default)]
pub(super) struct News {
    pub(super) bytes: u64,
    /// Newest packet delivered: its number.
    pub(super) newest: Option<u64>,
    /// A packet arrived after one that had been sent later.
    reordered: bool,
    /// A packet arrived that had been declared lost, in the current epoch or an earlier one.
    late: u64,
    late_in_epoch: u64,
    /// One of them begins the first gap in the stream.
    late_at_gap: bool,
    /// Where the oldest data lies that arrived after later data although it was sent once only.
    overtaken: Option<u64>,
}

impl Sender {
    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack, body: &Body) {
        // A peer cannot acknowledge what was never sent.
        if ack.largest >= self.sent.next_number() {
            return;
        }
        let in_flight_before = self.in_flight;
        let settled_before = self.settled;
        let known_newest = self.loss.newest();
        let mut packets = std::mem::take(&mut self.newly);
        packets.clear();
        let news = match ack.cumulative {
            None => self.take_ranges(now, ack, body, known_newest, &mut packets),
            Some(edge) => self.take_edge(now, ack, edge, &mut packets),
        };
        let Some(newest_number) = news.newest else {
            self.newly = packets;
            if let Some(edge) = ack.cumulative {
                self.on_duplicate(now, edge, in_flight_before);
            }
            self.note_marks(now, ack, in_flight_before);
            return;
        };
        self.last_activity = now;

        // Samples come from the packet sent last among those delivered now.
        let mut round_start = false;
        let mut latest_rtt = None;
        let mut rate_sample = None;
        if let Some(newest) = self.sent.get(newest_number).copied() {
            if newest.delivered >= self.round_end {
                self.round_end = self.rate.delivered;
                self.round += 1;
                round_start = true;
                self.limited_before = self.limited;
                self.limited = false;
            }
            if known_newest.is_none_or(|known| newest_number > known) {
                let rtt = now.since(newest.at);
                latest_rtt = Some(rtt);
                self.rtt.sample(rtt, round_start);
                self.probed = false;
                self.loss.on_newest(newest_number, rtt);
            }
            rate_sample = self.rate.sample(&newest, self.rtt.min());
            if let Some(sample) = rate_sample {
                self.last_rate = Some(sample.rate);
            }
        }
        self.backoffs = 0;
        if news.reordered {
            self.loss.on_reordering();
        }
        if let Some(offset) = news.overtaken {
            let distance = (self.highest - offset).div_ceil(u64::from(self.config.mss));
            self.loss.on_overtaken(distance);
        }
        if news.late > 0 {
            self.counters.spurious_losses += news.late;
            self.on_late(now, news.late_in_epoch, news.late_at_gap);
        }

        if ack.cumulative.is_some() {
            self.on_first_copy(now, ack.largest);
        }
        let lost_before = self.counters.lost_packets;
        let lost = self.detect_losses(now, in_flight_before);
        self.note_marks(now, ack, in_flight_before);
        let progress = self.settled > settled_before;
        self.leave_phase(now);
        if let Phase::Recovery(Some(reduction)) = &mut self.phase {
            let safe = progress && self.counters.lost_packets == lost_before;
            reduction.on_ack(news.bytes, self.in_flight, safe);
        }

        let marked = self.take_marked(news.bytes);
        let mut event = self.ack_event(now, in_flight_before);
        event.bytes = Bytes::new(news.bytes);
        event.ce_bytes = Bytes::new(marked);
        event.latest_rtt = latest_rtt;
        event.rate = rate_sample;
        event.lost = Bytes::new(lost);
        event.round_start = round_start;
        // What arrives beyond a gap is no sign that the path can take more (RFC 5681, section 3.1; Linux,
        // tcp_may_raise_cwnd), unless the path reorders anyway.
        event.may_grow = progress || self.loss.reorders();
        event.packets = &packets;
        self.scheme.on_ack(&event);
        self.read_allowance();
        if self.scheme.holds_back() {
            self.rate.set_app_limited(self.in_flight);
        }
        self.newly = packets;

        let horizon = now - (self.rtt.smoothed() * 2 + LATE_GRACE);
        // Beyond the reach of acknowledgements a packet may have arrived long before that is told.
        let settled = match self.config.sack_reach {
            0 => u64::MAX,
            _ => self.settled,
        };
        self.sent.forget(horizon, settled);
        self.acked.remove_below(self.sent.base());
        if progress || !self.awaits_repair() {
            self.arm_timer(now);
        }
    }

    /// What a scheme is told with each acknowledgement, whatever it acknowledges.
    #[inline]
    pub(super) fn ack_event(&self, now: Time, in_flight_before: u64) -> AckEvent<'static> {
        let mut event = AckEvent::new(now);
        event.smoothed_rtt = self.rtt.smoothed();
        event.min_rtt = self.rtt.min();
        event.delivered = Bytes::new(self.rate.delivered);
        event.lost_total = Bytes::new(self.rate.lost);
        event.round = self.round;
        event.in_flight_before = Bytes::new(in_flight_before);
        event.in_flight = Bytes::new(self.in_flight);
        event.cwnd_limited = self.limited || self.limited_before;
        event.in_recovery = self.in_recovery();
        event.phase = match &self.phase {
            Phase::Open => narrows_cc::Phase::Open,
            Phase::Recovery(_) if self.epoch_by_mark && self.epoch_losses == 0 => {
                narrows_cc::Phase::Reduced
            }
            Phase::Recovery(_) => narrows_cc::Phase::Recovery,
            Phase::Timeout => narrows_cc::Phase::Timeout,
        };
        event
    }

    /// Settles the packets that the ranges newly acknowledge.
    fn take_ranges(
        &mut self,
        now: Time,
        ack: &Ack,
        body: &Body,
        known_newest: Option<u64>,
        packets: &mut Vec<AckedPacket>,
    ) -> News {
        let mut news = News::default();
        let base = self.sent.base();
        let mut acked = std::mem::take(&mut self.acked);
        for range in body.ranges.iter().rev() {
            if range.last < base || range.last > ack.largest {
                continue;
            }
            acked.insert(range.first.max(base), range.last, |first, last| {
                for number in first..=last {
                    self.deliver(now, number, known_newest, &mut news, packets);
                }
            });
        }
        self.acked = acked;
        // Arrival times: few, and mostly for the packets at hand.
        for packet in packets.iter_mut() {
            packet.arrived = if packet.number == ack.largest {
                Some(ack.largest_arrived)
            } else {
                let told = body
                    .arrivals
                    .iter()
                    .find(|arrival| arrival.number == packet.number);
                told.map(|arrival| arrival.at)
            };
        }
        news
    }

    /// Packet `number` has arrived.
    #[inline]
    fn deliver(
        &mut self,
        now: Time,
        number: u64,
        known_newest: Option<u64>,
        news: &mut News,
        packets: &mut Vec<AckedPacket>,
    ) {
        let Some(packet) = self.sent.get_mut(number) else {
            return;
        };
        let (state, lost_in) = (packet.state, packet.lost_in);
        let (offset, length, sent) = (packet.offset, packet.length, packet.at);
        let (once, highest) = (!packet.retransmission, self.highest);
        packet.state = State::Acked;
        let bytes = u64::from(length);
        match state {
            State::Acked => return,
            State::Outstanding => {
                self.in_flight -= bytes;
                news.reordered |= known_newest.is_some_and(|known| number < known);
            }
            State::Lost => {
                news.reordered = true;
                news.late += 1;
                news.late_in_epoch += u64::from(lost_in == self.epoch);
                news.late_at_gap |= offset <= self.settled && offset + bytes > self.settled;
            }
        }
        if once && offset < highest {
            news.overtaken = Some(news.overtaken.map_or(offset, |lowest| lowest.min(offset)));
        }
        self.highest = self.highest.max(offset + bytes);
        news.bytes += bytes;
        news.newest = Some(number);
        self.counters.acked_packets += 1;
        self.rate.on_delivered(now, bytes);
        packets.push(AckedPacket {
            number,
            bytes: u32::from(length),
            sent,
            arrived: None,
        });

        self.settle(offset, bytes);
    }

    /// Declares packets lost that were overtaken for too long; returns their bytes.
    pub(super) fn detect_losses(&mut self, now: Time, in_flight_before: u64) -> u64 {
        self.reordering_timer = Time::FAR;
        if !self.config.sack {
            return self.detect_next_hole(now, in_flight_before);
        }
        let Some(newest) = self.loss.newest() else {
            return 0;
        };
        let lowest = self.sent.lowest_outstanding();
        if lowest > newest {
            return 0;
        }
        // What counting has judged stays judged: a repair that was lost keeps the lowest number where it is until
        // the timeout, however much is sent meanwhile.
        let lowest = if self.config.rack {
            lowest
        } else {
            lowest.max(self.judged)
        };
        if self.awaits_the_gap() {
            return 0;
        }
        let overtaken = self.overtaking(lowest, newest);
        if !self.config.rack {
            return self.detect_by_count(now, lowest, newest, overtaken, in_flight_before);
        }
        let recovering = !matches!(self.phase, Phase::Open);
        let window = self
            .loss
            .window(self.rtt.min(), self.rtt.smoothed(), recovering, overtaken);
        let mut lost = Lost::default();
        for number in lowest..newest {
            let Some(packet) = self.sent.get(number) else {
                continue;
            };
            if packet.state != State::Outstanding {
                continue;
            }
            match self.loss.deadline(number, packet.at, window) {
                Some(deadline) if deadline <= now => self.declare_lost(number, &mut lost),
                Some(deadline) => {
                    // Later packets have later deadlines. An acknowledgement may find the packet lost sooner than
                    // the timer (Linux, tcp_rack_mark_lost).
                    self.reordering_timer = deadline + self.config.timer_slack();
                    break;
                }
                None => break,
            }
        }
        self.report_losses(now, LossCause::Reordering, &lost, in_flight_before);
        lost.bytes
    }

    /// Takes a packet out of flight and queues its data for repair.
    pub(super) fn declare_lost(&mut self, number: u64, lost: &mut Lost) {
        // The epoch that the loss will belong to, if it opens one.
        let epoch = self.epoch + u32::from(matches!(self.phase, Phase::Open));
        let Some(packet) = self.sent.get_mut(number) else {
            return;
        };
        packet.state = State::Lost;
        packet.lost_in = epoch;
        let (offset, length) = (packet.offset, packet.length);
        self.losses.push(LostPacket {
            number,
            bytes: u32::from(length),
            sent: packet.at,
            in_flight_at_send: Bytes::new(packet.in_flight),
            delivered_before: Bytes::new(packet.delivered),
            lost_before: Bytes::new(packet.lost_before),
            app_limited: packet.app_limited,
        });
        self.rate.on_lost(u64::from(length));
        lost.packets += 1;
        lost.bytes += u64::from(length);
        lost.newest_sent = packet.at;
        lost.repairs |= packet.retransmission;
        let taken = u64::from(length).min(self.in_flight);
        self.in_flight -= taken;
        self.assumed -= (u64::from(length) - taken).min(self.assumed);
        self.counters.lost_packets += 1;
        if self.config.reliable {
            // The oldest data first (RFC 6675, NextSeg): a repair that is lost itself must not wait behind all losses
            // since, or an epoch that ends with it never does.
            self.repairs.push(Reverse(Repair {
                offset,
                length,
                number,
            }));
        } else {
            // Given up: for the stream that is as good as delivered.
            self.settle(offset, u64::from(length));
        }
    }

    /// Notes that nothing more is to be done about a part of the stream.
    #[inline]
    fn settle(&mut self, offset: u64, bytes: u64) {
        // Mostly in order.
        if offset == self.settled && self.stream.is_empty() {
            self.settled += bytes;
        } else if offset + bytes > self.settled && bytes > 0 {
            self.stream
                .insert(offset.max(self.settled), offset + bytes - 1, |_, _| {});
            self.settled = self.stream.first_missing(self.settled);
            self.stream.remove_below(self.settled);
        }
    }
}

/// Packets just declared lost.
#[derive(Clone, Copy, Default)]
pub(super) struct Lost {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) newest_sent: Time,
    /// One of them had repeated data.
    pub(super) repairs: bool,
}
