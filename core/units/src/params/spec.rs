//! A parameter: its name, kind, bounds, default and source.

use super::{ParamError, Value};

/// Quantity that a parameter measures, and with it the unit in which files and records keep it.
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
    /// A fraction between 0 and 1.
    Ratio,
    /// A number without unit.
    Number,
    /// A boolean.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A list of whole numbers.
    Counts,
    /// A list of (time in ns, rate in bit/s), with rising times.
    RateSteps,
    /// A list of (time in ns, span in ns), with rising times.
    SpanSteps,
    /// A file, identified by its name and the SHA-256 of its content. The driver provides the content.
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

    /// A number and a unit of this kind in base units.
    fn in_base_units(self, text: &str) -> Option<u64> {
        let (number, unit) = text.split_once(' ')?;
        let factor = match (self, unit) {
            (Kind::Span, "ns") | (Kind::Rate, "bit/s") | (Kind::Bytes, "B") => 1.0,
            (Kind::Span, "µs") | (Kind::Rate, "kbit/s") | (Kind::Bytes, "kB") => 1e3,
            (Kind::Span, "ms") | (Kind::Rate, "Mbit/s") | (Kind::Bytes, "MB") => 1e6,
            (Kind::Span, "s") | (Kind::Rate, "Gbit/s") => 1e9,
            (Kind::Bytes, "MiB") => 1_048_576.0,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        (number >= 0.0).then(|| (number * factor).round() as u64)
    }
}

/// The description of one parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Name as written in scenarios.
    pub name: &'static str,
    /// The quantity that it measures.
    pub kind: Kind,
    /// Value if the scenario does not set it, as text (`"0.7"`, `"40 ms"`, or in base units `"40000000"`); `None` means
    /// the parameter is simply absent. For a file it is a name that drivers look up: the core has to be given the file.
    pub default: Option<&'static str>,
    /// Minimum and maximum allowed value, in base units (numeric kinds).
    pub range: (f64, f64),
    /// Unit of the value, where the kind has none.
    pub unit: &'static str,
    /// True if it must be given; scenarios may leave out a file with a default.
    pub required: bool,
    /// Meaning, one sentence.
    pub doc: &'static str,
    /// Source of the default: paper, RFC, kernel.
    pub source: &'static str,
    /// Values for test kits, in base units as JSON (files: by name): the usual one, then others. Empty where kits can
    /// guess by kind and bounds.
    pub trial: &'static [&'static str],
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
            unit: "",
            required: false,
            doc,
            source: "",
            trial: &[],
        }
    }

    /// Sets the default, as text.
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        if matches!(self.kind, Kind::File) {
            self.required = true;
        }
        self
    }

    /// Sets the minimum and maximum allowed value.
    pub const fn range(mut self, low: f64, high: f64) -> Self {
        self.range = (low, high);
        self
    }

    /// Names the unit of a kind that has none.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
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

    /// Gives test kits values that fit the other parameters, the usual one first.
    pub const fn trial(mut self, values: &'static [&'static str]) -> Self {
        self.trial = values;
        self
    }

    /// The parameters of several lists, one after the other.
    ///
    /// # Panics
    /// If their number is not `N`.
    pub const fn join<const N: usize>(lists: &[&[ParamSpec]]) -> [ParamSpec; N] {
        join(lists, ParamSpec::new("", Kind::Flag, ""))
    }

    /// Those parameters of `list` that `defaults` names, in its order, each with the default and the source given
    /// there: for a list shared by several entries.
    ///
    /// # Panics
    /// If a name is not in the list.
    pub const fn with_defaults<const N: usize>(
        list: &[ParamSpec],
        defaults: &[(&str, &'static str, &'static str); N],
    ) -> [ParamSpec; N] {
        let mut specs = [ParamSpec::new("", Kind::Flag, ""); N];
        let mut index = 0;
        while index < N {
            let (name, default, source) = defaults[index];
            let mut found = 0;
            while !is_same(list[found].name, name) {
                found += 1;
            }
            specs[index] = list[found].default(default).source(source);
            specs[index].required = false;
            index += 1;
        }
        specs
    }

    /// The default as a value; `None` for files, whose contents the core does not know.
    pub fn default_value(&self) -> Option<Value> {
        self.default
            .filter(|_| self.kind != Kind::File)
            .map(|text| self.parse(text).expect("a registry default parses"))
    }

    /// Reads `text`, with a unit or in base units, as a value of this parameter's kind.
    pub fn parse(&self, text: &str) -> Result<Value, ParamError> {
        let bad = || ParamError::Kind {
            name: self.name.to_owned(),
            expected: self.kind.name(),
            got: text.to_owned(),
        };
        let value = match self.kind {
            Kind::Rate | Kind::Span | Kind::Bytes if text.contains(' ') => {
                Value::Integer(self.kind.in_base_units(text).ok_or_else(bad)?)
            }
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
            // Integers are accepted where real numbers are expected, but not vice versa.
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
        let default = match self.kind {
            Kind::File => serde_json::json!(self.default),
            _ => serde_json::json!(self.default_value().map(|value| value.to_json())),
        };
        serde_json::json!({
            "name": self.name,
            "kind": self.kind.name(),
            "choices": choices,
            "default": default,
            "min": bound(self.range.0),
            "max": bound(self.range.1),
            "unit": self.unit,
            "required": self.required && self.default.is_none(),
            "doc": self.doc,
            "source": self.source,
        })
    }
}
/// The items of several lists, one after the other, at compile time; `empty` is any item.
///
/// # Panics
/// If their number is not `N`.
pub const fn join<T: Copy, const N: usize>(lists: &[&[T]], empty: T) -> [T; N] {
    let mut joined = [empty; N];
    let (mut list, mut filled) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            joined[filled] = lists[list][index];
            index += 1;
            filled += 1;
        }
        list += 1;
    }
    assert!(filled == N);
    joined
}

/// Comparison of names at compile time.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}
