//! Copa's delta: a constant, or smaller while others keep the queue from ever becoming empty.

use narrows_units::{Span, Time};

/// Delta and the state that determines it.
#[derive(Clone, Debug)]
pub(super) struct CopaMode {
    automatic: bool,
    default: f64,
    /// True if every acknowledgement that reports losses halves 1/delta.
    each: bool,
    delta: f64,
    competitive: bool,
    /// When 1/delta last grew, and when losses last doubled delta.
    grown: Time,
    lowered: Option<Time>,
}

impl CopaMode {
    pub(super) fn new(automatic: bool, default: f64, each: bool) -> Self {
        CopaMode {
            automatic,
            default,
            each,
            delta: default,
            competitive: false,
            grown: Time::ZERO,
            lowered: None,
        }
    }

    /// Current weight of the queueing delay.
    pub(super) fn delta(&self) -> f64 {
        self.delta
    }

    pub(super) fn is_competitive(&self) -> bool {
        self.competitive
    }

    /// A packet was acknowledged; `empty` is true if the queue was nearly empty recently.
    pub(super) fn on_ack(&mut self, now: Time, rtt: Span, empty: bool) {
        if !self.automatic {
            return;
        }
        if empty {
            self.competitive = false;
            // The reference keeps the result of a loss for a round trip.
            if !self.each || self.is_a_round_trip_past_losses(now, rtt) {
                self.delta = self.default;
            }
        } else if !self.competitive {
            self.competitive = true;
            self.delta = self.default;
            self.grown = now;
        } else if now > self.grown + rtt {
            // AIMD on 1/delta, the number of packets kept in the queue.
            self.delta = self.default.min(1.0 / (1.0 / self.delta + 1.0));
            self.grown = now;
        }
    }

    fn is_a_round_trip_past_losses(&self, now: Time, rtt: Span) -> bool {
        self.lowered.is_none_or(|at| now > at + rtt)
    }

    /// Packets were lost.
    pub(super) fn on_loss(&mut self, now: Time, rtt: Span) {
        if self.competitive && (self.each || self.is_a_round_trip_past_losses(now, rtt)) {
            self.delta = self.default.min(2.0 * self.delta);
            self.lowered = Some(now);
        }
    }

    /// Resets the mode.
    pub(super) fn reset(&mut self) {
        *self = CopaMode::new(self.automatic, self.default, self.each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_ms(40);

    #[test]
    fn one_packet_more_per_round_trip_and_half_after_a_loss() {
        let mut mode = CopaMode::new(true, 0.5, false);
        let mut now = Time::ZERO + Span::from_ms(1000);
        mode.on_ack(now, RTT, true);
        assert_eq!((mode.delta(), mode.is_competitive()), (0.5, false));
        mode.on_ack(now, RTT, false);
        assert_eq!((mode.delta(), mode.is_competitive()), (0.5, true));
        for round in 1..=8u32 {
            now += RTT + Span::from_ns(1);
            for _ in 0..5 {
                mode.on_ack(now, RTT, false);
            }
            assert!((1.0 / mode.delta() - f64::from(2 + round)).abs() < 1e-9);
        }
        // Ten packets; the losses of one round trip count once.
        mode.on_loss(now, RTT);
        mode.on_loss(now + RTT, RTT);
        assert!((1.0 / mode.delta() - 5.0).abs() < 1e-9);
        for _ in 0..5 {
            now += RTT + Span::from_ns(1);
            mode.on_loss(now, RTT);
        }
        // Never less than without competitors.
        assert_eq!(mode.delta(), 0.5);
        mode.on_ack(now, RTT, true);
        assert!(!mode.is_competitive());
    }

    #[test]
    fn in_the_reference_each_acknowledgement_with_losses_halves_and_what_is_left_stays_for_a_round_trip() {
        let mut mode = CopaMode::new(true, 0.5, true);
        let mut now = Time::ZERO + Span::from_ms(1000);
        for _ in 0..31 {
            now += RTT + Span::from_ns(1);
            mode.on_ack(now, RTT, false);
        }
        assert!((1.0 / mode.delta() - 32.0).abs() < 1e-9);
        mode.on_loss(now, RTT);
        mode.on_loss(now, RTT);
        mode.on_loss(now + Span::from_ns(1), RTT);
        assert!((1.0 / mode.delta() - 4.0).abs() < 1e-9);
        mode.on_ack(now + RTT, RTT, true);
        assert!(!mode.is_competitive() && (1.0 / mode.delta() - 4.0).abs() < 1e-9);
        mode.on_ack(now + RTT + Span::from_ns(2), RTT, true);
        assert_eq!(mode.delta(), 0.5);
    }

    #[test]
    fn a_constant_is_constant() {
        let mut mode = CopaMode::new(false, 1.0, false);
        for ms in 0..1000 {
            mode.on_ack(Time::ZERO + Span::from_ms(ms), RTT, false);
            mode.on_loss(Time::ZERO + Span::from_ms(ms), RTT);
        }
        assert_eq!((mode.delta(), mode.is_competitive()), (1.0, false));
    }
}
