//! Parameters of whatever is in a registry: schemes, queues, link elements, rate servers and the
//! transport describe theirs with [`ParamSpec`]s, and read the values from [`Params`].
//!
//! One description serves the validation of scenarios, the command line, the JSON Schema and the
//! generated reference, so a parameter is written down exactly once.

use crate::{Bytes, Rate, Span};
use std::collections::BTreeMap;

/// What a parameter measures, and with it the unit in which files and records keep it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A rate, kept in bit/s (integer).
    Rate,
    /// A length of time, kept in ns (integer).
    Span,
    /// An amount of data, kept in bytes (integer).
    Bytes,
    /// A number of packets (integer).
    Packets,
    /// A whole number without unit.
    Count,
    /// A share between 0 and 1.
    Ratio,
    /// A number without unit.
    Number,
    /// Yes or no.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A list of whole numbers.
    Counts,
    /// A list of (time in ns, rate in bit/s), with rising times.
    RateSteps,
    /// A list of (time in ns, span in ns), with rising times.
    SpanSteps,
    /// A file, named by what it is called and by the SHA-256 of its content. The content itself
    /// comes from whoever builds.
    File,
}

impl Kind {
    /// The name used in registries and schemas.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate",
            Kind::Span => "span",
            Kind::Bytes => "bytes",
            Kind::Packets => "packets",
            Kind::Count => "count",
            Kind::Ratio => "ratio",
            Kind::Number => "number",
            Kind::Flag => "flag",
            Kind::Choice(_) => "choice",
            Kind::Counts => "counts",
            Kind::RateSteps => "rate_steps",
            Kind::SpanSteps => "span_steps",
            Kind::File => "file",
        }
    }
}

/// A value in base units: bit/s, ns, bytes, packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A non-negative integer (rate, span, bytes, packets, count).
    Integer(u64),
    /// A real number (ratio, number).
    Real(f64),
    /// A flag.
    Flag(bool),
    /// A word.
    Word(String),
    /// A list of whole numbers.
    Counts(Vec<u64>),
    /// A list of (time in ns, value), with rising times.
    Steps(Vec<(u64, u64)>),
    /// A file.
    File(FileRef),
}

/// A file that a parameter names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileRef {
    /// What it is called, for people.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// The description of one parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Name as written in scenarios.
    pub name: &'static str,
    /// What it measures.
    pub kind: Kind,
    /// Value if the scenario says nothing, in base units as text (`"0.7"`, `"40000000"`); `None`
    /// means the parameter is simply absent.
    pub default: Option<&'static str>,
    /// Smallest and largest value allowed, in base units (numeric kinds).
    pub range: (f64, f64),
    /// Whether the scenario must give it.
    pub required: bool,
    /// Meaning, one sentence.
    pub doc: &'static str,
    /// Where the default comes from: paper, RFC, kernel.
    pub source: &'static str,
}

impl ParamSpec {
    /// An optional parameter without default or bounds; refine with the other methods.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        let range = match kind {
            Kind::Ratio => (0.0, 1.0),
            _ => (0.0, f64::INFINITY),
        };
        ParamSpec {
            name,
            kind,
            default: None,
            range,
            required: false,
            doc,
            source: "",
        }
    }

    /// Sets the default (base units, as text).
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Sets the smallest and largest allowed value.
    pub const fn range(mut self, low: f64, high: f64) -> Self {
        self.range = (low, high);
        self
    }

    /// Makes the parameter mandatory.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Names the source of the default.
    pub const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    /// The default as a value.
    pub fn default_value(&self) -> Option<Value> {
        self.default
            .map(|text| self.parse(text).expect("a registry default parses"))
    }

    /// Reads `text` (base units) as a value of this parameter's kind.
    pub fn parse(&self, text: &str) -> Result<Value, ParamError> {
        let bad = || ParamError::Kind {
            name: self.name.to_owned(),
            expected: self.kind.name(),
            got: text.to_owned(),
        };
        let value = match self.kind {
            Kind::Rate | Kind::Span | Kind::Bytes | Kind::Packets | Kind::Count => {
                Value::Integer(text.parse().map_err(|_| bad())?)
            }
            Kind::Ratio | Kind::Number => Value::Real(text.parse().map_err(|_| bad())?),
            Kind::Flag => Value::Flag(text.parse().map_err(|_| bad())?),
            Kind::Choice(_) => Value::Word(text.to_owned()),
            Kind::Counts | Kind::RateSteps | Kind::SpanSteps | Kind::File => return Err(bad()),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Checks the kind and the bounds of `value`.
    pub fn check(&self, value: &Value) -> Result<(), ParamError> {
        let kind = || ParamError::Kind {
            name: self.name.to_owned(),
            expected: self.kind.name(),
            got: format!("{value:?}"),
        };
        let range = |number: f64| {
            if number < self.range.0 || number > self.range.1 {
                Err(ParamError::Range {
                    name: self.name.to_owned(),
                    got: number,
                    low: self.range.0,
                    high: self.range.1,
                })
            } else {
                Ok(())
            }
        };
        let number = match (self.kind, value) {
            (Kind::Counts, Value::Counts(list)) => {
                return list.iter().try_for_each(|&number| range(number as f64));
            }
            (Kind::RateSteps | Kind::SpanSteps, Value::Steps(steps)) => {
                if steps.is_empty() || steps.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                    return Err(ParamError::Conflict(format!(
                        "parameter '{}' needs at least one step, and times that rise from step to step",
                        self.name
                    )));
                }
                return steps
                    .iter()
                    .try_for_each(|&(_, number)| range(number as f64));
            }
            (Kind::File, Value::File(_)) | (Kind::Flag, Value::Flag(_)) => return Ok(()),
            (Kind::Counts | Kind::RateSteps | Kind::SpanSteps | Kind::File, _)
            | (Kind::Flag | Kind::Choice(_), Value::Integer(_) | Value::Real(_)) => {
                return Err(kind());
            }
            // Whole numbers are fine where real ones are wanted, but not the other way round.
            (_, Value::Integer(number)) => *number as f64,
            (Kind::Ratio | Kind::Number, Value::Real(number)) if number.is_finite() => *number,
            (Kind::Choice(words), Value::Word(word)) => {
                return if words.contains(&word.as_str()) {
                    Ok(())
                } else {
                    Err(ParamError::Choice {
                        name: self.name.to_owned(),
                        got: word.clone(),
                        allowed: words.join(", "),
                    })
                };
            }
            _ => return Err(kind()),
        };
        range(number)
    }

    /// The description as JSON, for schemas, references and validation outside this crate.
    pub fn to_json(&self) -> serde_json::Value {
        let bound = |limit: f64| {
            if limit.is_finite() {
                serde_json::json!(limit)
            } else {
                serde_json::Value::Null
            }
        };
        let choices = match self.kind {
            Kind::Choice(words) => serde_json::json!(words),
            _ => serde_json::Value::Null,
        };
        serde_json::json!({
            "name": self.name,
            "kind": self.kind.name(),
            "choices": choices,
            "default": self.default_value().map(|value| value.to_json()),
            "min": bound(self.range.0),
            "max": bound(self.range.1),
            "required": self.required,
            "doc": self.doc,
            "source": self.source,
        })
    }
}

impl Value {
    /// The value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Integer(number) => serde_json::json!(number),
            Value::Real(number) => serde_json::json!(number),
            Value::Flag(flag) => serde_json::json!(flag),
            Value::Word(word) => serde_json::json!(word),
            Value::Counts(list) => serde_json::json!(list),
            Value::Steps(steps) => serde_json::json!(steps),
            Value::File(file) => serde_json::json!({"name": file.name, "sha256": file.sha256}),
        }
    }

    /// Reads a list or an object; `None` if it is none of ours.
    fn from_composite(json: &serde_json::Value) -> Option<Self> {
        if let Some(object) = json.as_object() {
            let word = |key: &str| object.get(key)?.as_str().map(str::to_owned);
            let (name, sha256) = (word("name")?, word("sha256")?);
            return Some(Value::File(FileRef { name, sha256 }));
        }
        let list = json.as_array()?;
        if let Some(numbers) = list.iter().map(serde_json::Value::as_u64).collect() {
            return Some(Value::Counts(numbers));
        }
        let step = |json: &serde_json::Value| match json.as_array()?.as_slice() {
            [time, value] => Some((time.as_u64()?, value.as_u64()?)),
            _ => None,
        };
        list.iter()
            .map(step)
            .collect::<Option<_>>()
            .map(Value::Steps)
    }
}

/// Why parameters were refused. Each message is one sentence that names what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// A name that the owner does not know.
    #[error("unknown parameter '{name}'; allowed: {allowed}")]
    Unknown {
        /// The name found.
        name: String,
        /// The names known.
        allowed: String,
    },
    /// A mandatory parameter is absent.
    #[error("parameter '{name}' is missing")]
    Missing {
        /// The absent name.
        name: String,
    },
    /// A value of the wrong kind.
    #[error("parameter '{name}' must be a {expected}, not {got}")]
    Kind {
        /// Parameter.
        name: String,
        /// Kind wanted.
        expected: &'static str,
        /// Value found.
        got: String,
    },
    /// A value out of bounds.
    #[error("parameter '{name}' must be between {low} and {high}, not {got}")]
    Range {
        /// Parameter.
        name: String,
        /// Value found.
        got: f64,
        /// Smallest allowed.
        low: f64,
        /// Largest allowed.
        high: f64,
    },
    /// A word that is not among the choices.
    #[error("parameter '{name}' must be one of {allowed}, not '{got}'")]
    Choice {
        /// Parameter.
        name: String,
        /// Word found.
        got: String,
        /// Words allowed.
        allowed: String,
    },
    /// A combination that makes no sense; the text says which.
    #[error("{0}")]
    Conflict(String),
}

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

    /// The same with other defaults: `settings` (names and texts) replace values that are those of
    /// `specs`.
    ///
    /// # Panics
    /// With settings that `specs` does not allow: they are written in source code.
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
