//! The sender's timers: retransmission, tail-loss probe, reordering, the scheme's own.

use super::ack::NewlyLost;
use super::{CongestionState, FrtoState, Sender};
use crate::sent_packets::PacketState;
use narrows_cc::LossCause;
use narrows_units::{Span, Time};

/// Unanswered timeouts in a row after which congestion counts as persistent (RFC 9002, section
/// 7.6.1: three probe timeouts).
const MIN_PERSISTENT_TIMEOUTS: u32 = 3;

impl Sender {
    /// True if only the retransmission timer can detect the loss of a retransmission. Then only progress at the first
    /// gap restarts it (RFC 6298, rules 5.1 and 5.3): data may arrive beyond the gap indefinitely.
    #[inline]
    pub(super) fn only_rto_detects_loss(&self) -> bool {
        let counted = self.config.reliable && !(self.config.sack && self.config.rack);
        let running = self.retransmit_timer != Time::FAR && !self.timer_is_tlp;
        counted && running && !matches!(self.state, CongestionState::Open)
    }

    /// Restarts the retransmission timer, or the probe timer if a probe may help: data in flight, no recovery, no
    /// reordering, no unanswered probe (RFC 8985, section 7.2).
    #[inline]
    pub(super) fn rearm_rto(&mut self, now: Time) {
        if self.in_flight + self.sacked_out == 0 {
            self.retransmit_timer = Time::FAR;
            self.timer_is_tlp = false;
            return;
        }
        let span = self.probe_timeout();
        self.timer_is_tlp = span.is_some();
        self.retransmit_timer = now + span.unwrap_or_else(|| self.rtt.backed_off(self.rto_backoff));
    }

    /// Time after which a tail-loss probe is sent; `None` if a probe cannot help.
    #[inline]
    fn probe_timeout(&self) -> Option<Span> {
        let may_probe = self.config.tail_loss_probe
            && self.config.sack
            && !self.tlp_unanswered
            && self.rto_backoff == 0
            && matches!(self.state, CongestionState::Open)
            && self.reordering_timer == Time::FAR;
        if !may_probe {
            return None;
        }
        let single = self.in_flight <= self.mss;
        let interval = self.ack_interval().unwrap_or_default();
        let delay = self.config.max_ack_delay.max(interval);
        self.rtt
            .probe_timeout(single, delay, self.config.timer_slack())
    }

    /// Handles the timers due by `now`.
    #[inline]
    pub(super) fn run_timers(&mut self, now: Time) {
        if self.reordering_timer <= now {
            self.detect_losses(now, self.in_flight);
            self.rearm_rto(now);
        }
        if self.retransmit_timer <= now {
            if self.timer_is_tlp {
                self.timer_is_tlp = false;
                self.tlp_due = true;
                // From here on the retransmission timer runs (RFC 8985, section 7.3).
                self.retransmit_timer = now + self.rtt.backed_off(self.rto_backoff);
            } else {
                self.on_timeout(now);
            }
        }
        if self.scheme_timer <= now {
            self.scheme.on_timer(now);
            self.read_allowance();
        }
    }

    /// No acknowledgement arrived for a whole timeout: the oldest packet is lost, and so is everything else in flight
    /// for longer than a round trip.
    fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        if matches!(self.state, CongestionState::Open)
            && let Some(newest) = self.rack.newest_delivered()
        {
            let lowest = self.sent.lowest_outstanding();
            self.rack
                .on_missed_loss(self.count_overtaking(lowest, newest));
        }
        if matches!(self.state, CongestionState::Open) && !self.config.sack {
            let mss = self.mss;
            self.rack.on_missed_loss(self.sacked_out / mss);
        }
        let in_flight = self.in_flight;
        self.reset_sacked_out();
        // If a recovery ends in a timeout, or a timeout is followed by another without progress, data is known to be
        // lost (Linux, tcp_enter_loss).
        let doubtful = matches!(self.state, CongestionState::Open) || self.rto_backoff > 0;
        self.frto = if doubtful && !self.config.sack {
            FrtoState::AwaitsFirstAck
        } else {
            FrtoState::Inactive
        };
        let window = self
            .rack
            .reordering_window(self.rtt.min(), self.rtt.smoothed(), true, 0);
        let known = self.rtt.is_known();
        let lowest = self.sent.lowest_outstanding();
        let mut lost = NewlyLost::default();
        // Without per-packet times, everything counts as lost.
        let clocked = self.config.sack && self.config.rack;
        let expire_all = !known || !clocked || self.rack.newest_delivered().is_none();
        for number in lowest..self.sent.next_number() {
            let Some(packet) = self.sent.get(number) else {
                continue;
            };
            if packet.state != PacketState::Outstanding {
                continue;
            }
            let first = lost.packets == 0;
            if first || expire_all || self.rack.expired(packet.sent_at, window, now) {
                self.declare_lost(number, &mut lost);
            } else {
                break;
            }
        }
        let cause = if self.rto_backoff >= MIN_PERSISTENT_TIMEOUTS {
            LossCause::Persistent
        } else {
            LossCause::Timeout
        };
        self.notify_losses(now, cause, &lost, in_flight);
        self.rto_backoff += 1;
        self.tlp_unanswered = false;
        self.reordering_timer = Time::FAR;
        self.retransmit_timer =
            if self.in_flight + self.sacked_out == 0 && self.retransmit_queue.is_empty() {
                // Everything is abandoned: the next packet starts the timer.
                Time::FAR
            } else {
                now + self.rtt.backed_off(self.rto_backoff)
            };
    }
}
