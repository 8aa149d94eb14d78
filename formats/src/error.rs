//! Errors of reading and writing foreign files.

use narrows_record::RecordError;

/// Why a file could not be written or read. Each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The record is damaged, or has not what the format needs.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The file could not be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file that was to be read is not what it should be.
    #[error("{0}")]
    Input(String),
}

impl FormatError {
    /// An error in the content of the file that is read.
    pub fn input(problem: impl Into<String>) -> Self {
        FormatError::Input(problem.into())
    }
}
