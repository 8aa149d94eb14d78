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
use super::{Phase, Question, Sender};
use crate::Ack;
use crate::sent::State;
use narrows_cc::{AckedPacket, LossCause, Recovery};
use narrows_units::{Bytes, Time};

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
        let mut out = 0;
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
                // It had only been late, unless it has been repeated, and then the repetition counts.
                State::Lost => self.repairs.iter().any(|repair| repair.0.number == number),
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
        // One of them was missing; the others have been told of by duplicates, as far as there were any.
        let mss = u64::from(self.config.mss);
        let acked = edge - self.settled;
        let credit = acked.saturating_sub(self.assumed).max(mss).min(news.bytes);
        self.rate.on_delivered(now, credit);
        let mut first = 0;
        while news.bytes > credit && first + 1 < packets.len() {
            news.bytes -= u64::from(packets[first].bytes);
            first += 1;
        }
        packets.drain(..first);
        self.settled = edge;
        let flying = self.in_flight + self.assumed - out;
        self.in_flight = flying;
        let assumed = std::mem::take(&mut self.assumed);
        self.assume(assumed.saturating_sub(acked.saturating_sub(mss)), acked);
        // Only within a recovery is it remembered what lies beyond the next gap.
        if !self.repairs_holes() || edge >= self.phase_end {
            self.forget_duplicates();
        }
        self.ask_for_more();
        // Everything may be settled by packets that had been taken to be lost.
        news.newest = news.newest.or(Some(ack.largest));
        news
    }

    /// Whether losses are being repaired one after the other.
    fn repairs_holes(&self) -> bool {
        matches!(self.phase, Phase::Recovery(_)) && self.epoch_losses > 0
    }

    /// Takes `bytes` beyond the gap to have arrived, but no more than can have: one packet is missing, after a timeout
    /// all that had been sent before it. More duplicates than that mean that packets overtake each other, or that they
    /// were sent twice, which nobody can tell: Linux then takes all that was in flight, with the `acked` bytes of this
    /// acknowledgement, for the number by which they do (tcp_check_reno_reordering).
    fn assume(&mut self, bytes: u64, acked: u64) {
        let mss = u64::from(self.config.mss);
        let unsettled = self.fresh - self.settled;
        let most = match self.phase {
            Phase::Timeout => self.fresh - self.phase_end.max(self.settled),
            _ => unsettled.saturating_sub(mss),
        };
        if bytes > most {
            self.loss.on_distance((unsettled + acked).div_ceil(mss));
        }
        self.assumed = bytes.min(most).min(self.in_flight);
        self.in_flight -= self.assumed;
    }

    /// The first gap after a timeout is closed and there is another one: new data, before anything else is repeated,
    /// tells whether what lies beyond it is really lost (F-RTO, RFC 5682, section 2.1, step 2).
    fn ask_for_more(&mut self) {
        self.asks = match (self.asks, &self.phase) {
            (Question::Due, Phase::Timeout) if self.settled < self.phase_end => {
                self.phase_end = self.fresh;
                Question::Asked
            }
            _ => Question::Settled,
        };
    }

    /// An acknowledgement that settles nothing: something arrived beyond the gap.
    pub(super) fn on_duplicate(&mut self, now: Time, edge: u64, in_flight_before: u64) {
        // What was sent before a recovery or a timeout is settled and no more: duplicates may be of data that was sent
        // twice, and mean nothing until more is acknowledged (RFC 6582, section 3.2, step 1; Linux,
        // tcp_is_non_sack_preventing_reopen).
        if edge != self.settled || self.settled == self.fresh || self.is_held_up() {
            return;
        }
        // After a timeout all that had been sent before it is taken to be lost, and duplicates tell of what was sent
        // after it alone.
        if matches!(self.phase, Phase::Timeout) && self.fresh <= self.phase_end {
            return;
        }
        if self.asks == Question::Asked {
            self.asks = Question::Settled;
        }
        let before = self.assumed;
        self.forget_duplicates();
        self.assume(before + u64::from(self.config.mss), 0);
        let told = self.assumed.saturating_sub(before);
        self.rate.on_delivered(now, told);
        let quiet = match self.phase {
            Phase::Open => true,
            // Marks have opened the epoch, and nothing is missing so far.
            Phase::Recovery(_) => self.epoch_losses == 0,
            Phase::Timeout => false,
        };
        let threshold = self.loss.threshold() * u64::from(self.config.mss);
        let mut lost = 0;
        if quiet && self.assumed >= threshold {
            lost = self.lose_head(now, in_flight_before);
        }
        if let Phase::Recovery(Some(reduction)) = &mut self.phase {
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
        self.in_flight += std::mem::take(&mut self.assumed);
    }

    /// What of the bytes in flight counts for a scheme that reduces its window to a share of them. What arrived beyond
    /// a gap is in flight again when a recovery ends, so that without selective acknowledgements no more than the
    /// window counts: from more than that, windows would grow with losses.
    pub(super) fn counted(&self, in_flight: u64) -> u64 {
        match (self.config.sack, self.recovery) {
            (true, _) => in_flight,
            (false, Recovery::Direct) => in_flight.min(self.window()),
            // What is not acknowledged yet (RFC 5681, section 2).
            (false, _) => (self.fresh - self.settled).min(self.window()),
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
