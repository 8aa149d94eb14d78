//! Sentences about programs that cannot take part.

use super::process::Started;
use super::{Runner, ready};
use narrows_cell::{Readiness, RunError};
use narrows_sys::subreaper;

impl Runner<'_> {
    /// The error of a process that ended before it was ready or needed.
    pub(super) fn ended_too_soon(&mut self, before: &str) -> RunError {
        let who = self.who();
        let Some(started) = &mut self.started else {
            return RunError::Internal(format!("{who} was never started"));
        };
        let left = subreaper::descendants().len();
        let still = match left {
            0 => "",
            _ => " and left processes in the background; it must stay in the foreground",
        };
        let how = started.ending();
        RunError::Program(format!(
            "{who} {how} before it {before}{still}{}",
            started.last_words()
        ))
    }

    pub(super) fn never_ready(&mut self) -> RunError {
        let missing = match &self.plan.ready {
            Some(Readiness::Line(text)) => format!("it has printed no line with \"{text}\""),
            Some(Readiness::Tcp(port)) => ready::missing(&[ready::TCP], self.port(*port)),
            Some(Readiness::Udp(port)) => ready::missing(&[ready::UDP], self.port(*port)),
            Some(Readiness::Port(port)) => {
                ready::missing(&[ready::TCP, ready::UDP], self.port(*port))
            }
            None => String::new(),
        };
        let limit = self.program.limits.ready_ns as f64 / 1e9;
        let who = self.who();
        let last = self.started.as_mut().map(Started::last_words);
        RunError::Program(format!(
            "{who} was not ready within {limit} s: {missing}{}",
            last.unwrap_or_default()
        ))
    }
}
