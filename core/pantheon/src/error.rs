//! Errors of single logs, and of the logs of a run together.

use std::fmt;

/// A log could not be read. The message is one sentence that names the file and, if there is one, the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Name of the log.
    pub file: String,
    /// Line, from 1; 0 if the problem is not in a line.
    pub line: u64,
    /// The problem, without full stop.
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

/// Readable logs do not form a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoRun {
    /// They contain no packet.
    Empty,
    /// The events of the data are this many days apart.
    Apart(f64),
    /// The events of data and acknowledgements together are this many days apart; without the acknowledgements a record
    /// is possible.
    AckApart(f64),
}

impl fmt::Display for NoRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRun::Empty => write!(f, "no packet was logged, so the run is void"),
            NoRun::Apart(days) => write!(
                f,
                "its events are {days:.0} days apart, so a clock was wrong, or it is combined from several runs"
            ),
            NoRun::AckApart(days) => write!(
                f,
                "with it the run's events are {days:.0} days apart, so it is of another run, or a clock was wrong"
            ),
        }
    }
}

impl std::error::Error for NoRun {}
