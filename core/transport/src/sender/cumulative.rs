//! What a sender does with less: acknowledgements that tell only where the first gap begins, and loss
//! detection by count alone.
//!
//! Without selective acknowledgements: NewReno, RFC 6582. Three duplicates open a recovery and repair
//! the first hole; each partial acknowledgement repairs the next one, so one loss is repaired per
//! round trip; the timer restarts with each of them (the "slow-but-steady" variant). Each duplicate
//! lets one packet out of flight (limited transmit, RFC 3042), except after a timeout. Deviations: the window is
//! reduced by Proportional Rate Reduction in place of inflation and deflation, as in Linux; after a
//! timeout everything counts as lost.
//!
//! With them but without the time threshold: a packet is lost when as many as the threshold that were
//! sent later have arrived (RFC 6675). A repair that is lost itself is noticed by the timeout only, and after a
//! timeout nothing else is until all that had been sent before it is settled (section 5.1).

use super::ack::{Lost, News};
use super::{Phase, Sender};
use crate::Ack;
use crate::sent::State;
use narrows_cc::{AckedPacket, LossCause, Recovery};
use narrows_units::Time;

impl Sender {
    /// Settles everything below `edge`.
    pub(super) fn take_edge(
        &mut self,
        now: Time,
        ack: &Ack,
        edge: u64,
        packets: &mut Vec<AckedPacket>,
    ) -> News {
        let mut news = News::default();
        if edge <= self.settled || edge > self.fresh {
            return news;
        }
        let whole = matches!(self.phase, Phase::Open) && self.assumed == 0;
        let (mut out, mut late) = (0, 0);
        for number in self.sent.base()..self.sent.next_number() {
            let Some(packet) = self.sent.get_mut(number) else {
                continue;
            };
            let (offset, bytes) = (packet.offset, u64::from(packet.length));
            if offset + bytes > edge {
                // Later packets have later data, unless data is being repeated.
                if whole {
                    break;
                }
                continue;
            }
            let state = std::mem::replace(&mut packet.state, State::Acked);
            let sent = packet.at;
            let arrived = match state {
                State::Acked => false,
                State::Outstanding => {
                    out += bytes;
                    true
                }
                // It had only been late, unless it has been repeated, and then the repetition counts. It is
                // no news for the scheme: after a timeout one acknowledgement may settle many such.
                State::Lost => {
                    if self.repairs.iter().any(|repair| repair.0.number == number) {
                        late += bytes;
                        self.counters.acked_packets += 1;
                    }
                    false
                }
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
        // One of them was missing; the others had left the flight with their duplicates.
        let mss = u64::from(self.config.mss);
        let known = self.assumed.min(out.saturating_sub(mss));
        self.assumed -= known;
        self.in_flight += known;
        let excess = out.saturating_sub(self.in_flight);
        self.assumed -= excess.min(self.assumed);
        self.in_flight -= out - excess;
        // What duplicates have told of has been counted then: neither the scheme nor the reduction may be credited with
        // it again, also when a recovery has ended meanwhile. The gap itself is news.
        let before = self.told.min((edge - self.settled).saturating_sub(mss));
        self.told = if edge >= self.fresh {
            0
        } else {
            self.told - before
        };
        let credit = news.bytes - before.min(news.bytes);
        let late = late.saturating_sub(before - before.min(news.bytes));
        self.rate.on_delivered(now, credit + late);
        let mut first = 0;
        while news.bytes > credit && first + 1 < packets.len() {
            news.bytes -= u64::from(packets[first].bytes);
            first += 1;
        }
        packets.drain(..first);
        self.settled = edge;
        self.duplicates = 0;
        if edge >= self.phase_end {
            self.forget_duplicates();
        }
        // Everything may be settled by packets that had been taken to be lost.
        news.newest = news.newest.or(Some(ack.largest));
        news
    }

    /// An acknowledgement that settles nothing: something arrived beyond the gap.
    pub(super) fn on_duplicate(&mut self, now: Time, edge: u64, in_flight_before: u64) {
        if edge != self.settled || self.in_flight == 0 {
            return;
        }
        // After everything from a gap on was sent again, what had arrived before arrives twice: duplicates
        // mean nothing until more than that is acknowledged (RFC 6582, section 3.2, step 1).
        let sent_again =
            self.recovery == Recovery::Restart || self.epoch_cause != LossCause::Reordering;
        if matches!(self.phase, Phase::Open) && sent_again && edge <= self.phase_end {
            return;
        }
        self.duplicates += 1;
        let mss = u64::from(self.config.mss);
        // After a timeout nothing leaves the flight by duplicates: what is under way from the gap on stays
        // within the window (RFC 5681, section 3.1), or repairs that are lost again would let new data
        // through without end.
        let left = match self.phase {
            Phase::Timeout => 0,
            _ => mss.min(self.in_flight.saturating_sub(mss)),
        };
        self.in_flight -= left;
        self.assumed += left;
        self.told += left;
        self.rate.on_delivered(now, left);
        let quiet = match self.phase {
            Phase::Open => true,
            // Marks have opened the epoch, and nothing is missing so far.
            Phase::Recovery(_) => self.epoch_losses == 0,
            Phase::Timeout => false,
        };
        if quiet && self.duplicates >= self.config.packet_threshold {
            self.lose_head(now, in_flight_before);
        } else if let Phase::Recovery(Some(reduction)) = &mut self.phase {
            reduction.on_ack(left, self.in_flight, false);
        }
    }

    /// A partial acknowledgement: the next hole is lost too.
    pub(super) fn detect_next_hole(&mut self, now: Time, in_flight_before: u64) -> u64 {
        let partial = self.settled < self.phase_end && self.epoch_losses > 0;
        if matches!(self.phase, Phase::Recovery(_)) && partial {
            return self.lose_head(now, in_flight_before);
        }
        0
    }

    /// Declares the packet at the gap lost, unless it has been repeated.
    fn lose_head(&mut self, now: Time, in_flight_before: u64) -> u64 {
        let mut lost = Lost::default();
        let head = self.sent.lowest_outstanding();
        let at_gap = self
            .sent
            .get(head)
            .is_some_and(|packet| packet.offset <= self.settled && !packet.retransmission);
        if at_gap {
            self.declare_lost(head, &mut lost);
        }
        self.report_losses(now, LossCause::Reordering, &lost, in_flight_before);
        lost.bytes
    }

    /// Takes back what was taken out of flight for duplicates.
    pub(super) fn forget_duplicates(&mut self) {
        self.duplicates = 0;
        self.in_flight += std::mem::take(&mut self.assumed);
    }

    /// What of the bytes in flight counts for a scheme that reduces its window to a share of them. What arrived beyond
    /// a gap is in flight again when a recovery ends, so that without selective acknowledgements no more than the
    /// window counts: from more than that, windows would grow with losses.
    pub(super) fn counted(&self, in_flight: u64) -> u64 {
        if self.config.sack {
            in_flight
        } else {
            in_flight.min(self.window())
        }
    }

    /// Packets from `lowest` to `newest` that have arrived and count as sent later than what is missing. Where not all
    /// that arrives is told, repairs do not: they would overtake what lies behind their gap and only is not told yet.
    pub(super) fn overtaking(&self, lowest: u64, newest: u64) -> u64 {
        if self.config.sack_reach > 0 {
            let told = (lowest..=newest).filter(|&number| self.overtakes(number));
            return told.count() as u64;
        }
        let ranges = self.acked.ranges().iter();
        ranges
            .map(|range| (range.last + 1).saturating_sub(range.first.max(lowest)))
            .sum()
    }

    /// Whether packet `number` has arrived and counts.
    fn overtakes(&self, number: u64) -> bool {
        self.sent.get(number).is_some_and(|packet| {
            packet.state == State::Acked && !(packet.retransmission && self.config.sack_reach > 0)
        })
    }

    /// Whether nothing is to be taken as lost, for a timeout is being repaired without a clock for each packet. libutp
    /// goes on.
    #[inline]
    pub(super) fn awaits_the_gap(&self) -> bool {
        let repairing = matches!(self.phase, Phase::Timeout) && self.config.reliable;
        repairing && !self.config.rack && !self.config.repair_at_once
    }

    /// Loss detection by count: `above` packets from `lowest` to `newest` have arrived.
    pub(super) fn detect_by_count(
        &mut self,
        now: Time,
        lowest: u64,
        newest: u64,
        mut above: u64,
        in_flight_before: u64,
    ) -> u64 {
        let mut lost = Lost::default();
        for number in lowest..newest {
            if above < self.loss.threshold() {
                break;
            }
            self.judged = number + 1;
            match self.sent.get(number) {
                Some(_) if self.overtakes(number) => above -= 1,
                Some(packet) if packet.state == State::Outstanding && !packet.retransmission => {
                    self.declare_lost(number, &mut lost);
                }
                _ => {}
            }
        }
        self.report_losses(now, LossCause::Reordering, &lost, in_flight_before);
        lost.bytes
    }
}
