//! Model files for tests and examples.

use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A model file under construction.
pub struct ModelWriter {
    kind: String,
    policy: Option<String>,
    arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

impl ModelWriter {
    /// A model of `kind` with no arrays yet.
    pub fn new(kind: &str) -> Self {
        ModelWriter {
            kind: kind.to_owned(),
            policy: None,
            arrays: Vec::new(),
        }
    }

    /// Adds the description of a policy.
    #[must_use]
    pub fn policy(mut self, json: &str) -> Self {
        self.policy = Some(json.to_owned());
        self
    }

    /// Adds an array of single precision, row by row.
    #[must_use]
    pub fn singles(self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(name, Dtype::F32, shape, data.collect())
    }

    /// The same of double precision.
    #[must_use]
    pub fn doubles(self, name: &str, shape: &[usize], values: &[f64]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(name, Dtype::F64, shape, data.collect())
    }

    /// The same of integers.
    #[must_use]
    pub fn integers(self, name: &str, shape: &[usize], values: &[i32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(name, Dtype::I32, shape, data.collect())
    }

    fn array(mut self, name: &str, kind: Dtype, shape: &[usize], data: Vec<u8>) -> Self {
        self.arrays
            .push((name.to_owned(), kind, shape.to_vec(), data));
        self
    }

    /// The content of the file.
    ///
    /// # Panics
    /// If values and shape of an array are inconsistent.
    pub fn finish(self) -> Vec<u8> {
        let arrays = self.arrays.iter().map(|(name, kind, shape, data)| {
            let array = TensorView::new(*kind, shape.clone(), data);
            (name, array.expect("as many values as the shape has"))
        });
        let policy = self
            .policy
            .iter()
            .map(|json| ("policy".to_owned(), json.clone()));
        let metadata = policy.chain([("kind".to_owned(), self.kind.clone())]);
        safetensors::serialize(arrays, Some(metadata.collect()))
            .expect("arrays that have been checked")
    }
}
