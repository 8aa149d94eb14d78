//! Loss detection without SACK (cumulative acknowledgements alone), and without RACK (by count alone).
//!
//! Without selective acknowledgements: NewReno, RFC 6582. Three duplicates open a recovery and repair the first hole;
//! each partial acknowledgement repairs the next one, so one loss is repaired per round trip; the timer restarts with
//! each of them (the "slow-but-steady" variant). Each duplicate lets one packet out of flight (limited transmit, RFC
//! 3042), except after a timeout. Deviations: the window is reduced by Proportional Rate Reduction in place of
//! inflation and deflation, as in Linux; after a timeout all packets count as lost.
//!
//! With them but without the time threshold: a packet is lost when a threshold number of later packets have arrived
//! (RFC 6675). A lost retransmission is detected only by the timeout, and after a timeout no other loss is detected
//! until all data sent before it is acknowledged (section 5.1).

use super::ack::{AckSummary, NewlyLost};
use super::{CongestionState, FrtoState, Sender};
use crate::Ack;
use crate::sent_packets::PacketState;
use narrows_cc::{AckedPacket, LossCause, Recovery};
use narrows_units::{Bytes, Time};

impl Sender {
    /// A cumulative acknowledgement: everything below stream byte `edge` has arrived.
    pub(super) fn on_cumulative_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        edge: u64,
        packets: &mut Vec<AckedPacket>,
    ) -> AckSummary {
        let mut news = AckSummary::default();
        if edge <= self.snd_una || edge > self.snd_nxt {
            return news;
        }
        let whole = matches!(self.state, CongestionState::Open) && self.sacked_out == 0;
        let mut out = 0;
        for number in self.sent.base()..self.sent.next_number() {
            let Some(packet) = self.sent.get_mut(number) else {
                continue;
            };
            let (offset, bytes) = (packet.offset, u64::from(packet.length_bytes));
            if offset + bytes > edge {
                // Later packets have later data, except for retransmissions.
                if whole {
                    break;
                }
                continue;
            }
            let state = std::mem::replace(&mut packet.state, PacketState::Acked);
            let sent = packet.sent_at;
            let arrived = match state {
                PacketState::Acked => false,
                PacketState::Outstanding => {
                    out += bytes;
                    true
                }
                // It was only late, unless it has been retransmitted, and then the retransmission counts.
                PacketState::Lost => self
                    .retransmit_queue
                    .iter()
                    .any(|retransmission| retransmission.0.number == number),
            };
            if arrived {
                news.bytes += bytes;
                news.newest = Some(number);
                packets.push(AckedPacket {
                    number,
                    bytes: bytes as u32,
                    sent,
                    arrived: (number == ack.largest).then_some(ack.largest_arrived),
                });
            }
        }
        if packets.iter().any(|packet| packet.number == ack.largest) {
            news.newest = Some(ack.largest);
        }
        self.counters.acked_packets += packets.len() as u64;
        // One of them was missing; the others were reported by duplicates, if any arrived.
        let mss = self.mss;
        let acked = edge - self.snd_una;
        let credit = acked
            .saturating_sub(self.sacked_out)
            .max(mss)
            .min(news.bytes);
        self.rate.on_delivered(now, credit);
        let mut first = 0;
        while news.bytes > credit && first + 1 < packets.len() {
            news.bytes -= u64::from(packets[first].bytes);
            first += 1;
        }
        packets.drain(..first);
        self.snd_una = edge;
        let flying = self.in_flight + self.sacked_out - out;
        self.in_flight = flying;
        let assumed = std::mem::take(&mut self.sacked_out);
        self.set_sacked_out(assumed.saturating_sub(acked.saturating_sub(mss)), acked);
        // Data beyond the next gap is remembered only within a recovery.
        if !self.repairs_holes() || edge >= self.high_seq {
            self.reset_sacked_out();
        }
        self.advance_frto();
        // Packets that had been declared lost may account for everything.
        news.newest = news.newest.or(Some(ack.largest));
        news
    }

    /// True if losses are being repaired one by one.
    fn repairs_holes(&self) -> bool {
        matches!(self.state, CongestionState::Recovery(_)) && self.epoch_losses > 0
    }

    /// Assumes that `bytes` beyond the gap have arrived (Linux: tcp_limit_reno_sacked), but no more than is possible:
    /// one packet is missing, after a timeout all data sent before it. More duplicates than that mean that packets were
    /// reordered or sent twice, which cannot be distinguished: Linux then takes all data in flight, plus the `acked`
    /// bytes of this acknowledgement, as the reordering distance (tcp_check_reno_reordering).
    fn set_sacked_out(&mut self, bytes: u64, acked: u64) {
        let mss = self.mss;
        let unsettled = self.snd_nxt - self.snd_una;
        let most = match self.state {
            CongestionState::Loss => self.snd_nxt - self.high_seq.max(self.snd_una),
            _ => unsettled.saturating_sub(mss),
        };
        if bytes > most {
            self.rack.set_reordering((unsettled + acked).div_ceil(mss));
        }
        self.sacked_out = bytes.min(most).min(self.in_flight);
        self.in_flight -= self.sacked_out;
    }

    /// The first gap after a timeout is closed and there is another one: new data, before any further retransmission,
    /// reveals whether the data beyond it is really lost (F-RTO, RFC 5682, section 2.1, step 2).
    fn advance_frto(&mut self) {
        self.frto = match (self.frto, &self.state) {
            (FrtoState::AwaitsFirstAck, CongestionState::Loss) if self.snd_una < self.high_seq => {
                self.high_seq = self.snd_nxt;
                FrtoState::SendsNewData
            }
            _ => FrtoState::Inactive,
        };
    }

    /// A duplicate acknowledgement: something arrived beyond the gap.
    pub(super) fn on_duplicate_ack(&mut self, now: Time, edge: u64, in_flight_before: u64) {
        // Exactly the data sent before a recovery or a timeout is acknowledged: duplicates may be due to data sent
        // twice, and are ignored until more is acknowledged (RFC 6582, section 3.2, step 1; Linux,
        // tcp_is_non_sack_preventing_reopen).
        if edge != self.snd_una || self.snd_una == self.snd_nxt || self.is_reopen_prevented() {
            return;
        }
        // After a timeout all data sent before it counts as lost, and duplicates report only data sent after it.
        if matches!(self.state, CongestionState::Loss) && self.snd_nxt <= self.high_seq {
            return;
        }
        if self.frto == FrtoState::SendsNewData {
            self.frto = FrtoState::Inactive;
        }
        let before = self.sacked_out;
        self.reset_sacked_out();
        self.set_sacked_out(before + self.mss, 0);
        let told = self.sacked_out.saturating_sub(before);
        self.rate.on_delivered(now, told);
        let quiet = match self.state {
            CongestionState::Open => true,
            // Marks have opened the epoch, and nothing is missing so far.
            CongestionState::Recovery(_) => self.epoch_losses == 0,
            CongestionState::Loss => false,
        };
        let threshold = self.rack.dup_thresh() * self.mss;
        let mut lost = 0;
        if quiet && self.sacked_out >= threshold {
            lost = self.mark_head_lost(now, in_flight_before);
        }
        if let CongestionState::Recovery(Some(reduction)) = &mut self.state {
            reduction.on_ack(told, self.in_flight, false);
        }
        if told == 0 {
            return;
        }
        let mut event = self.ack_event(now, in_flight_before);
        event.bytes = Bytes::new(told);
        event.lost = Bytes::new(lost);
        event.may_grow = false;
        self.scheme.on_duplicate(&event);
        self.read_allowance();
    }

    /// A partial acknowledgement: the next hole is lost too.
    pub(super) fn detect_partial_ack_loss(&mut self, now: Time, in_flight_before: u64) -> u64 {
        let partial = self.snd_una < self.high_seq && self.epoch_losses > 0;
        if matches!(self.state, CongestionState::Recovery(_)) && partial {
            return self.mark_head_lost(now, in_flight_before);
        }
        0
    }

    /// Declares the packet at the gap lost, unless it has been retransmitted (Linux: tcp_mark_head_lost).
    fn mark_head_lost(&mut self, now: Time, in_flight_before: u64) -> u64 {
        let mut lost = NewlyLost::default();
        let head = self.sent.lowest_outstanding();
        let at_gap = self
            .sent
            .get(head)
            .is_some_and(|packet| packet.offset <= self.snd_una && !packet.retransmission);
        if at_gap {
            self.declare_lost(head, &mut lost);
        }
        self.notify_losses(now, LossCause::Reordering, &lost, in_flight_before);
        lost.bytes
    }

    /// Puts back into flight what duplicates had taken out (Linux: tcp_reset_reno_sack).
    pub(super) fn reset_sacked_out(&mut self) {
        self.in_flight += std::mem::take(&mut self.sacked_out);
    }

    /// FlightSize (RFC 5681) in bytes, for schemes that reduce their window to a share of it. Data that arrived beyond
    /// a gap counts as in flight again when a recovery ends, so without selective acknowledgements it is capped at the
    /// window: otherwise windows would grow with losses.
    pub(super) fn flight_size(&self, in_flight: u64) -> u64 {
        match (self.config.sack, self.recovery_rule) {
            (true, _) => in_flight,
            (false, Recovery::Direct) => in_flight.min(self.cwnd()),
            // Data not yet acknowledged (RFC 5681, section 2).
            (false, _) => (self.snd_nxt - self.snd_una).min(self.cwnd()),
        }
    }

    /// Packets from `lowest` to `newest` that have arrived and count as sent later than the missing ones. If not all
    /// arrivals are reported, retransmissions do not count: they would seem to overtake data beyond their gap that is
    /// merely not reported yet.
    pub(super) fn count_overtaking(&self, lowest: u64, newest: u64) -> u64 {
        if self.config.sack_reach > 0 {
            let told = (lowest..=newest).filter(|&number| self.overtakes(number));
            return told.count() as u64;
        }
        let ranges = self.acked_numbers.ranges().iter();
        ranges
            .map(|range| (range.last + 1).saturating_sub(range.first.max(lowest)))
            .sum()
    }

    /// True if packet `number` has arrived and counts.
    fn overtakes(&self, number: u64) -> bool {
        self.sent.get(number).is_some_and(|packet| {
            packet.state == PacketState::Acked
                && !(packet.retransmission && self.config.sack_reach > 0)
        })
    }

    /// True if no further loss is detected because a timeout is being repaired without RACK. libutp continues.
    #[inline]
    pub(super) fn is_repairing_timeout(&self) -> bool {
        let repairing = matches!(self.state, CongestionState::Loss) && self.config.reliable;
        repairing && !self.config.rack && !self.config.repair_at_once
    }

    /// Loss detection by packet threshold: `above` packets from `lowest` to `newest` have arrived.
    pub(super) fn detect_by_count(
        &mut self,
        now: Time,
        lowest: u64,
        newest: u64,
        mut above: u64,
        in_flight_before: u64,
    ) -> u64 {
        let mut lost = NewlyLost::default();
        for number in lowest..newest {
            if above < self.rack.dup_thresh() {
                break;
            }
            self.lost_hint = number + 1;
            match self.sent.get(number) {
                Some(_) if self.overtakes(number) => above -= 1,
                Some(packet)
                    if packet.state == PacketState::Outstanding && !packet.retransmission =>
                {
                    self.declare_lost(number, &mut lost);
                }
                _ => {}
            }
        }
        self.notify_losses(now, LossCause::Reordering, &lost, in_flight_before);
        lost.bytes
    }
}
