//! Acknowledgements: deliveries, RTT and rate samples, losses.

use super::{CongestionState, Retransmission, Sender};
use crate::sent_packets::PacketState;
use crate::{Ack, Body, Range, RangeSet};
use narrows_cc::{AckEvent, AckedPacket, LossCause, LostPacket};
use narrows_units::{Bytes, Span, Time};
use std::cmp::Reverse;

/// A lost packet is remembered for two round trips plus this, in case it was only late.
const SPURIOUS_LOSS_GRACE: Span = Span::from_ms(50);

/// The packets that one acknowledgement newly acknowledges.
#[derive(Default)]
pub(super) struct AckSummary {
    /// Bytes newly delivered.
    pub(super) bytes: u64,
    /// Newest packet delivered: its number.
    pub(super) newest: Option<u64>,
    /// It had not been declared lost, so its data was sent only once.
    is_sample: bool,
    /// A packet arrived after one sent later.
    reordered: bool,
    /// Packets that arrived although declared lost, in any epoch and in the current one.
    spurious: u64,
    spurious_in_epoch: u64,
    /// One of them begins the first gap in the stream.
    spurious_at_snd_una: bool,
    /// Stream byte of the oldest data that arrived after later data although it was sent only once.
    lowest_reordered: Option<u64>,
}

impl Sender {
    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack, body: &Body) {
        // A peer cannot acknowledge data that was never sent.
        if ack.largest >= self.sent.next_number() {
            return;
        }
        let in_flight_before = self.in_flight;
        let settled_before = self.snd_una;
        let known_newest = self.rack.newest_delivered();
        let mut packets = std::mem::take(&mut self.newly_acked);
        packets.clear();
        let news = match ack.cumulative {
            None => self.on_sack_ranges(now, ack, body, known_newest, &mut packets),
            Some(edge) => self.on_cumulative_ack(now, ack, edge, &mut packets),
        };
        let Some(newest_number) = news.newest else {
            self.newly_acked = packets;
            if let Some(edge) = ack.cumulative {
                self.on_duplicate_ack(now, edge, in_flight_before);
            }
            self.on_ce_marks(now, ack, in_flight_before);
            return;
        };
        self.last_activity = now;

        // Samples are taken from the most recently sent of the packets delivered now.
        let mut round_start = false;
        let mut latest_rtt = None;
        let mut rate_sample = None;
        if let Some(newest) = self.sent.get(newest_number).copied() {
            if newest.delivered >= self.round_end {
                self.round_end = self.rate.delivered;
                self.round += 1;
                round_start = true;
                self.cwnd_limited_last_round = self.cwnd_limited;
                self.cwnd_limited = false;
            }
            // A late packet is a valid sample, since those that overtook it met less delay, unless its data has been
            // retransmitted (RFC 6298, section 3; Linux, tcp_ack_update_rtt).
            let overtakes = known_newest.is_none_or(|known| newest_number > known);
            if overtakes || news.is_sample {
                let rtt = now.since(newest.sent_at);
                self.rack.on_delivered(newest_number, rtt);
                latest_rtt = Some(rtt);
                self.rtt.sample(rtt, round_start);
            }
            if overtakes {
                self.tlp_unanswered = false;
            }
            rate_sample = self.rate.sample(&newest, self.rtt.min());
            if let Some(sample) = rate_sample {
                self.last_delivery_rate = Some(sample.rate);
            }
        }
        self.rto_backoff = 0;
        if news.reordered {
            self.rack.on_reordering();
        }
        if let Some(offset) = news.lowest_reordered {
            let distance = (self.fack - offset).div_ceil(self.mss);
            self.rack.raise_reordering(distance);
        }
        if news.spurious > 0 {
            self.counters.spurious_losses += news.spurious;
            self.on_spurious_losses(now, news.spurious_in_epoch, news.spurious_at_snd_una);
        }

        if ack.cumulative.is_some() {
            self.check_packet_delayed(now, ack.largest);
        }
        let lost_before = self.counters.lost_packets;
        let lost = self.detect_losses(now, in_flight_before);
        self.on_ce_marks(now, ack, in_flight_before);
        let progress = self.snd_una > settled_before;
        self.try_exit_recovery(now);
        if let CongestionState::Recovery(Some(reduction)) = &mut self.state {
            let safe = progress && self.counters.lost_packets == lost_before;
            reduction.on_ack(news.bytes, self.in_flight, safe);
        }

        let marked = self.take_ce_bytes(news.bytes);
        let mut event = self.ack_event(now, in_flight_before);
        event.bytes = Bytes::new(news.bytes);
        event.ce_bytes = Bytes::new(marked);
        event.latest_rtt = latest_rtt;
        event.rate = rate_sample;
        event.lost = Bytes::new(lost);
        event.round_start = round_start;
        // Arrivals beyond a gap do not show that the path has spare capacity (RFC 5681, section 3.1; Linux,
        // tcp_may_raise_cwnd), unless the path reorders anyway.
        event.may_grow = progress || self.rack.reorders();
        event.packets = &packets;
        self.scheme.on_ack(&event);
        self.read_allowance();
        if self.scheme.holds_back() {
            self.rate.set_app_limited(self.in_flight);
        }
        self.newly_acked = packets;

        let horizon = now - (self.rtt.smoothed() * 2 + SPURIOUS_LOSS_GRACE);
        // A packet beyond the limit of acknowledgements may have arrived long before it is reported.
        let settled = match self.config.sack_reach {
            0 => u64::MAX,
            _ => self.snd_una,
        };
        self.sent.forget(horizon, settled);
        self.acked_numbers.remove_below(self.sent.base());
        if progress || !self.only_rto_detects_loss() {
            self.rearm_rto(now);
        }
    }

    /// The part of an acknowledgement's event that is independent of the packets acknowledged.
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
        event.cwnd_limited = self.cwnd_limited || self.cwnd_limited_last_round;
        event.in_recovery = self.in_recovery();
        event.phase = match &self.state {
            CongestionState::Open => narrows_cc::CaState::Open,
            CongestionState::Recovery(_) if self.epoch_by_mark && self.epoch_losses == 0 => {
                narrows_cc::CaState::Cwr
            }
            CongestionState::Recovery(_) => narrows_cc::CaState::Recovery,
            CongestionState::Loss => narrows_cc::CaState::Loss,
        };
        event
    }

    /// Processes the packets newly acknowledged by the ranges.
    fn on_sack_ranges(
        &mut self,
        now: Time,
        ack: &Ack,
        body: &Body,
        known_newest: Option<u64>,
        packets: &mut Vec<AckedPacket>,
    ) -> AckSummary {
        let mut news = AckSummary::default();
        let base = self.sent.base();
        let mut acked = std::mem::take(&mut self.acked_numbers);
        let new = new_ranges(&acked, &body.ranges, base);
        for (index, range) in body.ranges.iter().enumerate().rev() {
            if new >> index & 1 == 0 || range.last < base || range.last > ack.largest {
                continue;
            }
            acked.insert(range.first.max(base), range.last, |first, last| {
                for number in first..=last {
                    self.on_delivered(now, number, known_newest, &mut news, packets);
                }
            });
        }
        self.acked_numbers = acked;
        // Arrival times: few, and mostly for the current packets.
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

    /// Handles the arrival of packet `number`.
    #[inline]
    fn on_delivered(
        &mut self,
        now: Time,
        number: u64,
        known_newest: Option<u64>,
        news: &mut AckSummary,
        packets: &mut Vec<AckedPacket>,
    ) {
        let Some(packet) = self.sent.get_mut(number) else {
            return;
        };
        let (state, lost_in) = (packet.state, packet.lost_in_epoch);
        let (offset, length, sent) = (packet.offset, packet.length_bytes, packet.sent_at);
        let (once, highest) = (!packet.retransmission, self.fack);
        packet.state = PacketState::Acked;
        let bytes = u64::from(length);
        match state {
            PacketState::Acked => return,
            PacketState::Outstanding => {
                self.in_flight -= bytes;
                news.reordered |= known_newest.is_some_and(|known| number < known);
            }
            PacketState::Lost => {
                news.reordered = true;
                news.spurious += 1;
                news.spurious_in_epoch += u64::from(lost_in == self.epoch);
                news.spurious_at_snd_una |= offset <= self.snd_una && offset + bytes > self.snd_una;
            }
        }
        if once && offset < highest {
            news.lowest_reordered = Some(
                news.lowest_reordered
                    .map_or(offset, |lowest| lowest.min(offset)),
            );
        }
        self.fack = self.fack.max(offset + bytes);
        news.bytes += bytes;
        news.newest = Some(number);
        news.is_sample = matches!(state, PacketState::Outstanding);
        self.counters.acked_packets += 1;
        self.rate.on_delivered(now, bytes);
        packets.push(AckedPacket {
            number,
            bytes: u32::from(length),
            sent,
            arrived: None,
        });

        self.advance_snd_una(offset, bytes);
    }

    /// Declares packets lost by packet or time threshold; returns their bytes.
    pub(super) fn detect_losses(&mut self, now: Time, in_flight_before: u64) -> u64 {
        self.reordering_timer = Time::FAR;
        if !self.config.sack {
            return self.detect_partial_ack_loss(now, in_flight_before);
        }
        let Some(newest) = self.rack.newest_delivered() else {
            return 0;
        };
        let lowest = self.sent.lowest_outstanding();
        if lowest > newest {
            return 0;
        }
        // Packets judged by count are not examined again: a lost retransmission keeps the lowest number in place until
        // the timeout, however much is sent meanwhile.
        let lowest = if self.config.rack {
            lowest
        } else {
            lowest.max(self.lost_hint)
        };
        if self.is_repairing_timeout() {
            return 0;
        }
        let overtaken = self.count_overtaking(lowest, newest);
        if !self.config.rack {
            return self.detect_by_count(now, lowest, newest, overtaken, in_flight_before);
        }
        let recovering = !matches!(self.state, CongestionState::Open);
        let window =
            self.rack
                .reordering_window(self.rtt.min(), self.rtt.smoothed(), recovering, overtaken);
        let mut lost = NewlyLost::default();
        for number in lowest..newest {
            let Some(packet) = self.sent.get(number) else {
                continue;
            };
            if packet.state != PacketState::Outstanding {
                continue;
            }
            match self.rack.deadline(number, packet.sent_at, window) {
                Some(deadline) if deadline <= now => self.declare_lost(number, &mut lost),
                Some(deadline) => {
                    // Later packets have later deadlines. An acknowledgement may reveal the loss before the timer does
                    // (Linux, tcp_rack_mark_lost).
                    self.reordering_timer = deadline + self.config.timer_slack();
                    break;
                }
                None => break,
            }
        }
        self.notify_losses(now, LossCause::Reordering, &lost, in_flight_before);
        lost.bytes
    }

    /// Takes a packet out of flight and queues its data for retransmission.
    pub(super) fn declare_lost(&mut self, number: u64, lost: &mut NewlyLost) {
        // The epoch to which the loss will belong, if it opens one.
        let epoch = self.epoch + u32::from(matches!(self.state, CongestionState::Open));
        let Some(packet) = self.sent.get_mut(number) else {
            return;
        };
        packet.state = PacketState::Lost;
        packet.lost_in_epoch = epoch;
        let (offset, length) = (packet.offset, packet.length_bytes);
        self.newly_lost.push(LostPacket {
            number,
            bytes: u32::from(length),
            sent: packet.sent_at,
            in_flight_at_send: Bytes::new(packet.in_flight),
            delivered_before: Bytes::new(packet.delivered),
            lost_before: Bytes::new(packet.lost_before),
            app_limited: packet.app_limited,
        });
        self.rate.on_lost(u64::from(length));
        lost.packets += 1;
        lost.bytes += u64::from(length);
        lost.newest_sent = packet.sent_at;
        lost.retransmissions |= packet.retransmission;
        let taken = u64::from(length).min(self.in_flight);
        self.in_flight -= taken;
        self.sacked_out -= (u64::from(length) - taken).min(self.sacked_out);
        self.counters.lost_packets += 1;
        if self.config.reliable {
            // The oldest data first (RFC 6675, NextSeg): a lost retransmission must not wait behind all later losses,
            // or an epoch that ends with it never ends.
            self.retransmit_queue.push(Reverse(Retransmission {
                offset,
                length,
                number,
            }));
        } else {
            // Not retransmitted: the stream treats it as delivered.
            self.advance_snd_una(offset, u64::from(length));
        }
    }

    /// A part of the stream is acknowledged, or abandoned if lost data is not retransmitted.
    #[inline]
    fn advance_snd_una(&mut self, offset: u64, bytes: u64) {
        // Usually in order.
        if offset == self.snd_una && self.sacked_data.is_empty() {
            self.snd_una += bytes;
        } else if offset + bytes > self.snd_una && bytes > 0 {
            self.sacked_data
                .insert(offset.max(self.snd_una), offset + bytes - 1, |_, _| {});
            self.snd_una = self.sacked_data.first_missing(self.snd_una);
            self.sacked_data.remove_below(self.snd_una);
        }
    }
}

/// A bit mask of the ranges of an acknowledgement, highest first, that contain a number from `base` on that is not in
/// `acked`. In a recovery each acknowledgement repeats dozens of ranges, and one or two are new.
#[inline]
fn new_ranges(acked: &RangeSet, told: &[Range], base: u64) -> u32 {
    const _: () = assert!(Body::MAX_RANGES <= u32::BITS as usize);
    let mut known = acked.ranges();
    let mut new = 0;
    for (index, range) in told.iter().take(Body::MAX_RANGES).enumerate() {
        let first = range.first.max(base);
        while let [lower @ .., top] = known
            && top.first > first
        {
            known = lower;
        }
        let is_known = known.last().is_some_and(|top| top.last >= range.last);
        new |= u32::from(!is_known) << index;
    }
    new
}

/// Packets just declared lost.
#[derive(Clone, Copy, Default)]
pub(super) struct NewlyLost {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) newest_sent: Time,
    /// One of them was a retransmission.
    pub(super) retransmissions: bool,
}
