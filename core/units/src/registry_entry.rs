//! The common part of the registries of queues, links, rate servers and traffic.

use crate::ParamSpec;

/// One entry of a registry: its name in scenarios, description and parameters.
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
    /// Parameters that a bare value (`{delay: 60 ms}`) may set: the first whose kind fits.
    pub shorthand: &'static [&'static str],
    /// Its use, for the reference.
    pub example: Example,
}

/// An example of an entry, with the picture that the reference shows of it.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// As written in scenarios: the value of `queue:`, `rate:` or `traffic:`, or the whole link element.
    written: &'static str,
    /// Caption of the picture.
    shows: &'static str,
    /// Members of a JSON object: how the picture is made, if that differs from the rest of its family.
    picture: &'static str,
}

impl Example {
    /// An example with the picture of its family.
    pub const fn new(written: &'static str, shows: &'static str) -> Self {
        Example {
            written,
            shows,
            picture: "{}",
        }
    }

    /// Overrides how the picture is made; the JSON object may have these members, which
    /// `python/narrows/reference/probe.py` describes:
    ///
    /// * `load`: the packets sent into it, one stream per flow;
    /// * `seconds`: length of the axis of time; `bin_ms`: width of the bins of rates;
    /// * `changes`: a timeline, as cells have it;
    /// * `view`: `delay`, a dot per packet, or `rate`, the arrival and departure rates.
    pub const fn picture(mut self, json: &'static str) -> Self {
        self.picture = json;
        self
    }

    fn to_json(self) -> serde_json::Value {
        let mut json: serde_json::Value =
            serde_json::from_str(self.picture).expect("a picture is a JSON object");
        json["written"] = self.written.into();
        json["shows"] = self.shows.into();
        json
    }
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
            "example": self.example.to_json(),
        })
    }
}
