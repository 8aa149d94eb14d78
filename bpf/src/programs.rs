//! THE REGISTRY of our BPF programs: every C file in `src/c`.

use crate::page;
use crate::{Object, ObjectError};
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
    /// What clang made of it; empty where this was not built for Linux.
    object: &'static [u8],
}

/// All programs, in the order of their names.
pub const ALL: &[Program] = include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// What the name of a constant begins with that is a parameter.
const PARAM: &str = "param_";
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

    /// Its object file, examined.
    ///
    /// # Errors
    /// Only where this was not built for Linux: the tests examine every object.
    pub fn object(&self) -> Result<Object, ObjectError> {
        Object::parse(self.object)
    }

    /// What explains it: the comment at the head of its C file.
    pub fn page(&self) -> String {
        page::page(self.text)
    }

    /// What it is, one sentence: the first paragraph of its page behind the name.
    pub fn summary(&self) -> String {
        let page = self.page();
        let first = page.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = first.split_once(": ").map_or(first.as_str(), |it| it.1);
        let mut letters = text.trim_end_matches('.').chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        capital.into_iter().chain(letters).collect()
    }

    /// Where its rules come from: what the native scheme names, or what its own page says.
    pub fn source(&self) -> String {
        let page = self.page();
        let told = || page::passage(&page, "Provenance:", "Deviations:");
        let native = self.native().map(|scheme| scheme.source.to_owned());
        native.or_else(told).unwrap_or_default()
    }

    /// Its parameters: those of the native scheme for which it has a constant.
    pub fn params(&self) -> Vec<ParamSpec> {
        let (Some(native), Ok(object)) = (self.native(), self.object()) else {
            return Vec::new();
        };
        let constants: Vec<&str> = object.constants().collect();
        let has = |spec: &&ParamSpec| {
            let name = format!("{PARAM}{}", spec.name);
            constants.contains(&name.as_str()) && is_number(spec.kind)
        };
        native.params.iter().filter(has).copied().collect()
    }

    /// The constants that go with parameters, by their names in the object.
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

/// Whether a constant can hold values of a kind.
fn is_number(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Counts | Kind::RateSteps | Kind::SpanSteps | Kind::File
    )
}

/// A value as the programs read it: reals in fixed point, spans in us, rates in bytes per second,
/// flags as 0 and 1, words as their place in the list.
fn encode(spec: &ParamSpec, value: &Value) -> Option<u64> {
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

/// The way back, in base units.
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

    /// A default in C that differs from the native scheme's would be another scheme under its name.
    #[test]
    fn every_program_can_be_loaded_as_far_as_its_file_tells_and_has_the_defaults_of_its_native_scheme()
     {
        for program in ALL {
            let name = program.name;
            let object = program
                .object()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let expected: String = name.chars().filter(|it| !"-+".contains(*it)).collect();
            assert_eq!(object.name(), format!("nw_{expected}"));
            assert!(
                !program.page().is_empty() && !program.summary().is_empty(),
                "{name}"
            );
            let known = program.params();
            for constant in object.constants().filter_map(|it| it.strip_prefix(PARAM)) {
                let spec = known.iter().find(|spec| spec.name == constant);
                let Some(spec) = spec else {
                    assert!(
                        program.native().is_none(),
                        "{name} has a parameter '{constant}' that the native scheme does not have"
                    );
                    continue;
                };
                let compiled = object.constant(&format!("{PARAM}{constant}"));
                let default = spec.default_value().and_then(|value| encode(spec, &value));
                assert_eq!(compiled, default, "{name}: default of {constant}");
            }
        }
    }

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
