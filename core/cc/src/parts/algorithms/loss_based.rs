//! The common part of loss-based schemes: growth only while the flow is window-limited and no reduction is in progress,
//! one reduction per epoch, a restart after a timeout, and the undo of spurious losses. A scheme adds its
//! [`WindowRules`].

use crate::parts::CongestionWindow;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, Fields, HeardSends, LossCause, LossEvent,
    SendEvent, SpuriousLossEvent,
};
use narrows_units::{Bytes, Span, Time};

/// Reason for a window reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionCause {
    /// Losses, detected by later arrivals.
    Loss,
    /// Marks of congestion experienced.
    Mark,
    /// A timeout.
    Timeout,
}

/// A congestion event that opens an epoch.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// Now.
    pub now: Time,
    /// Why.
    pub cause: ReductionCause,
    /// Packets in flight before the lost ones were removed.
    pub in_flight: f64,
}

/// The rules by which one loss-based scheme grows and reduces its window. The whole value is the scheme's private
/// state: it is cloned before each reduction, and restored if the losses were spurious.
pub trait WindowRules: Clone + Send + 'static {
    /// Called for every acknowledgement, before anything else, also during a recovery and while the flow is not
    /// window-limited: for RTT samples and work done once per round.
    fn observe(&mut self, _ack: &AckEvent<'_>, _window: &mut CongestionWindow) {}

    /// Growth in slow start by `bytes` acknowledged; returns the bytes left for congestion avoidance once the threshold
    /// is reached.
    fn slow_start(
        &mut self,
        window: &mut CongestionWindow,
        _ack: &AckEvent<'_>,
        bytes: u64,
    ) -> u64 {
        window.slow_start(bytes)
    }

    /// Growth in congestion avoidance by `bytes` acknowledged.
    fn congestion_avoidance(
        &mut self,
        window: &mut CongestionWindow,
        ack: &AckEvent<'_>,
        bytes: u64,
    );

    /// The window after a congestion event, in packets; the caller keeps it at two or more. If the scheme restarts, it
    /// is the threshold up to which slow start runs from one packet.
    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64;

    /// True if slow start restarts from one packet, up to [`WindowRules::ssthresh`].
    fn restarts_slow_start(&self, cause: ReductionCause) -> bool {
        cause == ReductionCause::Timeout
    }

    /// Losses beyond the first of an epoch, and timeouts that repeat one.
    fn on_further_loss(&mut self, _window: &mut CongestionWindow, _loss: &LossEvent<'_>) {}

    /// Everything in flight when the epoch began has been acknowledged or lost.
    fn on_recovery_exit(&mut self, _window: &mut CongestionWindow, _now: Time) {}

    /// The losses of the epoch were spurious: `prior` is the state before it.
    fn undo(&mut self, prior: Self) {
        *self = prior;
    }

    /// A packet was sent after nothing had been in flight for the span `idle`.
    fn on_idle_end(&mut self, _now: Time, _idle: Span) {}

    /// The pacing rate and the quantum, if the scheme sets them.
    fn pace(&self, _window: &CongestionWindow, _allowance: &mut Allowance) {}

    /// Values for plots and audits; threshold and mode are already included.
    fn trace(&self, _fields: &mut Fields) {}
}

/// A scheme made of [`WindowRules`].
#[derive(Clone, Debug)]
pub struct LossBased<R> {
    window: CongestionWindow,
    rules: R,
    /// The rules' state before the reduction of the current epoch.
    prior: Option<R>,
}

impl<R: WindowRules> LossBased<R> {
    /// A scheme that starts with `window`.
    pub fn new(window: CongestionWindow, rules: R) -> Self {
        LossBased {
            window,
            rules,
            prior: None,
        }
    }

    /// As [`LossBased::new`], boxed for a registry entry.
    pub fn boxed(window: CongestionWindow, rules: R) -> Box<dyn CongestionControl> {
        Box::new(LossBased::new(window, rules))
    }

    fn reduce(&mut self, now: Time, cause: ReductionCause, in_flight: Bytes) {
        self.prior = Some(self.rules.clone());
        let in_flight = in_flight.get() as f64 / self.window.mss();
        let congestion = CongestionEvent {
            now,
            cause,
            in_flight,
        };
        let target = self.rules.ssthresh(&self.window, &congestion) * self.window.mss();
        let target = target.round() as u64;
        if self.rules.restarts_slow_start(cause) {
            self.window.restart(target);
        } else {
            self.window.reduce(target);
        }
    }
}

impl<R: WindowRules> CongestionControl for LossBased<R> {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.rules.observe(ack, &mut self.window);
        if ack.in_recovery || !ack.may_grow || !ack.cwnd_limited {
            return;
        }
        let mut bytes = ack.bytes.get();
        if self.window.in_slow_start() {
            bytes = self.rules.slow_start(&mut self.window, ack, bytes);
        }
        if bytes > 0 && !self.window.in_slow_start() {
            self.rules
                .congestion_avoidance(&mut self.window, ack, bytes);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        let timeout = loss.cause != LossCause::Reordering;
        if loss.new_epoch && timeout {
            self.reduce(loss.now, ReductionCause::Timeout, loss.in_flight);
        } else if loss.new_epoch {
            self.reduce(loss.now, ReductionCause::Loss, loss.in_flight);
        } else {
            if timeout {
                // The threshold is unchanged: this data has timed out before (RFC 5681, section 3.1).
                self.window.restart_again();
            }
            self.rules.on_further_loss(&mut self.window, loss);
        }
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        if ecn.new_epoch {
            self.reduce(ecn.now, ReductionCause::Mark, ecn.in_flight);
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        if let Some(prior) = self.prior.take() {
            self.rules.undo(prior);
            self.window.undo();
        }
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.rules.on_recovery_exit(&mut self.window, now);
    }

    fn on_send(&mut self, send: &SendEvent) {
        if let Some(idle) = send.idle {
            self.rules.on_idle_end(send.now, idle);
        }
    }

    fn heard_sends(&self) -> HeardSends {
        HeardSends::AfterIdle
    }

    fn allowance(&self) -> Allowance {
        let mut allowance = Allowance {
            cwnd: Some(self.window.cwnd()),
            ..Allowance::default()
        };
        self.rules.pace(&self.window, &mut allowance);
        allowance
    }

    fn trace(&self, fields: &mut Fields) {
        fields.ssthresh = self.window.ssthresh();
        fields.mode = if self.window.in_slow_start() {
            "slow_start"
        } else {
            "avoidance"
        };
        self.rules.trace(fields);
    }
}
