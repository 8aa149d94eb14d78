//! The measured part of a run: a span of time, links that are measured by name, and the requirement of the application.

use super::{Cell, Requirement};
use serde::Deserialize;

/// The scenario's choice of what is measured; by default the whole run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Measure {
    /// Nothing before this time counts.
    #[serde(default)]
    pub from_ns: Option<u64>,
    /// Nothing from this time on counts.
    #[serde(default)]
    pub to_ns: Option<u64>,
    /// Names of the bottlenecks that get separate rows.
    #[serde(default)]
    pub links: Vec<String>,
    /// The requirement of the application; `None` is the example of the draft.
    #[serde(default)]
    pub requirement: Option<Requirement>,
}

impl Measure {
    /// The span of time that counts, `to` excluded; `None` for the whole run.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let given = self.from_ns.is_some() || self.to_ns.is_some();
        given.then(|| (self.from_ns.unwrap_or(0), self.to_ns.unwrap_or(u64::MAX)))
    }

    /// True if what happened at `time` counts.
    pub fn counts(&self, time: u64) -> bool {
        self.span_ns()
            .is_none_or(|(from, to)| (from..to).contains(&time))
    }

    /// True if the bin of `width` that begins at `start` counts: all of it has to lie within the
    /// span.
    pub fn counts_bin(&self, start: u64, width: u64) -> bool {
        self.span_ns()
            .is_none_or(|(from, to)| start >= from && start.saturating_add(width) <= to)
    }
}

impl Cell {
    /// The measured part of the time during which all flows under test are meant to run.
    pub fn shared_span_ns(&self) -> Option<(u64, u64)> {
        let from = self.flows_under_test().map(|flow| flow.start_ns).max()?;
        let to = self.flows_under_test().map(|flow| flow.stop_ns).min()?;
        let (first, last) = self.measure.span_ns().unwrap_or((0, u64::MAX));
        let (from, to) = (from.max(first), to.min(last).min(self.duration_ns));
        (from < to).then_some((from, to))
    }
}
