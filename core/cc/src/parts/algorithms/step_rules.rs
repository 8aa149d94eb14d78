//! Step rules: the times at which a policy decides.

use narrows_units::{Span, Time, choice};

choice! {
    /// Names of the rules.
    pub enum StepRuleName {
        /// See [`STEP_RULES`].
        Ack = "ack",
        /// See [`STEP_RULES`].
        Rtt = "rtt",
        /// See [`STEP_RULES`].
        Time = "time",
    }
}

/// A rule, for registries.
#[derive(Clone, Copy, Debug)]
pub struct StepRuleInfo {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub doc: &'static str,
    /// Unit of its amount.
    pub unit: &'static str,
    /// The amount unless another is given.
    pub default: f64,
    /// Minimum and maximum amount.
    pub range: (f64, f64),
}

/// All rules.
pub const STEP_RULES: &[StepRuleInfo] = &[
    StepRuleInfo {
        name: "ack",
        doc: "With the first acknowledgement more than a time after the last decision.",
        unit: "ms",
        default: 10.0,
        range: (0.0, 10_000.0),
    },
    StepRuleInfo {
        name: "rtt",
        doc: "By a timer, a share of the smoothed RTT, but at least 1 ms, after the last decision.",
        unit: "RTT",
        default: 0.5,
        range: (0.01, 100.0),
    },
    StepRuleInfo {
        name: "time",
        doc: "By a timer, at multiples of a time, so that flows with the same clock decide together.",
        unit: "ms",
        default: 20.0,
        range: (1.0, 10_000.0),
    },
];

/// Timers with which an RTT that is not measurable would fire for ever.
const MIN_STEP: Span = Span::from_ms(1);

impl StepRuleName {
    /// The entry of [`STEP_RULES`].
    pub fn info(self) -> &'static StepRuleInfo {
        &STEP_RULES[self as usize]
    }

    /// The rule with the given amount, in its unit.
    ///
    /// # Errors
    /// If the amount is out of range.
    pub fn rule(self, amount: Option<f64>) -> Result<StepRule, String> {
        let info = self.info();
        let (least, most) = info.range;
        let amount = amount.unwrap_or(info.default);
        if !(least..=most).contains(&amount) {
            return Err(format!(
                "its step {} has {amount} {unit}, where {least} to {most} {unit} are allowed",
                info.name,
                unit = info.unit
            ));
        }
        let span = Span::from_ns((amount * 1e6) as u64);
        Ok(match self {
            StepRuleName::Ack => StepRule::Ack(span),
            StepRuleName::Rtt => StepRule::Rtt(amount),
            StepRuleName::Time => StepRule::Time(span),
        })
    }
}

/// A rule with its amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepRule {
    /// The first acknowledgement more than this time after the last decision.
    Ack(Span),
    /// This share of the smoothed RTT after the last decision.
    Rtt(f64),
    /// The next multiple of this time.
    Time(Span),
}

/// The current step of a flow. A step begins with a decision or, initially and after [`Steps::restart`], with the next
/// packet that is acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    rule: StepRule,
    begun: Option<Time>,
    smoothed_rtt: Span,
}

impl Steps {
    /// No step has begun yet.
    pub fn new(rule: StepRule) -> Self {
        Steps {
            rule,
            begun: None,
            smoothed_rtt: Span::ZERO,
        }
    }

    /// A packet of the step was acknowledged; returns whether a decision is due with it.
    pub fn on_packet(&mut self, now: Time) -> bool {
        let begun = *self.begun.get_or_insert(now);
        matches!(self.rule, StepRule::Ack(least) if now.since(begun) > least)
    }

    /// The smoothed RTT has changed.
    pub fn set_rtt(&mut self, smoothed: Span) {
        self.smoothed_rtt = smoothed;
    }

    /// A decision is made: the next step begins.
    pub fn begin(&mut self, now: Time) {
        self.begun = Some(now);
    }

    /// The step begins anew with the next packet that is acknowledged.
    pub fn restart(&mut self) {
        self.begun = None;
    }

    /// When the timer of the step expires, if it has one.
    pub fn timer(&self) -> Option<Time> {
        let begun = self.begun?;
        match self.rule {
            StepRule::Ack(_) => None,
            StepRule::Rtt(share) => {
                let span = Span::from_ns((self.smoothed_rtt.ns() as f64 * share) as u64);
                Some(begun + span.max(MIN_STEP))
            }
            StepRule::Time(span) => Some(Time::from_ns((begun.ns() / span.ns() + 1) * span.ns())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn the_table_has_the_names_of_the_rules_in_their_order() {
        let names: Vec<_> = STEP_RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names, StepRuleName::WORDS);
    }

    #[test]
    fn an_acknowledgement_ends_a_step_only_after_more_than_the_time() {
        let mut steps = Steps::new(StepRuleName::Ack.rule(None).unwrap());
        assert!(!steps.on_packet(at(5)) && !steps.on_packet(at(15)) && steps.on_packet(at(16)));
        steps.begin(at(16));
        assert!(!steps.on_packet(at(26)) && steps.on_packet(at(27)));
        steps.restart();
        assert!(!steps.on_packet(at(90)) && !steps.on_packet(at(100)));
        assert_eq!(steps.timer(), None);
    }

    #[test]
    fn timers_follow_the_round_trip_or_the_clock() {
        let mut steps = Steps::new(StepRuleName::Rtt.rule(None).unwrap());
        assert_eq!(steps.timer(), None);
        assert!(!steps.on_packet(at(10)));
        assert_eq!(steps.timer(), Some(at(11)));
        steps.set_rtt(Span::from_ms(40));
        assert_eq!(steps.timer(), Some(at(30)));
        let mut steps = Steps::new(StepRuleName::Time.rule(Some(25.0)).unwrap());
        steps.begin(at(10));
        assert_eq!(steps.timer(), Some(at(25)));
        steps.begin(at(25));
        assert_eq!(steps.timer(), Some(at(50)));
    }

    #[test]
    fn amounts_out_of_range_are_refused() {
        for (name, amount) in [
            (StepRuleName::Ack, -1.0),
            (StepRuleName::Rtt, 0.0),
            (StepRuleName::Time, f64::INFINITY),
            (StepRuleName::Time, f64::NAN),
        ] {
            assert!(name.rule(Some(amount)).unwrap_err().contains("are allowed"));
        }
    }
}
