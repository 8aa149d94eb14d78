//! Steps along a measured gradient of utility, as Vivace and its successor take them: in proportion to the
//! gradient, larger with each step in the same direction, and within a bound that grows as well.

use crate::parts::exp_log::powf;

/// Bytes of a packet that count in rates: its payload and headers, since UDT's programs count whole packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    mss: u64,
    header: u64,
}

impl Counted {
    /// For packets with `mss` bytes of payload and `header` bytes counted in addition.
    pub fn new(header: u64, mss: u64) -> Self {
        Counted { mss, header }
    }

    /// Bytes of a full packet.
    pub fn packet(self) -> f64 {
        (self.mss + self.header) as f64
    }

    /// The fraction of a full packet that is payload, the unit of the transport's pacing.
    pub fn payload_share(self) -> f64 {
        self.mss as f64 / self.packet()
    }

    /// Bytes of a number of packets with a total payload.
    pub fn bytes(self, payload: u64, packets: u64) -> f64 {
        (payload + self.header * packets) as f64
    }
}

/// Exponent of the rate in the utility.
const EXPONENT: f64 = 0.9;
/// Weight of loss in the utility above [`SMALL_LOSS`].
pub const LOSS_COEFFICIENT: f64 = 11.35;
/// Loss ratio up to which the programs weigh loss by 1.
const SMALL_LOSS: f64 = 0.03;

/// The part of the utility that is independent of the round-trip time, for a rate in Mibit/s and a loss ratio.
pub fn worth(rate: f64, weight: f64, loss: f64) -> f64 {
    powf(rate, EXPONENT) - rate * (weight * loss)
}

/// The programs' weight of a loss ratio.
pub fn loss_weight(loss: f64) -> f64 {
    if loss > SMALL_LOSS {
        LOSS_COEFFICIENT
    } else {
        1.0
    }
}

/// A slope as used by the programs: truncated towards zero to an even number of hundredths.
pub fn even_hundredths(slope: f64) -> f64 {
    (slope * 50.0).trunc() / 50.0
}

/// Differences between the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientRule {
    /// PCC-Uspace, branch NSDI-2018.
    Vivace,
    /// PCC-Uspace, commit cd43e34.
    Expr,
}

/// The bound of the first step as a fraction of the rate, and its increment for each step that reaches it.
const FIRST_BOUND: f64 = 0.05;
const BOUND_STEP: f64 = 0.06;
/// Maximum number of turns that delay growth.
const MAX_SWING: f64 = 2.0;

/// Results of the previous steps.
#[derive(Clone, Debug)]
pub struct GradientSteps {
    rule: GradientRule,
    /// Steps in one direction make the next one larger by a function of this.
    amplifier: f64,
    /// Steps that were bounded.
    bounded: f64,
    /// Turns not yet offset by steps in one direction.
    swing: f64,
    /// The last step; 0 before the first.
    pub previous: f64,
    /// Steps since the last turn.
    pub agreeing: u32,
}

/// A rate, and its utility.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientSample {
    /// The rate, in the unit of the steps.
    pub rate: f64,
    /// Its utility.
    pub utility: f64,
}

impl GradientSteps {
    /// Without history.
    pub fn new(rule: GradientRule) -> Self {
        GradientSteps {
            rule,
            amplifier: 0.0,
            bounded: 0.0,
            swing: 0.0,
            previous: 0.0,
            agreeing: 0,
        }
    }

    fn factor(&self) -> f64 {
        let m = self.amplifier;
        match self.rule {
            _ if m < 3.0 => m + 1.0,
            _ if m < 6.0 => 2.0 * m - 2.0,
            _ if m < 9.0 => 4.0 * m - 14.0,
            GradientRule::Vivace => 8.0 * m - 50.0,
            GradientRule::Expr => 9.0 * m - 50.0,
        }
    }

    fn turns(&self, step: f64) -> bool {
        match self.rule {
            GradientRule::Vivace => self.previous * step < 0.0,
            // The absence of a previous step counts as a step down.
            GradientRule::Expr => (self.previous > 0.0) != (step > 0.0),
        }
    }

    /// The step from the rate `base`, from the change between two samples; never smaller than `least` unless it is
    /// zero.
    pub fn step(&mut self, from: GradientSample, to: GradientSample, base: f64, least: f64) -> f64 {
        if from.rate == to.rate {
            return least;
        }
        let gradient = (to.utility - from.utility) / (to.rate - from.rate);
        let turn = self.turns(gradient);
        if turn {
            (self.amplifier, self.bounded) = (0.0, 0.0);
            self.swing = (self.swing + 1.0).min(MAX_SWING);
        }
        let mut step = gradient * self.factor();
        if turn {
            self.agreeing = 0;
        } else {
            self.agreeing += 1;
            if self.swing > 0.0 {
                self.swing -= 1.0;
            } else {
                let slowly = match self.rule {
                    GradientRule::Vivace => self.amplifier > 3.0,
                    GradientRule::Expr => self.amplifier < 3.0,
                };
                self.amplifier += if slowly { 0.5 } else { 1.0 };
            }
        }
        let bound = (FIRST_BOUND + BOUND_STEP * self.bounded) * base;
        if step.abs() > bound {
            step = bound.copysign(step);
            self.bounded += 1.0;
        } else {
            self.bounded = (self.bounded - 1.0).max(0.0);
        }
        if turn {
            (self.amplifier, self.bounded) = (0.0, 0.0);
        }
        if step != 0.0 && step.abs() < least {
            step = least.copysign(step);
        }
        self.previous = step;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a constant gradient from a rate so large that no bound is reached.
    fn factors(rule: GradientRule, gradient: f64, count: usize) -> Vec<f64> {
        let mut steps = GradientSteps::new(rule);
        let (from, to) = (
            GradientSample {
                rate: 1.0,
                utility: 0.0,
            },
            GradientSample {
                rate: 2.0,
                utility: gradient,
            },
        );
        (0..count)
            .map(|_| steps.step(from, to, 1e9, 0.0) / gradient)
            .collect()
    }

    #[test]
    fn with_a_fifth_lost_utility_falls_with_the_rate_down_to_100_bits_per_second() {
        // Its derivative 0.9 x^-0.1 - 11.35 L is zero at x = (0.9/(11.35 L))^10 Mibit/s.
        let at = |rate: f64| worth(rate, loss_weight(0.2), 0.2);
        let best = powf(EXPONENT / (LOSS_COEFFICIENT * 0.2), 10.0);
        assert!((best * 1_048_576.0 - 100.0).abs() < 2.0, "{best}");
        assert!(at(best) > at(0.9 * best) && at(best) > at(1.1 * best));
        for rate in [0.01, 0.1, 1.0, 10.0] {
            assert!(at(1.05 * rate) < at(0.95 * rate), "{rate}");
        }
    }

    #[test]
    fn slopes_are_cut_toward_zero_to_even_hundredths() {
        for (slope, seen) in [
            (0.0, 0.0),
            (0.0199, 0.0),
            (-0.0199, 0.0),
            (0.021, 0.02),
            (0.039, 0.02),
            (0.041, 0.04),
            (-0.05, -0.04),
        ] {
            assert!((even_hundredths(slope) - seen).abs() < 1e-12, "{slope}");
        }
    }

    #[test]
    fn loss_weighs_eleven_times_as_much_above_three_percent() {
        for (loss, weight) in [(0.0, 1.0), (0.03, 1.0), (0.0301, 11.35), (0.2, 11.35)] {
            assert_eq!(loss_weight(loss), weight, "{loss}");
        }
    }

    #[test]
    fn steps_in_one_direction_grow() {
        // The amplifier is 0, 1, 2, 3, 4, and then grows in halves.
        let grown = [
            1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 26.0,
            30.0,
        ];
        assert_eq!(factors(GradientRule::Vivace, 1.0, grown.len()), grown);
        // Here the first step up is a turn, which the second one offsets; then the amplifier grows in halves up to 3,
        // and by 1 from there: 4, 5 ... 9, 10.
        let grown = [
            1.0, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 8.0, 10.0, 14.0, 18.0, 31.0, 40.0,
        ];
        assert_eq!(factors(GradientRule::Expr, 1.0, grown.len()), grown);
    }

    #[test]
    fn amplifiers_are_those_of_the_programs() {
        // m from 0 to 10 in whole steps. They differ from 9 on.
        for (rule, last) in [
            (GradientRule::Vivace, [22.0, 30.0]),
            (GradientRule::Expr, [31.0, 40.0]),
        ] {
            let mut steps = GradientSteps::new(rule);
            let found: Vec<f64> = (0..=10)
                .map(|m| {
                    steps.amplifier = f64::from(m);
                    steps.factor()
                })
                .collect();
            assert_eq!(found[..9], [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 14.0, 18.0]);
            assert_eq!(found[9..], last);
        }
    }

    #[test]
    fn a_step_is_bounded_by_a_share_that_grows_with_each_step_that_reaches_it() {
        let mut steps = GradientSteps::new(GradientRule::Vivace);
        let (from, to) = (
            GradientSample {
                rate: 1.0,
                utility: 0.0,
            },
            GradientSample {
                rate: 2.0,
                utility: 1e6,
            },
        );
        let shares: Vec<f64> = (0..4).map(|_| steps.step(from, to, 100.0, 0.5)).collect();
        for (found, share) in shares.iter().zip([5.0, 11.0, 17.0, 23.0]) {
            assert!((found - share).abs() < 1e-9, "{shares:?}");
        }
        // A turn restarts it.
        let back = GradientSample {
            rate: 2.0,
            utility: -1e6,
        };
        assert!((steps.step(from, back, 100.0, 0.5) + 5.0).abs() < 1e-9);
        assert!((steps.step(from, back, 100.0, 0.5) + 5.0).abs() < 1e-9);
        assert!((steps.step(from, back, 100.0, 0.5) + 11.0).abs() < 1e-9);
    }

    #[test]
    fn a_step_is_never_smaller_than_the_least_unless_it_is_none() {
        let mut steps = GradientSteps::new(GradientRule::Vivace);
        let from = GradientSample {
            rate: 10.0,
            utility: 5.0,
        };
        for (utility, step) in [(5.001, 0.5), (5.0, 0.0), (4.999, -0.5)] {
            assert_eq!(
                steps.step(
                    from,
                    GradientSample {
                        rate: 11.0,
                        utility
                    },
                    10.0,
                    0.5
                ),
                step
            );
        }
        assert_eq!(steps.step(from, from, 10.0, 0.5), 0.5);
    }

    #[test]
    fn turns_make_growth_wait() {
        let mut steps = GradientSteps::new(GradientRule::Vivace);
        let from = GradientSample {
            rate: 1.0,
            utility: 0.0,
        };
        let mut go =
            |utility: f64| steps.step(from, GradientSample { rate: 2.0, utility }, 1e9, 0.0);
        assert_eq!([go(1.0), go(1.0), go(-1.0), go(1.0)], [1.0, 2.0, -1.0, 1.0]);
        // Two turns: two steps offset them, the third one grows.
        assert_eq!([go(1.0), go(1.0), go(1.0), go(1.0)], [1.0, 1.0, 1.0, 2.0]);
    }
}
