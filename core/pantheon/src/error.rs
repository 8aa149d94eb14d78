//! Errors of a log, and with the logs of a run.

use std::fmt;

/// Why a log could not be read: one sentence that names the file and, where there is one, the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Name of the log.
    pub file: String,
    /// Line, from 1; 0 where the problem is not in a line.
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

/// Why logs that can be read make no record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoRun {
    /// There is no packet in them.
    Empty,
    /// The events of the data are so many days apart.
    Apart(f64),
    /// Those of the data and of the acknowledgements together are; without the latter there is a record.
    AckApart(f64),
}

impl fmt::Display for NoRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRun::Empty => write!(f, "no packet was logged, so the run is void"),
            NoRun::Apart(days) => write!(
                f,
                "its events lie {days:.0} days apart, so a clock was wrong, or it is put together from several runs"
            ),
            NoRun::AckApart(days) => write!(
                f,
                "with it the run's events lie {days:.0} days apart, so it is of another run, or a clock was wrong"
            ),
        }
    }
}

impl std::error::Error for NoRun {}
