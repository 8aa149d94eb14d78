//! The sender's timers: retransmission, tail-loss probe, reordering, the scheme's own.

use super::ack::Lost;
use super::{Phase, Question, Sender};
use crate::sent::State;
use narrows_cc::LossCause;
use narrows_units::Time;

/// Unanswered timeouts in a row after which congestion counts as persistent (RFC 9002, section
/// 7.6.1: three probe timeouts).
const PERSISTENT: u32 = 3;

impl Sender {
    /// Whether nothing but the retransmission timer will notice that a repair was lost. Then only what moves the first
    /// gap restarts it (RFC 6298, rules 5.1 and 5.3): beyond the gap data may arrive without end.
    #[inline]
    pub(super) fn awaits_repair(&self) -> bool {
        let counted = self.config.reliable && !(self.config.sack && self.config.rack);
        let running = self.timer != Time::FAR && !self.timer_is_probe;
        counted && running && !matches!(self.phase, Phase::Open)
    }

    /// Restarts the retransmission timer, or the probe timer where a probe may help: some data in
    /// flight, no recovery, nothing overtaken, no probe without answer (RFC 8985, section 7.2).
    #[inline]
    pub(super) fn arm_timer(&mut self, now: Time) {
        if self.in_flight + self.assumed == 0 {
            self.timer = Time::FAR;
            self.timer_is_probe = false;
            return;
        }
        let probe = self.config.tail_loss_probe
            && self.config.sack
            && !self.probed
            && self.backoffs == 0
            && matches!(self.phase, Phase::Open)
            && self.reordering_timer == Time::FAR;
        let probe = probe.then(|| {
            let single = self.in_flight <= u64::from(self.config.mss);
            let interval = self.ack_interval().unwrap_or_default();
            let delay = self.config.max_ack_delay.max(interval);
            let slack = self.config.timer_slack();
            self.rtt.probe_timeout(single, delay, slack)
        });
        let probe = probe.flatten();
        self.timer_is_probe = probe.is_some();
        let span = probe.unwrap_or_else(|| self.rtt.backed_off(self.backoffs));
        self.timer = now + span;
    }

    /// Does what is due by `now`.
    #[inline]
    pub(super) fn run_timers(&mut self, now: Time) {
        if self.reordering_timer <= now {
            self.detect_losses(now, self.in_flight);
            self.arm_timer(now);
        }
        if self.timer <= now {
            if self.timer_is_probe {
                self.timer_is_probe = false;
                self.send_probe = true;
                // From here on the retransmission timer runs (RFC 8985, section 7.3).
                self.timer = now + self.rtt.backed_off(self.backoffs);
            } else {
                self.on_timeout(now);
            }
        }
        if let Some(timer) = self.scheme.next_timer()
            && timer <= now
        {
            self.scheme.on_timer(now);
            self.read_allowance();
        }
    }

    /// Nothing was heard for a whole timeout: the oldest packet is lost, and so is everything else
    /// that has been out for longer than a round trip.
    fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        if matches!(self.phase, Phase::Open)
            && let Some(newest) = self.loss.newest()
        {
            let lowest = self.sent.lowest_outstanding();
            self.loss.on_missed_loss(self.overtaking(lowest, newest));
        }
        if matches!(self.phase, Phase::Open) && !self.config.sack {
            let mss = u64::from(self.config.mss);
            self.loss.on_missed_loss(self.assumed / mss);
        }
        let in_flight = self.in_flight;
        self.forget_duplicates();
        // Where a recovery ends in a timeout, or a timeout in the next one that has not moved anything, it is known
        // that data is lost (Linux, tcp_enter_loss).
        let doubtful = matches!(self.phase, Phase::Open) || self.backoffs > 0;
        self.asks = if doubtful && !self.config.sack {
            Question::Due
        } else {
            Question::Settled
        };
        let window = self
            .loss
            .window(self.rtt.min(), self.rtt.smoothed(), true, 0);
        let known = self.rtt.is_known();
        let lowest = self.sent.lowest_outstanding();
        let mut lost = Lost::default();
        // Without a clock for each packet, everything counts as lost.
        let clocked = self.config.sack && self.config.rack;
        let expire_all = !known || !clocked || self.loss.newest().is_none();
        for number in lowest..self.sent.next_number() {
            let Some(packet) = self.sent.get(number) else {
                continue;
            };
            if packet.state != State::Outstanding {
                continue;
            }
            let first = lost.packets == 0;
            if first || expire_all || self.loss.expired(packet.at, window, now) {
                self.declare_lost(number, &mut lost);
            } else {
                break;
            }
        }
        let cause = if self.backoffs >= PERSISTENT {
            LossCause::Persistent
        } else {
            LossCause::Timeout
        };
        self.report_losses(now, cause, &lost, in_flight);
        self.backoffs += 1;
        self.probed = false;
        self.reordering_timer = Time::FAR;
        self.timer = if self.in_flight + self.assumed == 0 && self.repairs.is_empty() {
            // Given up, and nothing left to ask for: the next packet starts the timer.
            Time::FAR
        } else {
            now + self.rtt.backed_off(self.backoffs)
        };
    }
}
