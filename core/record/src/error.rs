//! Errors of reading and writing records.

/// Why a record could not be written or read. Each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The underlying writer failed (a full disk, for example).
    #[error("the record could not be written: {0}")]
    Io(#[from] std::io::Error),
    /// The encoder refused the data or its writer failed.
    #[error("the record could not be encoded: {0}")]
    Encode(String),
    /// The file is invalid; the text names the file and the problem.
    #[error("{file}: {problem}")]
    Data {
        /// Name of the file within the record.
        file: String,
        /// The problem with it.
        problem: String,
    },
}

impl RecordError {
    /// An error in the content of `file`.
    pub fn data(file: &str, problem: impl Into<String>) -> Self {
        RecordError::Data {
            file: file.to_owned(),
            problem: problem.into(),
        }
    }
}

impl From<parquet::errors::ParquetError> for RecordError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            // A failing writer is reported as an external error; unwrap it, so that callers can
            // distinguish a full disk from other errors.
            parquet::errors::ParquetError::External(source) => {
                match source.downcast::<std::io::Error>() {
                    Ok(io) => RecordError::Io(*io),
                    Err(other) => RecordError::Encode(other.to_string()),
                }
            }
            other => RecordError::Encode(other.to_string()),
        }
    }
}
