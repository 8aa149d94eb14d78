//! Values of parameters.

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
    /// Its human-readable name.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
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

    /// Reads a list or an object; `None` if it is not the value of a parameter.
    pub(super) fn from_composite(json: &serde_json::Value) -> Option<Self> {
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
