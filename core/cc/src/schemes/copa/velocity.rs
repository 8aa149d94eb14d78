//! The velocity of Copa's window, with its three historical rules.

use narrows_units::{Span, Time, choice};

choice! {
    /// When the velocity doubles.
    pub(super) enum VelocityRule {
        /// After every round trip in the same direction.
        Reference = "reference",
        /// After the third and each further round trip in the same direction.
        Paper = "paper",
        /// After every round trip in the same direction in which two thirds of the steps agreed; never beyond delta
        /// windows.
        Agreement = "agreement",
    }
}

/// Round trips in one direction after which the paper's velocity begins to double.
const PAPER_ROUNDS: u32 = 3;

/// Velocity and direction.
#[derive(Clone, Debug)]
pub(super) struct Velocity {
    rule: VelocityRule,
    pub(super) value: f64,
    /// Direction of the last round trip.
    up: bool,
    /// Steps up less steps down in this round trip, and their total.
    balance: i64,
    steps: i64,
    /// Round trips in this direction.
    rounds: u32,
    /// When this round trip began.
    since: Option<Time>,
}

impl Velocity {
    pub(super) fn new(rule: VelocityRule) -> Self {
        Velocity {
            rule,
            value: 1.0,
            up: true,
            balance: 1,
            steps: 1,
            rounds: 0,
            since: None,
        }
    }

    /// Evaluates the round trip if it is over, with the last sample as its length, and returns the velocity for a
    /// window of `window` packets.
    pub(super) fn turn(&mut self, now: Time, rtt: Span, window: f64, delta: f64) -> f64 {
        if self.since.is_none_or(|since| now > since + rtt) {
            self.judge();
            self.since = Some(now);
            (self.balance, self.steps) = (0, 0);
        }
        // A window at most doubles in a round trip.
        if self.rule == VelocityRule::Agreement {
            self.value = self.value.min((window * delta).floor());
        } else if self.value > window * delta {
            self.value /= 2.0;
        }
        self.value = self.value.max(1.0);
        self.value
    }

    fn judge(&mut self) {
        let same = if self.up {
            self.balance > 0
        } else {
            self.balance < 0
        };
        if !same {
            self.up = !self.up;
            self.value = 1.0;
            self.rounds = 1;
            return;
        }
        // There is no round trip before the first step.
        self.rounds = self.rounds.saturating_add(u32::from(self.since.is_some()));
        let faster = match self.rule {
            VelocityRule::Reference => true,
            VelocityRule::Paper => self.rounds >= PAPER_ROUNDS,
            // Two thirds in one direction leave a balance of a third.
            VelocityRule::Agreement => 3 * self.balance.abs() >= self.steps,
        };
        if faster {
            self.value = 2.0 * self.value.floor();
        } else if self.rule == VelocityRule::Agreement {
            self.value = 1.0;
        }
    }

    /// The window made a step.
    pub(super) fn step(&mut self, up: bool) {
        self.balance += if up { 1 } else { -1 };
        self.steps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Velocities of the round trips with the steps of `rounds`, up less down of ten.
    fn velocities(rule: VelocityRule, rounds: &[i64]) -> Vec<f64> {
        let (mut velocity, mut now) = (Velocity::new(rule), Time::ZERO);
        let rtt = Span::from_ms(40);
        let mut found = Vec::new();
        for balance in rounds {
            now += rtt + Span::from_ns(1);
            found.push(velocity.turn(now, rtt, 1000.0, 0.5));
            for step in 0..10 {
                // Nothing is evaluated within the round trip.
                velocity.turn(now + rtt, rtt, 1000.0, 0.5);
                velocity.step(step < (10 + balance) / 2);
            }
        }
        found
    }

    #[test]
    fn the_reference_doubles_with_every_round_trip_in_the_same_direction() {
        let found = velocities(VelocityRule::Reference, &[10, 10, 2, -2, -10, -10, 0, 10]);
        assert_eq!(found, [2.0, 4.0, 8.0, 16.0, 1.0, 2.0, 4.0, 1.0]);
    }

    #[test]
    fn the_paper_doubles_after_three_round_trips_in_the_same_direction() {
        let found = velocities(VelocityRule::Paper, &[10, 10, 10, 10, -2, -10, -10, -10, 10, 10]);
        assert_eq!(found, [1.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0, 2.0, 4.0, 1.0]);
    }

    #[test]
    fn the_early_version_wanted_two_thirds_to_agree() {
        // 7 of 10 are two thirds, 6 are not.
        let found = velocities(VelocityRule::Agreement, &[10, 4, 4, 2, 10]);
        assert_eq!(found, [2.0, 4.0, 8.0, 16.0, 1.0]);
    }

    #[test]
    fn the_window_at_most_doubles_in_a_round_trip() {
        let mut velocity = Velocity::new(VelocityRule::Reference);
        velocity.value = 16.0;
        let (now, rtt) = (Time::ZERO, Span::from_ms(40));
        velocity.since = Some(now);
        // delta w is 10: halved once per step until it fits.
        assert_eq!(velocity.turn(now, rtt, 20.0, 0.5), 8.0);
        assert_eq!(velocity.turn(now, rtt, 1.0, 0.5), 4.0);
        let mut early = Velocity {
            rule: VelocityRule::Agreement,
            ..velocity
        };
        early.value = 16.0;
        assert_eq!(early.turn(now, rtt, 21.0, 0.5), 10.0);
        assert_eq!(early.turn(now, rtt, 1.0, 0.5), 1.0);
    }
}
