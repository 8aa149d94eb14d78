//! Model files: rule tables and networks that a scheme reads instead of having them in its code.
//!
//! One file has one model: the line `narrows/model/1`, four bytes with the length of the header (little-endian),
//! the header (a JSON object), and the arrays one after the other, little-endian, without gaps:
//!
//! ```text
//! narrows/model/1\n  LLLL  {"kind": "indigo", "arrays": [{"name": "output_bias", "type": "f32", "shape": [5]}, ...]}  DATA
//! ```
//!
//! Which arrays there are depends on the kind; `docs/guide/models.md` lists them. Members of the header that are not
//! known are for people (`title`, `origin`, `source`). Files come from anywhere, so nothing in them is believed.

use narrows_units::{FileRef, Files, ParamError};
use serde_json::{Value, json};

/// The first line of every model file.
pub const MAGIC: &[u8; 16] = b"narrows/model/1\n";
/// First bytes of all versions.
const FAMILY: &[u8] = b"narrows/model/";
/// Longer headers are none.
const MAX_HEADER: usize = 1 << 20;
/// Most arrays of a model.
const MAX_ARRAYS: usize = 1_000;
/// Most dimensions of an array.
const MAX_DIMENSIONS: usize = 8;

/// Type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    F32,
    F64,
    I32,
}

impl Type {
    fn bytes(self) -> usize {
        match self {
            Type::F32 | Type::I32 => 4,
            Type::F64 => 8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::I32 => "i32",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Type::F32, Type::F64, Type::I32]
            .into_iter()
            .find(|one| one.name() == name)
    }
}

struct Array<'a> {
    name: String,
    kind: Type,
    shape: Vec<usize>,
    data: &'a [u8],
}

/// A model file, read. Messages of errors are one sentence without the name of the file.
pub struct Model<'a> {
    kind: String,
    arrays: Vec<Array<'a>>,
}

impl<'a> Model<'a> {
    /// Reads the content of a model file.
    ///
    /// # Errors
    /// Anything that is no model of the version that is read here, down to missing and superfluous bytes.
    pub fn parse(content: &'a [u8]) -> Result<Self, String> {
        let Some(rest) = content.strip_prefix(MAGIC) else {
            return Err(if content.starts_with(FAMILY) {
                "it is a model file of another version than 1, the one that is read here; make it again".to_owned()
            } else {
                "it is no model file; make one from a published model with: narrows models add NAME PATH".to_owned()
            });
        };
        let (header, mut data) = header(rest)?;
        let kind = header.get("kind").and_then(Value::as_str);
        let kind = kind
            .ok_or("its header lacks the kind of the model")?
            .to_owned();
        let listed = header.get("arrays").and_then(Value::as_array);
        let listed = listed.ok_or("its header lacks the list of arrays")?;
        if listed.len() > MAX_ARRAYS {
            return Err(format!("its header lists more than {MAX_ARRAYS} arrays"));
        }
        let mut arrays: Vec<Array<'_>> = Vec::with_capacity(listed.len());
        for item in listed {
            let (name, kind, shape, bytes) = described(item)?;
            if arrays.iter().any(|other| other.name == name) {
                return Err(format!("it has the array {name} twice"));
            }
            let Some((own, rest)) = data.split_at_checked(bytes) else {
                return Err(format!(
                    "it ends within the array {name}, which should have {bytes} bytes and has {}",
                    data.len()
                ));
            };
            arrays.push(Array {
                name,
                kind,
                shape,
                data: own,
            });
            data = rest;
        }
        if !data.is_empty() {
            return Err(format!("it has {} bytes after its last array", data.len()));
        }
        Ok(Model { kind, arrays })
    }

    /// Whom the model is for (`remy`, `indigo`, `muses`).
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Refuses a model of another kind than `wanted`.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn expect_kind(&self, wanted: &str) -> Result<(), String> {
        if self.kind == wanted {
            return Ok(());
        }
        let found: String = self
            .kind
            .chars()
            .filter(|letter| !letter.is_control())
            .take(40)
            .collect();
        Err(format!(
            "it is of the kind {found}, where a model of the kind {wanted} is needed"
        ))
    }

    /// The lengths of the array `name` in its dimensions, of which there are `dimensions`.
    ///
    /// # Errors
    /// When there is no such array.
    pub fn shape(&self, name: &str, dimensions: usize) -> Result<&[usize], String> {
        let array = self.array(name)?;
        if array.shape.len() == dimensions {
            return Ok(&array.shape);
        }
        Err(format!(
            "its array {name} has {} dimensions, where {dimensions} are needed",
            array.shape.len()
        ))
    }

    /// True if there is an array `name`.
    pub fn has(&self, name: &str) -> bool {
        self.arrays.iter().any(|array| array.name == name)
    }

    /// The array `name` of single precision, row by row; all of it is finite.
    ///
    /// # Errors
    /// When there is no such array of that type and shape, or it has numbers that are not finite.
    pub fn singles(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let values = self.values(name, Type::F32, shape, f32::from_le_bytes)?;
        if values.iter().all(|value| value.is_finite()) {
            return Ok(values);
        }
        Err(format!("its array {name} has numbers that are not finite"))
    }

    /// The same for double precision.
    ///
    /// # Errors
    /// As [`Model::singles`].
    pub fn doubles(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>, String> {
        let values = self.values(name, Type::F64, shape, f64::from_le_bytes)?;
        if values.iter().all(|value| value.is_finite()) {
            return Ok(values);
        }
        Err(format!("its array {name} has numbers that are not finite"))
    }

    /// The same for whole numbers.
    ///
    /// # Errors
    /// When there is no such array of that type and shape.
    pub fn integers(&self, name: &str, shape: &[usize]) -> Result<Vec<i32>, String> {
        self.values(name, Type::I32, shape, i32::from_le_bytes)
    }

    fn array(&self, name: &str) -> Result<&Array<'a>, String> {
        let found = self.arrays.iter().find(|array| array.name == name);
        found.ok_or_else(|| format!("it lacks the array {name}"))
    }

    fn values<const N: usize, T>(
        &self,
        name: &str,
        kind: Type,
        shape: &[usize],
        read: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, String> {
        let array = self.array(name)?;
        if array.kind != kind || array.shape != shape {
            return Err(format!(
                "its array {name} is {} {:?}, where {} {shape:?} is needed",
                array.kind.name(),
                array.shape,
                kind.name()
            ));
        }
        let (chunks, _) = array.data.as_chunks::<N>();
        Ok(chunks.iter().map(|chunk| read(*chunk)).collect())
    }
}

/// The header, and the bytes after it.
fn header(rest: &[u8]) -> Result<(Value, &[u8]), String> {
    let Some((length, rest)) = rest.split_first_chunk::<4>() else {
        return Err("it ends before the length of its header".into());
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_HEADER {
        return Err(format!(
            "its header claims {length} bytes, more than any has"
        ));
    }
    let Some((text, data)) = rest.split_at_checked(length) else {
        return Err(format!("it ends within its header of {length} bytes"));
    };
    let header: Value = serde_json::from_slice(text).map_err(|_| "its header is not JSON")?;
    Ok((header, data))
}

/// Name, type, shape and length in bytes of an array in the list of the header.
fn described(item: &Value) -> Result<(String, Type, Vec<usize>, usize), String> {
    let word = |key: &str| item.get(key).and_then(Value::as_str);
    let name = word("name").ok_or("an array in its header has no name")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || name.len() > 60 || !name.chars().all(plain) {
        return Err(
            "an array in its header has a name that is not made of letters, digits and _".into(),
        );
    }
    let kind = word("type").and_then(Type::of);
    let kind =
        kind.ok_or_else(|| format!("its array {name} is of none of the types f32, f64 and i32"))?;
    let listed = item.get("shape").and_then(Value::as_array);
    let lengths =
        listed.and_then(|all| all.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>());
    let lengths = lengths.ok_or_else(|| format!("its array {name} has no shape"))?;
    if lengths.len() > MAX_DIMENSIONS {
        return Err(format!(
            "its array {name} has more than {MAX_DIMENSIONS} dimensions"
        ));
    }
    let mut bytes = kind.bytes();
    let mut shape = Vec::with_capacity(lengths.len());
    for length in lengths {
        let length = usize::try_from(length).ok().filter(|&length| length > 0);
        let product = length.and_then(|length| bytes.checked_mul(length));
        let (Some(length), Some(product)) = (length, product) else {
            return Err(format!(
                "its array {name} has a shape that no array can have"
            ));
        };
        bytes = product;
        shape.push(length);
    }
    Ok((name.to_owned(), kind, shape, bytes))
}

/// Reads the model in `file` and builds something from it.
///
/// # Errors
/// When it is not at hand, or what `build` says, with the name of the file in front.
pub fn load<T>(
    file: &FileRef,
    files: &Files,
    build: impl FnOnce(&Model<'_>) -> Result<T, String>,
) -> Result<T, ParamError> {
    let model = Model::parse(files.content(file)?);
    model.and_then(|model| build(&model)).map_err(|problem| {
        ParamError::Conflict(format!("the model {} can't be used: {problem}", file.name))
    })
}

/// Composes model files: for tests, examples and whoever trains.
pub struct Writer {
    header: Value,
    data: Vec<u8>,
}

impl Writer {
    /// A model of `kind` with no arrays yet.
    pub fn new(kind: &str) -> Self {
        Writer {
            header: json!({"kind": kind, "arrays": []}),
            data: Vec::new(),
        }
    }

    /// Adds an array of single precision, row by row.
    #[must_use]
    pub fn singles(mut self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        self.list(name, Type::F32, shape);
        self.data
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// The same of double precision.
    #[must_use]
    pub fn doubles(mut self, name: &str, shape: &[usize], values: &[f64]) -> Self {
        self.list(name, Type::F64, shape);
        self.data
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// The same of whole numbers.
    #[must_use]
    pub fn integers(mut self, name: &str, shape: &[usize], values: &[i32]) -> Self {
        self.list(name, Type::I32, shape);
        self.data
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    fn list(&mut self, name: &str, kind: Type, shape: &[usize]) {
        if let Some(arrays) = self.header["arrays"].as_array_mut() {
            arrays.push(json!({"name": name, "type": kind.name(), "shape": shape}));
        }
    }

    /// The content of the file.
    pub fn finish(self) -> Vec<u8> {
        let header = self.header.to_string();
        let length = (header.len() as u32).to_le_bytes();
        [&MAGIC[..], &length, header.as_bytes(), &self.data].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Vec<u8> {
        Writer::new("test")
            .singles("a", &[2, 2], &[1.0, -2.0, 0.5, 1e-3])
            .doubles("b", &[1], &[0.1])
            .integers("c", &[3], &[-1, 0, i32::MAX])
            .finish()
    }

    fn problem(content: &[u8]) -> String {
        Model::parse(content).err().unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let content = small();
        let model = Model::parse(&content).unwrap();
        assert_eq!(model.kind(), "test");
        assert_eq!(model.singles("a", &[2, 2]).unwrap(), [1.0, -2.0, 0.5, 1e-3]);
        assert_eq!(model.doubles("b", &[1]).unwrap(), [0.1]);
        assert_eq!(model.integers("c", &[3]).unwrap(), [-1, 0, i32::MAX]);
        assert_eq!(model.shape("a", 2).unwrap(), [2, 2]);
        assert!(model.has("c") && !model.has("d"));
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let content = Writer::new("k").integers("n", &[2], &[1, 258]).finish();
        let header = br#"{"kind":"k","arrays":[{"name":"n","type":"i32","shape":[2]}]}"#;
        let mut expected = b"narrows/model/1\n".to_vec();
        expected.extend([header.len() as u8, 0, 0, 0]);
        expected.extend(header);
        expected.extend([1, 0, 0, 0, 2, 1, 0, 0]);
        assert_eq!(content, expected);
    }

    #[test]
    fn every_refusal_says_what_is_wrong() {
        let with = |header: &str, data: &[u8]| {
            let length = (header.len() as u32).to_le_bytes();
            [&MAGIC[..], &length, header.as_bytes(), data].concat()
        };
        let array = |text: &str| with(&format!(r#"{{"kind": "k", "arrays": [{text}]}}"#), &[0; 8]);
        let good = small();
        for (content, word) in [
            (b"PK".to_vec(), "no model file"),
            (b"narrows/model/2\n".to_vec(), "another version"),
            (MAGIC.to_vec(), "length of its header"),
            ([&MAGIC[..], &[255; 4]].concat(), "4294967295 bytes"),
            (
                [&MAGIC[..], &[9, 0, 0, 0, b'{']].concat(),
                "within its header",
            ),
            (with("{", &[]), "not JSON"),
            (with("[]", &[]), "kind"),
            (with(r#"{"kind": "k"}"#, &[]), "list of arrays"),
            (array("1"), "no name"),
            (
                array(r#"{"name": "a b", "type": "f32", "shape": [2]}"#),
                "letters, digits",
            ),
            (
                array(r#"{"name": "a", "type": "f16", "shape": [2]}"#),
                "none of the types",
            ),
            (
                array(r#"{"name": "a", "type": "f32", "shape": [-2]}"#),
                "no shape",
            ),
            (
                array(r#"{"name": "a", "type": "f32", "shape": [0]}"#),
                "no array can have",
            ),
            (
                array(r#"{"name": "a", "type": "f32", "shape": [1,1,1,1,1,1,1,1,1]}"#),
                "8 dimensions",
            ),
            (
                array(r#"{"name": "a", "type": "f32", "shape": [4294967296, 4294967296]}"#),
                "no array can have",
            ),
            (
                array(r#"{"name": "a", "type": "f32", "shape": [3]}"#),
                "should have 12 bytes and has 8",
            ),
            (
                array(r#"{"name": "a", "type": "f32", "shape": [1]}"#),
                "4 bytes after",
            ),
            (
                array(
                    r#"{"name": "a", "type": "f32", "shape": [1]}, {"name": "a", "type": "f32", "shape": [1]}"#,
                ),
                "twice",
            ),
            (good[..good.len() - 1].to_vec(), "ends within the array c"),
        ] {
            let problem = problem(&content);
            assert!(problem.contains(word), "{word}: {problem}");
        }
        let model = Model::parse(&good).unwrap();
        assert!(
            model
                .singles("d", &[1])
                .unwrap_err()
                .contains("lacks the array d")
        );
        assert!(
            model
                .singles("b", &[1])
                .unwrap_err()
                .contains("is f64 [1], where f32 [1]")
        );
        assert!(
            model
                .singles("a", &[4])
                .unwrap_err()
                .contains("is f32 [2, 2], where f32 [4]")
        );
        assert!(
            model
                .shape("a", 1)
                .unwrap_err()
                .contains("2 dimensions, where 1")
        );
        assert!(model.expect_kind("remy").unwrap_err().contains("kind test"));
        let wild = Writer::new("test").singles("a", &[1], &[f32::NAN]).finish();
        assert!(
            Model::parse(&wild)
                .unwrap()
                .singles("a", &[1])
                .unwrap_err()
                .contains("not finite")
        );
    }
}
