//! Epochs: what losses and marks mean to the scheme, how an epoch begins, ends, or turns out to have been none.

use super::ack::Lost;
use super::{Phase, Sender};
use crate::Ack;
use crate::prr::Reduction;
use crate::sent::State;
use narrows_cc::{EcnEvent, LossCause, LossEvent, Recovery, SpuriousLossEvent};
use narrows_units::{Bytes, Time};
use std::cmp::Reverse;

impl Sender {
    /// Tells the scheme of losses and opens an epoch if none is running.
    pub(super) fn report_losses(
        &mut self,
        now: Time,
        cause: LossCause,
        lost: &Lost,
        in_flight: u64,
    ) {
        if lost.packets == 0 {
            return;
        }
        let restarts = self.recovery == Recovery::Restart
            && cause == LossCause::Reordering
            && matches!(self.phase, Phase::Open);
        let mut lost = *lost;
        if restarts {
            self.go_back(&mut lost);
        }
        let new_epoch = match (cause, &self.phase) {
            (_, Phase::Open) => true,
            // What repairs a timeout is lost itself (Linux: FLAG_LOST_RETRANS).
            (LossCause::Reordering, Phase::Timeout) => lost.repairs && self.epoch_cause != cause,
            // The window was reduced when the epoch began, and what it began for is not repaired (Linux,
            // tcp_enter_loss).
            (_, Phase::Recovery(_)) => self.is_held_up(),
            // A timeout that has moved nothing repeats the last one.
            (_, Phase::Timeout) => self.settled > self.timeout_gap || self.is_held_up(),
        };
        let prior = self.window();
        let mut event = LossEvent::new(now, cause, Bytes::new(lost.bytes));
        event.packets = lost.packets;
        event.newest_sent = lost.newest_sent;
        event.in_flight = Bytes::new(self.counted(in_flight));
        event.new_epoch = new_epoch;
        event.smoothed_rtt = self.rtt.smoothed();
        let losses = std::mem::take(&mut self.losses);
        event.lost = &losses;
        event.lost_total = Bytes::new(self.rate.lost);
        event.delivered = Bytes::new(self.rate.delivered);
        self.scheme.on_loss(&event);
        self.read_allowance();
        self.losses = losses;
        if new_epoch && !matches!(self.phase, Phase::Open) {
            // They were noted as losses of the epoch that ends here.
            self.epoch += 1;
            for lost in &self.losses {
                if let Some(packet) = self.sent.get_mut(lost.number) {
                    packet.lost_in = self.epoch;
                }
            }
        }
        self.losses.clear();
        if new_epoch {
            self.epoch_by_mark = false;
            self.epoch_losses = 0;
            self.epoch_goes_on = false;
            self.open_epoch(cause, prior, in_flight);
        } else if cause == LossCause::Reordering {
            self.lower_reduction();
        } else {
            self.epoch_goes_on |= matches!(self.phase, Phase::Recovery(_));
            self.epoch_cause = cause;
            self.phase_end = self.fresh;
            self.phase = Phase::Timeout;
        }
        if cause != LossCause::Reordering {
            self.timeout_gap = self.settled;
        }
        self.epoch_losses += lost.packets;
    }

    pub(super) fn open_epoch(&mut self, cause: LossCause, prior: u64, in_flight: u64) {
        if matches!(self.phase, Phase::Open) {
            self.epoch += 1;
        }
        self.epoch_cause = cause;
        self.epoch_undone = false;
        self.first_repair = None;
        self.counters.recoveries += 1;
        self.phase_end = self.fresh;
        self.phase = match cause {
            LossCause::Reordering if self.recovery != Recovery::Restart => {
                Phase::Recovery(self.reduction(prior, in_flight))
            }
            _ => Phase::Timeout,
        };
    }

    /// Takes everything in flight to be lost, to be sent again in the order of the data.
    fn go_back(&mut self, lost: &mut Lost) {
        self.forget_duplicates();
        for number in self.sent.lowest_outstanding()..self.sent.next_number() {
            let packet = self.sent.get(number);
            if packet.is_some_and(|packet| packet.state == State::Outstanding) {
                self.declare_lost(number, lost);
            }
        }
    }

    fn reduction(&self, prior: u64, in_flight: u64) -> Option<Reduction> {
        let target = self.allowance.cwnd?.get();
        let mss = u64::from(self.config.mss);
        (self.recovery == Recovery::Proportional)
            .then(|| Reduction::new(prior, target, in_flight, mss))
    }

    /// Bytes of marked packets among `bytes` acknowledged ones. Marks that came with duplicates, which
    /// acknowledge nothing, count with what is acknowledged next.
    pub(super) fn take_marked(&mut self, bytes: u64) -> u64 {
        let mss = u64::from(self.config.mss);
        let marked = self.marks_untold.saturating_mul(mss).min(bytes);
        self.marks_untold = self.marks_untold.saturating_sub(marked.div_ceil(mss));
        marked
    }

    /// Tells the scheme of new marks.
    pub(super) fn note_marks(&mut self, now: Time, ack: &Ack, in_flight_before: u64) {
        let marked = ack.marked.saturating_sub(self.marked_seen);
        if marked == 0 {
            return;
        }
        self.marked_seen = ack.marked;
        self.marks_untold = self.marks_untold.saturating_add(marked);
        let new_epoch = matches!(self.phase, Phase::Open);
        let prior = self.window();
        let mut event = EcnEvent::new(now, Bytes::new(self.counted(in_flight_before)));
        event.packets = marked;
        event.new_epoch = new_epoch;
        self.scheme.on_ecn(&event);
        self.read_allowance();
        if new_epoch {
            self.epoch_by_mark = true;
            // Marks lose nothing, so there is nothing that could turn out spurious.
            self.epoch_losses = 0;
            self.open_epoch(LossCause::Reordering, prior, in_flight_before);
        } else {
            self.lower_reduction();
        }
    }

    /// Ends recovery when everything sent before it began is settled; without selective acknowledgements only when more
    /// is, or what duplicates tell of then might have been sent twice (RFC 6582, section 3.2, step 1; Linux,
    /// tcp_is_non_sack_preventing_reopen).
    pub(super) fn leave_phase(&mut self, now: Time) {
        let open = matches!(self.phase, Phase::Open);
        if open || self.settled < self.phase_end || self.is_held_up() {
            return;
        }
        self.phase = Phase::Open;
        self.loss.on_recovery_exit();
        self.scheme.on_recovery_exit(now);
        self.read_allowance();
    }

    /// Without selective acknowledgements: what an epoch was for is settled, and no more.
    pub(super) fn is_held_up(&self) -> bool {
        let repaired = !matches!(self.phase, Phase::Open) && self.epoch_losses > 0;
        !self.config.sack && repaired && self.settled == self.phase_end
    }

    /// Packets that had been declared lost have arrived, `in_epoch` of the current epoch, one of them `at_gap` if it
    /// begins the first gap. If all losses of the epoch were such, or the first thing heard after a timeout is an old
    /// packet, the epoch is undone.
    pub(super) fn on_late(&mut self, now: Time, in_epoch: u64, at_gap: bool) {
        if self.spurious_round != self.round {
            self.spurious_round = self.round;
            self.loss.on_spurious();
        }
        let before = self.epoch_losses;
        self.epoch_losses = before.saturating_sub(in_epoch);
        // Without a clock for each packet a timeout takes everything in flight to be lost. What was sent only just
        // before still arrives, and says nothing about the gap that the timeout was for.
        let proof = at_gap || self.config.rack || !self.config.reliable;
        let undone = match self.phase {
            // Of what a timeout has taken to be lost, and has been repeated, every packet may turn up: once is enough.
            _ if in_epoch == 0 || self.epoch_undone => false,
            // F-RTO's question (RFC 5682), which unique packet numbers answer at once. Where the scheme has
            // started again after a loss, what arrives now was expected to.
            Phase::Timeout if !self.epoch_goes_on => {
                proof && self.epoch_cause != LossCause::Reordering
            }
            _ => self.epoch_losses == 0,
        };
        if undone {
            self.undo_epoch(now);
        }
    }

    /// Without selective acknowledgements: the packet that has moved the first gap was sent before anything was repeated
    /// in this epoch, so that it had only been late, or duplicates were of data that was sent twice (RFC 3522; Linux,
    /// tcp_packet_delayed). After a timeout that says less: acknowledgements may have been lost together with data.
    pub(super) fn on_first_copy(&mut self, now: Time, number: u64) {
        let doubted = self.in_recovery() && self.epoch_losses > 0;
        if doubted && self.first_repair.is_some_and(|first| number < first) {
            self.counters.spurious_losses += 1;
            self.forget_duplicates();
            self.undo_epoch(now);
        }
    }

    /// The losses of the epoch were none.
    fn undo_epoch(&mut self, now: Time) {
        if matches!(self.phase, Phase::Timeout) {
            // What has not been repeated yet is in flight after all, unless it was sent so long ago
            // that it is forgotten.
            let (sent, in_flight) = (&mut self.sent, &mut self.in_flight);
            self.repairs
                .retain(|Reverse(repair)| match sent.get(repair.number) {
                    Some(packet) if packet.state == State::Lost => {
                        sent.revive(repair.number);
                        *in_flight += u64::from(repair.length);
                        false
                    }
                    Some(_) => false,
                    None => true,
                });
            self.judged = 0;
        }
        self.epoch_losses = 0;
        self.epoch_undone = true;
        self.phase = Phase::Open;
        self.scheme
            .on_spurious_loss(&SpuriousLossEvent::new(now, self.epoch_cause));
        self.read_allowance();
    }
}
