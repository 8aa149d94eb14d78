//! The lines on standard output, and the exit codes of failures.

use narrows_cell::FolderError;
use narrows_cell::RunError;
use narrows_record::RunDocument;
use narrows_sim::SimError;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// SIGHUP, SIGINT and SIGTERM: the terminal closes, Ctrl-C, a request to stop.
pub(crate) const STOPPING: [i32; 3] = [1, INTERRUPT, TERMINATE];
/// Ctrl-C.
const INTERRUPT: i32 = 2;
/// A request to stop.
pub(crate) const TERMINATE: i32 = 15;
/// Time between progress lines.
const TICK: Duration = Duration::from_millis(200);

/// Reasons for which no record was written.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: &'static str,
    message: String,
    signal: i32,
}

impl Failure {
    fn new(kind: &'static str, message: String) -> Self {
        Failure {
            kind,
            message,
            signal: 0,
        }
    }

    pub(crate) fn input(message: String) -> Self {
        Failure::new("input", message)
    }

    pub(crate) fn io(message: String) -> Self {
        Failure::new("io", message)
    }

    /// The limit of memory was reached.
    pub(crate) fn memory(message: String) -> Self {
        Failure::new("memory", message)
    }

    pub(crate) fn internal(message: String) -> Self {
        Failure::new("internal", message)
    }

    pub(crate) fn interrupted(signal: i32) -> Self {
        let message = "the run was interrupted; no part of it was kept".to_owned();
        Failure {
            kind: "interrupted",
            message,
            signal,
        }
    }

    /// 1 failure, 3 bad cell, 4 machine lacks a feature, 130 or 143 interrupted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            "input" => 3,
            "unavailable" => 4,
            "interrupted" if self.signal == INTERRUPT => 130,
            "interrupted" => 143,
            _ => 1,
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let message = error.to_string();
        match error {
            RunError::Input(_) => Failure::input(message),
            RunError::Unavailable(_) => Failure::new("unavailable", message),
            RunError::Io(_) => Failure::io(message),
            RunError::Program(_) => Failure::new("program", message),
            RunError::Internal(_) => Failure::internal(message),
            RunError::Interrupted(signal) => Failure::interrupted(signal),
        }
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Cell(error) => Failure::input(error.to_string()),
            SimError::Folder(error @ FolderError::Exists(_)) => Failure::input(error.to_string()),
            SimError::Folder(error) => Failure::io(error.to_string()),
            SimError::Interrupted => Failure::interrupted(TERMINATE),
        }
    }
}

/// Prints progress lines at a limited rate.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    last: Option<Instant>,
}

impl Progress {
    /// Reports the elapsed part of the run.
    pub(crate) fn report(&mut self, time_ns: u64, of_ns: u64) {
        if self.last.is_none_or(|last| last.elapsed() >= TICK) || time_ns == of_ns {
            self.last = Some(Instant::now());
            line(&json!({"event": "progress", "time_ns": time_ns, "of_ns": of_ns}));
        }
    }
}

/// Reports a complete record.
pub(crate) fn done(run: &RunDocument) {
    let reasons: Vec<&str> = run
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    line(&json!({"event": "done", "verdict": run.verdict, "reasons": reasons}));
}

/// Reports a failure without a record.
pub(crate) fn error(failure: &Failure) {
    line(&json!({"event": "error", "kind": failure.kind, "message": failure.message}));
    eprintln!("narrows-agent: {}", failure.message);
}

/// Ends a command whose standard output is not for events; `name` is the source of messages on standard error.
pub(crate) fn finish(name: &str, result: Result<u8, Failure>) -> ExitCode {
    let code = result.unwrap_or_else(|failure| {
        eprintln!("{name}: {}", failure.message);
        failure.exit_code()
    });
    ExitCode::from(code)
}

/// Prints one event.
pub(crate) fn line(event: &Value) {
    let mut out = std::io::stdout().lock();
    // The reader may have ended, which is not a reason to fail.
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}
