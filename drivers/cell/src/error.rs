//! Reasons for which a live run failed.

use crate::{CellError, FolderError};
use std::io;
use std::path::Path;

/// An error of the live driver. Each message is one sentence, with a remedy if there is one.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The cell is invalid and cannot be run.
    #[error("{0}")]
    Input(String),
    /// This machine, or this user on it, cannot run the cell.
    #[error("{0}")]
    Unavailable(String),
    /// A file could not be read or written.
    #[error("{0}")]
    Io(String),
    /// An external program could not take part.
    #[error("{0}")]
    Program(String),
    /// An internal error.
    #[error("{0}")]
    Internal(String),
    /// Stopped by a signal, or because the parent process ended.
    #[error("stopped by signal {0}")]
    Interrupted(i32),
}

impl From<CellError> for RunError {
    fn from(error: CellError) -> Self {
        RunError::Input(error.to_string())
    }
}

impl From<FolderError> for RunError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Exists(_) => RunError::Input(error.to_string()),
            _ => RunError::Io(error.to_string()),
        }
    }
}

impl RunError {
    /// An error in a plan, which may contain a secret of 64 hexadecimal digits. A message may quote arbitrary content:
    /// it is kept on one line, and eight or more hexadecimal digits in a row are masked (integers have no letters and
    /// are kept).
    pub fn plan(of: &str, message: &str) -> Self {
        let mut line = format!("the plan of the {of}: ");
        let mut rest = message;
        while let Some(first) = rest.chars().next() {
            let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
            let (taken, after) = rest.split_at(digits.max(first.len_utf8()));
            if digits >= 8 && taken.bytes().any(|byte| byte.is_ascii_alphabetic()) {
                line.push('…');
            } else if first.is_control() {
                line.extend(first.escape_default());
            } else {
                line.push_str(taken);
            }
            rest = after;
        }
        RunError::Input(line)
    }
}

/// Adds the operation or its object to a system error.
pub trait Context<T> {
    /// Names the file or folder at `path`.
    fn at(self, path: &Path) -> Result<T, RunError>;

    /// `doing` completes "could not ...".
    fn could_not(self, doing: &str) -> Result<T, RunError>;
}

impl<T> Context<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, RunError> {
        self.map_err(|error| RunError::Io(format!("{}: {error}", path.display())))
    }

    fn could_not(self, doing: &str) -> Result<T, RunError> {
        self.map_err(|error| RunError::Internal(format!("could not {doing}: {error}")))
    }
}
