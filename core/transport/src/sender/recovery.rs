//! Recovery epochs: how losses and marks open one, how it ends, and how it is undone when the losses were spurious.

use super::ack::NewlyLost;
use super::{CongestionState, Sender};
use crate::Ack;
use crate::prr::Prr;
use crate::sent_packets::PacketState;
use narrows_cc::{EcnEvent, LossCause, LossEvent, Recovery, SpuriousLossEvent};
use narrows_units::{Bytes, Time};
use std::cmp::Reverse;

impl Sender {
    /// Notifies the scheme of losses and opens an epoch unless one is in progress.
    pub(super) fn notify_losses(
        &mut self,
        now: Time,
        cause: LossCause,
        lost: &NewlyLost,
        in_flight: u64,
    ) {
        if lost.packets == 0 {
            return;
        }
        let restarts = self.recovery_rule == Recovery::Restart
            && cause == LossCause::Reordering
            && matches!(self.state, CongestionState::Open);
        let mut lost = *lost;
        if restarts {
            self.go_back_n(&mut lost);
        }
        let new_epoch = match (cause, &self.state) {
            (_, CongestionState::Open) => true,
            // A retransmission after a timeout was lost (Linux: FLAG_LOST_RETRANS).
            (LossCause::Reordering, CongestionState::Loss) => {
                lost.retransmissions && self.epoch_cause != cause
            }
            // The window was reduced when the epoch began, and its cause is not repaired yet (Linux, tcp_enter_loss).
            (_, CongestionState::Recovery(_)) => self.is_reopen_prevented(),
            // A timeout without progress repeats the last one.
            (_, CongestionState::Loss) => {
                self.snd_una > self.snd_una_at_timeout || self.is_reopen_prevented()
            }
        };
        let prior = self.cwnd();
        let mut event = LossEvent::new(now, cause, Bytes::new(lost.bytes));
        event.packets = lost.packets;
        event.newest_sent = lost.newest_sent;
        event.in_flight = Bytes::new(self.flight_size(in_flight));
        event.new_epoch = new_epoch;
        event.smoothed_rtt = self.rtt.smoothed();
        let losses = std::mem::take(&mut self.newly_lost);
        event.lost = &losses;
        event.lost_total = Bytes::new(self.rate.lost);
        event.delivered = Bytes::new(self.rate.delivered);
        self.scheme.on_loss(&event);
        self.read_allowance();
        self.newly_lost = losses;
        if new_epoch && !matches!(self.state, CongestionState::Open) {
            // They were recorded as losses of the epoch that ends here.
            self.epoch += 1;
            for lost in &self.newly_lost {
                if let Some(packet) = self.sent.get_mut(lost.number) {
                    packet.lost_in_epoch = self.epoch;
                }
            }
        }
        self.newly_lost.clear();
        if new_epoch {
            self.epoch_by_mark = false;
            self.epoch_losses = 0;
            self.timeout_in_epoch = false;
            self.enter_recovery(cause, prior, in_flight);
        } else if cause == LossCause::Reordering {
            self.lower_reduction();
        } else {
            self.timeout_in_epoch |= matches!(self.state, CongestionState::Recovery(_));
            self.epoch_cause = cause;
            self.high_seq = self.snd_nxt;
            self.state = CongestionState::Loss;
        }
        if cause != LossCause::Reordering {
            self.snd_una_at_timeout = self.snd_una;
        }
        self.epoch_losses += lost.packets;
    }

    pub(super) fn enter_recovery(&mut self, cause: LossCause, prior: u64, in_flight: u64) {
        if matches!(self.state, CongestionState::Open) {
            self.epoch += 1;
        }
        self.epoch_cause = cause;
        self.epoch_undone = false;
        self.first_retransmission = None;
        self.counters.recoveries += 1;
        self.high_seq = self.snd_nxt;
        self.state = match cause {
            LossCause::Reordering if self.recovery_rule != Recovery::Restart => {
                CongestionState::Recovery(self.new_prr(prior, in_flight))
            }
            _ => CongestionState::Loss,
        };
    }

    /// Declares everything in flight lost, to be retransmitted in the order of the data.
    fn go_back_n(&mut self, lost: &mut NewlyLost) {
        self.reset_sacked_out();
        for number in self.sent.lowest_outstanding()..self.sent.next_number() {
            let packet = self.sent.get(number);
            if packet.is_some_and(|packet| packet.state == PacketState::Outstanding) {
                self.declare_lost(number, lost);
            }
        }
    }

    fn new_prr(&self, prior: u64, in_flight: u64) -> Option<Prr> {
        let target = self.allowance.cwnd?.get();
        let mss = self.mss;
        (self.recovery_rule == Recovery::Proportional)
            .then(|| Prr::new(prior, target, in_flight, mss))
    }

    /// Bytes of marked packets among `bytes` acknowledged ones. Marks reported by duplicates, which acknowledge
    /// nothing, count with the next acknowledged bytes.
    pub(super) fn take_ce_bytes(&mut self, bytes: u64) -> u64 {
        let mss = self.mss;
        let marked = self.ce_packets_unreported.saturating_mul(mss).min(bytes);
        self.ce_packets_unreported = self
            .ce_packets_unreported
            .saturating_sub(marked.div_ceil(mss));
        marked
    }

    /// Notifies the scheme of new marks.
    pub(super) fn on_ce_marks(&mut self, now: Time, ack: &Ack, in_flight_before: u64) {
        let marked = ack.marked.saturating_sub(self.ce_packets_seen);
        if marked == 0 {
            return;
        }
        self.ce_packets_seen = ack.marked;
        self.ce_packets_unreported = self.ce_packets_unreported.saturating_add(marked);
        let new_epoch = matches!(self.state, CongestionState::Open);
        let prior = self.cwnd();
        let mut event = EcnEvent::new(now, Bytes::new(self.flight_size(in_flight_before)));
        event.packets = marked;
        event.new_epoch = new_epoch;
        self.scheme.on_ecn(&event);
        self.read_allowance();
        if new_epoch {
            self.epoch_by_mark = true;
            // Marks are not losses, so the epoch cannot be undone.
            self.epoch_losses = 0;
            self.enter_recovery(LossCause::Reordering, prior, in_flight_before);
        } else {
            self.lower_reduction();
        }
    }

    /// Ends recovery when everything sent before it began is acknowledged; without selective acknowledgements only when
    /// more is, because duplicates may then be due to data sent twice (RFC 6582, section 3.2, step 1; Linux,
    /// tcp_is_non_sack_preventing_reopen).
    pub(super) fn try_exit_recovery(&mut self, now: Time) {
        let open = matches!(self.state, CongestionState::Open);
        if open || self.snd_una < self.high_seq || self.is_reopen_prevented() {
            return;
        }
        self.state = CongestionState::Open;
        self.rack.on_recovery_exit();
        self.scheme.on_recovery_exit(now);
        self.read_allowance();
    }

    /// Without SACK: exactly `high_seq` is acknowledged (Linux: tcp_is_non_sack_preventing_reopen).
    pub(super) fn is_reopen_prevented(&self) -> bool {
        let repaired = !matches!(self.state, CongestionState::Open) && self.epoch_losses > 0;
        !self.config.sack && repaired && self.snd_una == self.high_seq
    }

    /// Handles the arrival of packets declared lost, `in_epoch` of the current epoch; `at_gap` if one of them begins
    /// the first gap. If all losses of the epoch were spurious, or the first acknowledgement after a timeout is for an
    /// old packet, the epoch is undone.
    pub(super) fn on_spurious_losses(&mut self, now: Time, in_epoch: u64, at_gap: bool) {
        if self.spurious_round != self.round {
            self.spurious_round = self.round;
            self.rack.on_spurious();
        }
        let before = self.epoch_losses;
        self.epoch_losses = before.saturating_sub(in_epoch);
        // Without per-packet times a timeout declares everything in flight lost. Packets sent just before it still
        // arrive, and do not show that the timeout was spurious.
        let proof = at_gap || self.config.rack || !self.config.reliable;
        let undone = match self.state {
            // Every packet declared lost by a timeout and retransmitted may still arrive: once is enough.
            _ if in_epoch == 0 || self.epoch_undone => false,
            // F-RTO's question (RFC 5682), which unique packet numbers answer at once. If the scheme has restarted
            // after a loss, the arrivals were expected.
            CongestionState::Loss if !self.timeout_in_epoch => {
                proof && self.epoch_cause != LossCause::Reordering
            }
            _ => self.epoch_losses == 0,
        };
        if undone {
            self.undo_recovery(now);
        }
    }

    /// Without selective acknowledgements: the packet that moved the first gap was sent before any retransmission of
    /// this epoch, so it was only late, or duplicates were due to data sent twice (RFC 3522; Linux,
    /// tcp_packet_delayed). After a timeout that is weaker evidence: acknowledgements may have been lost together with
    /// data.
    pub(super) fn check_packet_delayed(&mut self, now: Time, number: u64) {
        let doubted = self.in_recovery() && self.epoch_losses > 0;
        if doubted
            && self
                .first_retransmission
                .is_some_and(|first| number < first)
        {
            self.counters.spurious_losses += 1;
            self.reset_sacked_out();
            self.undo_recovery(now);
        }
    }

    /// The losses of the epoch were spurious.
    fn undo_recovery(&mut self, now: Time) {
        if matches!(self.state, CongestionState::Loss) {
            // Data not yet retransmitted is in flight after all, unless it was sent so long ago that it is forgotten.
            let (sent, in_flight) = (&mut self.sent, &mut self.in_flight);
            self.retransmit_queue.retain(|Reverse(retransmission)| {
                match sent.get(retransmission.number) {
                    Some(packet) if packet.state == PacketState::Lost => {
                        sent.revive(retransmission.number);
                        *in_flight += u64::from(retransmission.length);
                        false
                    }
                    Some(_) => false,
                    None => true,
                }
            });
            self.lost_hint = 0;
        }
        self.epoch_losses = 0;
        self.epoch_undone = true;
        self.state = CongestionState::Open;
        self.scheme
            .on_spurious_loss(&SpuriousLossEvent::new(now, self.epoch_cause));
        self.read_allowance();
    }
}
