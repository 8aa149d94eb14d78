//! Errors of reading and writing foreign files.

use narrows_record::RecordError;

/// A file could not be written or read. Each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The record is damaged, or lacks data that the format needs.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The file could not be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The input file is invalid.
    #[error("{0}")]
    Input(String),
}

impl FormatError {
    /// An error in the content of the file that is read.
    pub fn input(problem: impl Into<String>) -> Self {
        FormatError::Input(problem.into())
    }
}
