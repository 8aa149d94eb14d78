//! THE REGISTRY of our BPF programs: every C file in `bpf/src/c`.

use crate::page;
use narrows_cc::{Scheme, schemes};
use narrows_units::{Kind, ParamSpec, Params, Value};
use serde_json::json;
use std::collections::BTreeMap;

/// One program: a congestion control for the kernel.
#[derive(Debug)]
pub struct Program {
    /// Name in scenarios, behind `bpf:`; that of the native scheme with the same rules.
    pub name: &'static str,
    /// The C file.
    text: &'static str,
}

/// All programs, in the order of their names.
pub const ALL: &[Program] = include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// Beginning of the names of constants that are parameters.
pub const PARAM: &str = "param_";
/// The fixed point of the programs: numbers and ratios are multiples of 1/65536.
const POINT: f64 = 65_536.0;

/// The program called `name`.
pub fn find(name: &str) -> Option<&'static Program> {
    ALL.iter().find(|program| program.name == name)
}

impl Program {
    /// The native scheme whose rules it follows, if there is one.
    pub fn native(&self) -> Option<&'static Scheme> {
        schemes::find(self.name)
    }

    /// Its explanation: the comment at the head of its C file.
    pub fn page(&self) -> String {
        page::page(self.text)
    }

    /// Its summary in one sentence: the first paragraph of its page behind the name.
    pub fn summary(&self) -> String {
        let page = self.page();
        let first = page.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = first.split_once(": ").map_or(first.as_str(), |it| it.1);
        let mut letters = text.trim_end_matches('.').chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        capital.into_iter().chain(letters).collect()
    }

    /// The source of its rules: that of the native scheme, or that of its page.
    pub fn source(&self) -> String {
        let page = self.page();
        let own = || page::passage(&page, "Provenance:", "Deviations:");
        let native = self.native().map(|scheme| scheme.source.to_owned());
        native.or_else(own).unwrap_or_default()
    }

    /// Names of the parameters that its C file declares.
    pub fn declared_params(&self) -> impl Iterator<Item = &'static str> {
        let declared = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("PARAM("));
        declared
            .filter_map(|line| line.split_once(','))
            .map(|(name, _)| name.trim())
    }

    /// Its parameters: those of the native scheme that its C file declares.
    pub fn params(&self) -> Vec<ParamSpec> {
        let Some(native) = self.native() else {
            return Vec::new();
        };
        let declared = |spec: &&ParamSpec| {
            self.declared_params().any(|name| name == spec.name) && is_number(spec.kind)
        };
        native.params.iter().filter(declared).copied().collect()
    }

    /// The constants for parameters, by their names in the object.
    pub fn constants(&self, params: &Params) -> BTreeMap<String, u64> {
        let constant = |spec: &ParamSpec| {
            let value = encode(spec, params.get(spec.name)?)?;
            Some((format!("{PARAM}{}", spec.name), value))
        };
        self.params().iter().filter_map(constant).collect()
    }

    /// Parameters as scenarios write them, from constants that were read back.
    pub fn params_of(
        &self,
        constants: &BTreeMap<String, u64>,
    ) -> BTreeMap<String, serde_json::Value> {
        let value = |spec: &ParamSpec| {
            let constant = constants.get(&format!("{PARAM}{}", spec.name))?;
            Some((spec.name.to_owned(), decode(spec, *constant)?))
        };
        self.params().iter().filter_map(value).collect()
    }

    /// The registry line as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "summary": self.summary(),
            "source": self.source(),
            "page": self.page(),
            "native": self.native().map(|scheme| scheme.name),
            "params": self.params().iter().map(ParamSpec::to_json).collect::<Vec<_>>(),
        })
    }
}

/// True if a constant can hold values of a kind.
fn is_number(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Counts | Kind::RateSteps | Kind::SpanSteps | Kind::File
    )
}

/// A value as the programs read it: reals in fixed point, spans in us, rates in bytes per second,
/// flags as 0 and 1, words as their index in the list.
pub fn encode(spec: &ParamSpec, value: &Value) -> Option<u64> {
    Some(match (spec.kind, value) {
        (Kind::Ratio | Kind::Number, Value::Real(number)) => (number * POINT).round() as u64,
        (Kind::Ratio | Kind::Number, Value::Integer(number)) => number.checked_mul(1 << 16)?,
        (Kind::Span, Value::Integer(ns)) => ns.saturating_add(500) / 1000,
        (Kind::Rate, Value::Integer(bps)) => bps / 8,
        (_, Value::Integer(number)) => *number,
        (_, Value::Flag(flag)) => u64::from(*flag),
        (Kind::Choice(words), Value::Word(word)) => {
            words.iter().position(|known| known == word)? as u64
        }
        _ => return None,
    })
}

/// The inverse, in base units.
fn decode(spec: &ParamSpec, constant: u64) -> Option<serde_json::Value> {
    Some(match spec.kind {
        Kind::Ratio | Kind::Number => json!(constant as f64 / POINT),
        Kind::Span => json!(constant.checked_mul(1000)?),
        Kind::Rate => json!(constant.checked_mul(8)?),
        Kind::Flag => json!(constant != 0),
        Kind::Choice(words) => json!(words.get(usize::try_from(constant).ok()?)?),
        _ => json!(constant),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_hold_what_parameters_say() {
        let spec = |kind| ParamSpec::new("x", kind, "");
        let both = |kind, value: Value, constant: u64, back: serde_json::Value| {
            assert_eq!(encode(&spec(kind), &value), Some(constant), "{kind:?}");
            assert_eq!(decode(&spec(kind), constant), Some(back), "{kind:?}");
        };
        both(Kind::Ratio, Value::Real(0.75), 49_152, json!(0.75));
        both(Kind::Number, Value::Integer(3), 3 << 16, json!(3.0));
        both(Kind::Packets, Value::Integer(3), 3, json!(3));
        both(
            Kind::Span,
            Value::Integer(1_500_000),
            1500,
            json!(1_500_000),
        );
        both(Kind::Rate, Value::Integer(80_000), 10_000, json!(80_000));
        both(Kind::Flag, Value::Flag(true), 1, json!(true));
        let choice = Kind::Choice(&["paper", "linux"]);
        both(choice, Value::Word("linux".into()), 1, json!("linux"));
        assert_eq!(encode(&spec(Kind::Counts), &Value::Counts(vec![1])), None);
    }
}
