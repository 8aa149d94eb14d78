//! The common part of the registries of queues, links, rate servers and traffic.

use crate::ParamSpec;

/// One line of a registry: how scenarios name a thing and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description, one sentence.
    pub summary: &'static str,
    /// Specification or paper.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// Parameters that a bare value (`{delay: 60 ms}`) may stand for: the first whose kind fits.
    pub shorthand: &'static [&'static str],
}

impl Entry {
    /// The entry as JSON, as scenario validation and references read it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "summary": self.summary,
            "source": self.source,
            "params": self.params.iter().map(ParamSpec::to_json).collect::<Vec<_>>(),
            "shorthand": self.shorthand,
        })
    }
}
