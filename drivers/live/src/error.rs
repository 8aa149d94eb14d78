//! Why a live run could not be done.

use narrows_cell::{CellError, FolderError};
use std::io;

/// An error of the live driver. Each message is one sentence with a remedy where there is one.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The cell cannot be run as it is written.
    #[error("{0}")]
    Input(String),
    /// This machine, or this user on it, cannot run the cell.
    #[error("{0}")]
    Unavailable(String),
    /// A file could not be read or written.
    #[error("{0}")]
    Io(String),
    /// Something that should not happen.
    #[error("{0}")]
    Internal(String),
    /// Stopped by a signal, or because the parent process ended.
    #[error("stopped by signal {0}")]
    Interrupted(i32),
}

impl From<CellError> for LiveError {
    fn from(error: CellError) -> Self {
        LiveError::Input(error.to_string())
    }
}

impl From<FolderError> for LiveError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Exists(_) => LiveError::Input(error.to_string()),
            _ => LiveError::Io(error.to_string()),
        }
    }
}

/// Adds what was being done to an error of the system.
pub(crate) trait Context<T> {
    /// `doing` completes "could not ...".
    fn could_not(self, doing: &str) -> Result<T, LiveError>;
}

impl<T> Context<T> for io::Result<T> {
    fn could_not(self, doing: &str) -> Result<T, LiveError> {
        self.map_err(|error| LiveError::Internal(format!("could not {doing}: {error}")))
    }
}
