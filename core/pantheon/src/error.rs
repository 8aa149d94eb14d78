//! What can be wrong with a log.

use std::fmt;

/// Why a log could not be read: one sentence that names the file and, where there is one, the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Name of the log.
    pub file: String,
    /// Line, from 1; 0 where the problem is not in a line.
    pub line: u64,
    /// What is wrong, without full stop.
    pub problem: String,
}

impl LogError {
    /// An error in line `line` of `file`.
    pub fn new(file: &str, line: u64, problem: impl Into<String>) -> Self {
        LogError {
            file: file.to_owned(),
            line,
            problem: problem.into(),
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.problem),
            line => write!(f, "{}:{line}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for LogError {}
