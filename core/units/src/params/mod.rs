//! Parameters of the entries of all registries: schemes, queues, link elements, rate servers and the transport describe
//! their parameters with [`ParamSpec`]s, and read the values from [`Params`].
//!
//! One description serves the validation of scenarios, the command line, the JSON Schema and the generated reference,
//! so each parameter is declared exactly once.

mod declare;
mod error;
mod spec;
mod value;

use crate::{Bytes, Rate, Span};
use std::collections::BTreeMap;

pub use declare::ReadParam;
pub use error::ParamError;
pub use spec::{Kind, ParamSpec, join};
pub use value::{FileRef, Value};

/// Checked parameter values, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    values: BTreeMap<&'static str, Value>,
}

impl Params {
    /// Checks `given` against `specs` and fills in the defaults.
    ///
    /// # Errors
    /// An unknown name, a missing mandatory one, a wrong kind or a value out of bounds.
    pub fn resolve(
        specs: &[ParamSpec],
        given: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, ParamError> {
        let mut values = BTreeMap::new();
        for (name, value) in given {
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                let allowed = if specs.is_empty() {
                    "none".to_owned()
                } else {
                    specs
                        .iter()
                        .map(|spec| spec.name)
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                return Err(ParamError::Unknown { name, allowed });
            };
            spec.check(&value)?;
            values.insert(spec.name, value);
        }
        for spec in specs {
            if values.contains_key(spec.name) {
                continue;
            }
            if spec.required {
                return Err(ParamError::Missing {
                    name: spec.name.to_owned(),
                });
            }
            if let Some(value) = spec.default_value() {
                values.insert(spec.name, value);
            }
        }
        Ok(Params { values })
    }

    /// Like [`Params::resolve`], from a JSON object in base units (`null` values are absent).
    ///
    /// # Errors
    /// As [`Params::resolve`].
    pub fn from_json(
        specs: &[ParamSpec],
        object: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, ParamError> {
        let mut given = Vec::with_capacity(object.len());
        for (name, json) in object {
            let value = match json {
                serde_json::Value::Null => continue,
                serde_json::Value::Bool(flag) => Value::Flag(*flag),
                serde_json::Value::Number(number) => match number.as_u64() {
                    Some(integer) => Value::Integer(integer),
                    None => Value::Real(number.as_f64().unwrap_or(f64::NAN)),
                },
                serde_json::Value::String(word) => Value::Word(word.clone()),
                other => {
                    let kind = specs.iter().find(|spec| spec.name == name);
                    Value::from_composite(other).ok_or_else(|| ParamError::Kind {
                        name: name.clone(),
                        expected: kind.map_or("single value", |spec| spec.kind.name()),
                        got: other.to_string(),
                    })?
                }
            };
            given.push((name.clone(), value));
        }
        Params::resolve(specs, given)
    }

    /// The value called `name`, if present.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The integer called `name`, if present.
    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The real number called `name`, if present.
    pub fn real(&self, name: &str) -> Option<f64> {
        match self.values.get(name)? {
            Value::Real(number) => Some(*number),
            Value::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The rate called `name`, if present.
    pub fn rate(&self, name: &str) -> Option<Rate> {
        self.integer(name).map(Rate::from_bps)
    }

    /// The span called `name`, if present.
    pub fn span(&self, name: &str) -> Option<Span> {
        self.integer(name).map(Span::from_ns)
    }

    /// The amount of data called `name`, if present.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        self.integer(name).map(Bytes::new)
    }

    /// The flag called `name`, if present.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name)? {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The word called `name`, if present.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The list of whole numbers called `name`, if present.
    pub fn counts(&self, name: &str) -> Option<&[u64]> {
        match self.values.get(name)? {
            Value::Counts(list) => Some(list),
            _ => None,
        }
    }

    /// The steps called `name` as (ns, base unit), if present.
    pub fn steps(&self, name: &str) -> Option<&[(u64, u64)]> {
        match self.values.get(name)? {
            Value::Steps(steps) => Some(steps),
            _ => None,
        }
    }

    /// The file called `name`, if present.
    pub fn file(&self, name: &str) -> Option<&FileRef> {
        match self.values.get(name)? {
            Value::File(file) => Some(file),
            _ => None,
        }
    }

    /// The same with other defaults: `settings` (names and texts) replace the values that equal the defaults of
    /// `specs`.
    ///
    /// # Panics
    /// If `specs` does not allow a setting: settings are part of the source code.
    #[must_use]
    pub fn with_defaults(&self, specs: &[ParamSpec], settings: &[(&str, &str)]) -> Self {
        let mut values = self.values.clone();
        for (name, text) in settings {
            let spec = specs.iter().find(|spec| spec.name == *name);
            let spec = spec.expect("a setting that exists");
            if values.get(name) == spec.default_value().as_ref() {
                let value = spec.parse(text).expect("an allowed value");
                values.insert(spec.name, value);
            }
        }
        Params { values }
    }

    /// The same with the values in `object` in place of these, as [`Params::from_json`] reads them.
    ///
    /// # Errors
    /// As [`Params::resolve`].
    pub fn with_json(
        &self,
        specs: &[ParamSpec],
        object: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, ParamError> {
        let given = Params::from_json(specs, object)?.values;
        let mut values = self.values.clone();
        let given = given.into_iter();
        values.extend(
            given.filter(|(name, _)| object.get(*name).is_some_and(|json| !json.is_null())),
        );
        Ok(Params { values })
    }

    /// All values as a JSON object, in the order of their names.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::Value::Object(
            self.values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.to_json()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[ParamSpec] = &[
        ParamSpec::new("beta", Kind::Ratio, "factor").default("0.7"),
        ParamSpec::new("limit", Kind::Bytes, "limit").required(),
        ParamSpec::new("rule", Kind::Choice(&["rfc", "linux"]), "rule").default("rfc"),
    ];

    fn resolve(text: &str) -> Result<Params, ParamError> {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        Params::from_json(SPECS, json.as_object().unwrap())
    }

    #[test]
    fn defaults_are_filled_in() {
        let params = resolve(r#"{"limit": 1500}"#).unwrap();
        assert_eq!(params.real("beta"), Some(0.7));
        assert_eq!(params.bytes("limit"), Some(Bytes::new(1500)));
        assert_eq!(params.word("rule"), Some("rfc"));
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let text = |json| resolve(json).unwrap_err().to_string();
        assert_eq!(
            text(r#"{"limit": 1, "bete": 1}"#),
            "unknown parameter 'bete'; allowed: beta, limit, rule"
        );
        assert_eq!(text("{}"), "parameter 'limit' is missing");
        assert_eq!(
            text(r#"{"limit": 1, "beta": 1.5}"#),
            "parameter 'beta' must be between 0 and 1, not 1.5"
        );
        assert_eq!(
            text(r#"{"limit": 1, "rule": "bsd"}"#),
            "parameter 'rule' must be one of rfc, linux, not 'bsd'"
        );
        assert!(text(r#"{"limit": -4}"#).starts_with("parameter 'limit' must be a bytes"));
        assert!(text(r#"{"limit": [1]}"#).contains("must be a bytes"));
        assert!(text(r#"{"limit": [[1]]}"#).contains("must be a bytes"));
    }

    #[test]
    fn the_default_of_a_file_is_a_name_for_scenarios_and_the_core_needs_the_file() {
        const SPECS: &[ParamSpec] =
            &[ParamSpec::new("model", Kind::File, "which").default("usual")];
        let described = SPECS[0].to_json();
        assert_eq!(described["default"], "usual");
        assert_eq!(described["required"], false);
        assert_eq!(SPECS[0].default_value(), None);
        let missing = Params::resolve(SPECS, []).unwrap_err().to_string();
        assert_eq!(missing, "parameter 'model' is missing");
        let json = serde_json::json!({"model": {"name": "a", "sha256": "00"}});
        let params = Params::from_json(SPECS, json.as_object().unwrap()).unwrap();
        assert_eq!(params.file("model").unwrap().name, "a");
    }

    #[test]
    fn lists_steps_and_files_are_read() {
        const SPECS: &[ParamSpec] = &[
            ParamSpec::new("packets", Kind::Counts, "which").range(1.0, 10.0),
            ParamSpec::new("steps", Kind::RateSteps, "when"),
            ParamSpec::new("trace", Kind::File, "where from"),
        ];
        let resolve = |json: serde_json::Value| {
            Params::from_json(SPECS, json.as_object().unwrap()).map_err(|error| error.to_string())
        };
        let json = serde_json::json!({"packets": [3, 5], "steps": [[0, 7], [10, 8]],
            "trace": {"name": "a.csv", "sha256": "00"}});
        let params = resolve(json.clone()).unwrap();
        assert_eq!(params.counts("packets"), Some(&[3, 5][..]));
        assert_eq!(params.steps("steps"), Some(&[(0, 7), (10, 8)][..]));
        assert_eq!(params.file("trace").unwrap().name, "a.csv");
        assert_eq!(params.to_json(), json);
        let refuse = |json| resolve(json).unwrap_err();
        assert!(refuse(serde_json::json!({"packets": [11]})).contains("between 1 and 10"));
        assert!(refuse(serde_json::json!({"steps": [[5, 7], [5, 8]]})).contains("times that rise"));
        assert!(refuse(serde_json::json!({"steps": []})).contains("must be a rate_steps"));
        assert!(refuse(serde_json::json!({"trace": "x"})).contains("must be a file"));
    }
}
