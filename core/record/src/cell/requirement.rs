//! The requirement of an application on its network, against which the quality of outcome is scored.

use serde::Deserialize;

/// The conditions of optimal performance of an application, and those from which on its performance is unacceptable.
/// A part that is absent is not required.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Requirement {
    /// Percentiles of one-way delay in ns.
    pub delays: Vec<DelayBounds>,
    /// Packet loss ratio.
    pub loss: Option<ScoreBounds>,
    /// Minimum throughput in bit/s.
    pub throughput_bps: Option<u64>,
}

/// The bounds of one percentile of delay, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenDelay")]
pub struct DelayBounds {
    /// The percentile, as the share of packets that are not later.
    pub share: f64,
    /// Its bounds.
    pub bounds: ScoreBounds,
}

/// A value that is optimal, and one that is unacceptable.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct ScoreBounds {
    /// Up to here nothing is better.
    pub optimal: f64,
    /// From here on nothing is worse.
    pub unacceptable: f64,
}

impl ScoreBounds {
    /// The score of a value: 1 at or below the optimal one, 0 at or above the unacceptable one, linear between.
    pub fn score(self, value: f64) -> f64 {
        (1.0 - (value - self.optimal) / (self.unacceptable - self.optimal)).clamp(0.0, 1.0)
    }

    fn check(self, of: &str) -> Result<(), String> {
        if self.optimal >= 0.0 && self.optimal < self.unacceptable {
            return Ok(());
        }
        Err(format!(
            "the requirement's {of} must be optimal at 0 or above and unacceptable above that"
        ))
    }
}

impl Requirement {
    /// The example of draft-ietf-ippm-qoo-10, the only requirement that it states in full.
    pub fn example() -> Self {
        let delay = |share: f64, optimal: f64, unacceptable: f64| DelayBounds {
            share,
            bounds: ScoreBounds {
                optimal,
                unacceptable,
            },
        };
        Requirement {
            delays: vec![delay(0.99, 200e6, 500e6), delay(0.999, 300e6, 600e6)],
            loss: Some(ScoreBounds {
                optimal: 0.01,
                unacceptable: 0.05,
            }),
            throughput_bps: Some(4_000_000),
        }
    }
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    delays: Vec<DelayBounds>,
    #[serde(default)]
    loss: Option<ScoreBounds>,
    #[serde(default)]
    throughput_bps: Option<u64>,
}

#[derive(Deserialize)]
struct WrittenDelay {
    share: f64,
    optimal_ns: u64,
    unacceptable_ns: u64,
}

impl From<WrittenDelay> for DelayBounds {
    fn from(written: WrittenDelay) -> Self {
        DelayBounds {
            share: written.share,
            bounds: ScoreBounds {
                optimal: written.optimal_ns as f64,
                unacceptable: written.unacceptable_ns as f64,
            },
        }
    }
}

impl TryFrom<Written> for Requirement {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        for delay in &written.delays {
            if !(delay.share > 0.0 && delay.share < 1.0) {
                return Err("a percentile of the requirement must be above 0 and below 1".into());
            }
            delay.bounds.check("delay")?;
        }
        if let Some(loss) = written.loss {
            loss.check("loss")?;
        }
        let requirement = Requirement {
            delays: written.delays,
            loss: written.loss,
            throughput_bps: written.throughput_bps,
        };
        if requirement == Requirement::default() {
            return Err("the requirement has neither throughput_bps nor loss nor delays".into());
        }
        Ok(requirement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problem(written: Value) -> String {
        serde_json::from_value::<Requirement>(written)
            .unwrap_err()
            .to_string()
    }

    #[test]
    #[allow(clippy::float_cmp)] // Quarters are exact.
    fn scores_of_the_drafts_example() {
        let example = Requirement::example();
        let [first, tail] = &example.delays[..] else {
            panic!("two percentiles");
        };
        assert_eq!(first.bounds.score(350e6), 0.5);
        assert_eq!(tail.bounds.score(375e6), 0.75);
        assert!((example.loss.unwrap().score(0.02) - 0.75).abs() < 1e-12);
        let bounds = ScoreBounds {
            optimal: 2.0,
            unacceptable: 3.0,
        };
        assert_eq!((bounds.score(1.0), bounds.score(4.0)), (1.0, 0.0));
    }

    #[test]
    fn the_example_is_read_as_it_is_written() {
        let written = json!({
            "throughput_bps": 4_000_000,
            "loss": {"optimal": 0.01, "unacceptable": 0.05},
            "delays": [
                {"share": 0.99, "optimal_ns": 200_000_000, "unacceptable_ns": 500_000_000},
                {"share": 0.999, "optimal_ns": 300_000_000, "unacceptable_ns": 600_000_000},
            ],
        });
        let read: Requirement = serde_json::from_value(written).unwrap();
        assert_eq!(read, Requirement::example());
    }

    #[test]
    fn requirements_without_meaning_are_refused() {
        assert!(problem(json!({})).contains("neither throughput_bps nor loss nor delays"));
        let same = json!({"loss": {"optimal": 0.05, "unacceptable": 0.05}});
        assert!(problem(same).contains("requirement's loss must be optimal"));
        let delay = json!({"share": 0.5, "optimal_ns": 7, "unacceptable_ns": 6});
        assert!(problem(json!({"delays": [delay]})).contains("requirement's delay must be"));
        let delay = json!({"share": 1.0, "optimal_ns": 5, "unacceptable_ns": 6});
        assert!(problem(json!({"delays": [delay]})).contains("above 0 and below 1"));
    }
}
