//! Model files: rule tables and networks that a scheme reads from files.
//!
//! Each file contains one model in the safetensors format: named arrays, and `kind` in the metadata, which names the
//! scheme. The arrays depend on the kind; `docs/guide/models.md` lists them. Files are untrusted, so everything in them
//! is checked.

use std::fmt::Display;

use narrows_units::{FileRef, Files, ParamError};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

/// Maximum number of dimensions of an array.
const MAX_DIMENSIONS: usize = 8;
/// Maximum length of text quoted from or about a file in a message.
const MAX_EXCERPT: usize = 100;

/// A parsed model file. Error messages are one sentence without the name of the file.
pub struct Model<'a> {
    kind: String,
    /// The description of a policy, as JSON.
    policy: Option<String>,
    arrays: SafeTensors<'a>,
}

impl<'a> Model<'a> {
    /// Reads the content of a model file.
    ///
    /// # Errors
    /// If the content is not a valid model, including missing and excess bytes.
    pub fn parse(content: &'a [u8]) -> Result<Self, String> {
        let no_model = |error: SafeTensorError| {
            format!(
                "it is not a model file ({}); make one from a published model with: narrows models add NAME PATH",
                excerpt(&error)
            )
        };
        let (_, header) = SafeTensors::read_metadata(content).map_err(no_model)?;
        let metadata = header.metadata().as_ref();
        let kind = metadata.and_then(|metadata| metadata.get("kind"));
        let kind = kind.ok_or("its metadata lacks the kind of the model")?;
        let arrays = SafeTensors::deserialize(content).map_err(no_model)?;
        for (name, array) in arrays.iter() {
            if array.shape().len() > MAX_DIMENSIONS || array.shape().contains(&0) {
                return Err(format!(
                    "its array {} has the shape {}, where up to {MAX_DIMENSIONS} lengths of at least 1 are needed",
                    excerpt(&name),
                    excerpt(&format_args!("{:?}", array.shape()))
                ));
            }
        }
        Ok(Model {
            kind: kind.clone(),
            policy: metadata
                .and_then(|metadata| metadata.get("policy"))
                .cloned(),
            arrays,
        })
    }

    /// The scheme that takes the model (`remy`, `indigo`, `muses`, `aurora`, `policy`).
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The description of a policy, as JSON, if the metadata has one.
    pub fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// The number of its arrays.
    pub fn count(&self) -> usize {
        self.arrays.len()
    }

    /// Checks that the model is of the kind `wanted`.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn expect_kind(&self, wanted: &str) -> Result<(), String> {
        if self.kind == wanted {
            return Ok(());
        }
        Err(format!(
            "it is of the kind {}, where a model of the kind {wanted} is needed",
            excerpt(&self.kind)
        ))
    }

    /// The shape of the array `name`, which must have `dimensions` dimensions.
    ///
    /// # Errors
    /// If no such array exists.
    pub fn shape(&self, name: &str, dimensions: usize) -> Result<Vec<usize>, String> {
        let shape = self.array(name)?.shape().to_vec();
        if shape.len() == dimensions {
            return Ok(shape);
        }
        Err(format!(
            "its array {name} has {} dimensions, where {dimensions} are needed",
            shape.len()
        ))
    }

    /// True if an array `name` exists.
    pub fn has(&self, name: &str) -> bool {
        self.arrays.tensor(name).is_ok()
    }

    /// The single-precision array `name`, in row-major order; all values are finite.
    ///
    /// # Errors
    /// If no such array of that type and shape exists, or it has non-finite values.
    pub fn singles(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let values = self.values(name, Dtype::F32, shape, f32::from_le_bytes)?;
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
        let values = self.values(name, Dtype::F64, shape, f64::from_le_bytes)?;
        if values.iter().all(|value| value.is_finite()) {
            return Ok(values);
        }
        Err(format!("its array {name} has numbers that are not finite"))
    }

    /// The same for integers.
    ///
    /// # Errors
    /// If no such array of that type and shape exists.
    pub fn integers(&self, name: &str, shape: &[usize]) -> Result<Vec<i32>, String> {
        self.values(name, Dtype::I32, shape, i32::from_le_bytes)
    }

    fn array(&self, name: &str) -> Result<TensorView<'a>, String> {
        let found = self.arrays.tensor(name);
        found.map_err(|_| format!("it lacks the array {name}"))
    }

    fn values<const N: usize, T>(
        &self,
        name: &str,
        kind: Dtype,
        shape: &[usize],
        read: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, String> {
        let array = self.array(name)?;
        if array.dtype() != kind || array.shape() != shape {
            let found = array.dtype().to_string().to_lowercase();
            let wanted = kind.to_string().to_lowercase();
            return Err(format!(
                "its array {name} is {found} {:?}, where {wanted} {shape:?} is needed",
                array.shape()
            ));
        }
        let (chunks, _) = array.data().as_chunks::<N>();
        Ok(chunks.iter().map(|chunk| read(*chunk)).collect())
    }
}

/// The start of an untrusted text, without control characters, for use in a message.
pub(crate) fn excerpt(text: &dyn Display) -> String {
    let text = text.to_string();
    let mut letters = text.chars().filter(|letter| !letter.is_control());
    let mut start: String = letters.by_ref().take(MAX_EXCERPT).collect();
    if letters.next().is_some() {
        start.push('…');
    }
    start
}

/// Reads the model in `file` and passes it to `build`.
///
/// # Errors
/// If the file is not available, or the error of `build`, prefixed with the name of the file.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ModelWriter;

    fn small() -> Vec<u8> {
        ModelWriter::new("test")
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

    /// A file with this header, and eight bytes of data.
    fn with(header: &str) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), &[0; 8]].concat()
    }

    #[test]
    fn the_layout_is_that_of_safetensors() {
        let content = with(
            r#"{"__metadata__": {"kind": "k"}, "n": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}"#,
        );
        let model = Model::parse(&content).unwrap();
        assert_eq!(model.kind(), "k");
        assert_eq!(model.integers("n", &[2]).unwrap(), [0, 0]);
    }

    #[test]
    fn a_refusal_repeats_little_of_a_strange_file() {
        let name = "\\u0007x".repeat(1_000);
        let kind = format!(r#"{{"__metadata__": {{"kind": "{name}"}}}}"#);
        let length = (kind.len() as u64).to_le_bytes();
        let kind = [&length[..], kind.as_bytes()].concat();
        let of_kind = Model::parse(&kind).unwrap().expect_kind("remy");
        for problem in [
            problem(&with(&format!(
                r#"{{"__metadata__": {{"kind": "k"}}, "{name}": {{"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}, "b": {{"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}}}"#
            ))),
            problem(&with(&format!(
                r#"{{"__metadata__": {{"kind": "k"}}, "a": {{"dtype": "F64", "shape": [{}1], "data_offsets": [0, 8]}}}}"#,
                "1,".repeat(1_000)
            ))),
            problem(&with(
                r#"{"__metadata__": {"kind": "k"}, "a": {"dtype": "F42", "shape": [1], "data_offsets": [0, 8]}}"#,
            )),
            of_kind.unwrap_err(),
        ] {
            assert!(
                problem.len() < 250 && !problem.contains(char::is_control),
                "{problem:?}"
            );
        }
    }

    #[test]
    fn every_refusal_says_what_is_wrong() {
        let array = |text: &str| with(&format!(r#"{{"__metadata__": {{"kind": "k"}}, {text}}}"#));
        let good = small();
        for (content, word) in [
            (b"PK".to_vec(), "not a model file"),
            (b"narrows/model/1\n".to_vec(), "not a model file"),
            (with("{"), "not a model file"),
            (
                with(r#"{"n": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}"#),
                "lacks the kind",
            ),
            (
                array(r#""a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}"#),
                "not a model file",
            ),
            (
                array(r#""a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}"#),
                "not a model file",
            ),
            (
                array(
                    r#""a": {"dtype": "F32", "shape": [1,1,1,1,1,1,1,1,2], "data_offsets": [0, 8]}"#,
                ),
                "up to 8 lengths",
            ),
            (
                array(
                    r#""a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, "b": {"dtype": "F64", "shape": [0], "data_offsets": [8, 8]}"#,
                ),
                "at least 1",
            ),
            (good[..good.len() - 1].to_vec(), "not a model file"),
        ] {
            let problem = problem(&content);
            assert!(problem.contains(word), "{word}: {problem}");
        }
        let model = Model::parse(&good).unwrap();
        let refusal = |result: Result<Vec<f32>, String>| result.unwrap_err();
        assert!(refusal(model.singles("d", &[1])).contains("lacks the array d"));
        assert!(refusal(model.singles("b", &[1])).contains("is f64 [1], where f32 [1]"));
        assert!(refusal(model.singles("a", &[4])).contains("is f32 [2, 2], where f32 [4]"));
        assert!(
            model
                .shape("a", 1)
                .unwrap_err()
                .contains("2 dimensions, where 1")
        );
        assert!(model.expect_kind("remy").unwrap_err().contains("kind test"));
        let wild = ModelWriter::new("test")
            .singles("a", &[1], &[f32::NAN])
            .finish();
        let wild = Model::parse(&wild).unwrap();
        assert!(refusal(wild.singles("a", &[1])).contains("not finite"));
    }
}
