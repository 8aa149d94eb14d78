//! Commands to a peer: lines on its standard input, the first of which may be its plan. The end of the input is a
//! command to stop.

use narrows_cell::{Context, RunError};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum length of a line: plans contain models of learned schemes.
const MAX_LINE: usize = 256 << 20;

/// Commands to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Command {
    /// Start the run.
    Start {
        /// This many ns from now.
        #[serde(default)]
        in_ns: Option<u64>,
        /// When the clock of the tunnel's other end reads this.
        #[serde(default)]
        at_ns: Option<u64>,
        /// When `CLOCK_REALTIME` of this machine reads this.
        #[serde(default)]
        real_ns: Option<u64>,
        /// Error bound of `real_ns`, if that was computed from a reading of the other machine's clock.
        #[serde(default)]
        error_ns: Option<u64>,
    },
    /// A flow has other times from now on.
    Reschedule {
        /// Its number.
        flow: u16,
        /// When it starts.
        start_ns: u64,
        /// When it stops.
        stop_ns: u64,
        /// The one of them that changes: until then the command has to arrive.
        at_ns: u64,
    },
    /// Stop and clean up.
    Stop,
}

/// When to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartTime {
    /// This many ns from now.
    In(u64),
    /// When the clock of the other end reads this.
    At(u64),
    /// When `CLOCK_REALTIME` of this machine reads the first value; the second is its error bound.
    Real(u64, u64),
}

/// The input, split into lines.
#[derive(Debug)]
pub struct CommandReader {
    input: File,
    read: Vec<u8>,
    /// Bytes that were searched without finding the end of a line.
    seen: usize,
    ended: bool,
}

impl CommandReader {
    /// Commands from `input`.
    ///
    /// # Errors
    /// No descriptor is available.
    pub fn from(input: BorrowedFd) -> Result<Self, RunError> {
        let input = input.try_clone_to_owned();
        Ok(CommandReader {
            input: input.could_not("read standard input")?.into(),
            read: Vec::new(),
            seen: 0,
            ended: false,
        })
    }

    /// The first line, waiting for it.
    ///
    /// # Errors
    /// There is no line, or it is not text.
    pub fn first_line(&mut self) -> Result<String, RunError> {
        loop {
            if let Some(line) = self.line()? {
                return Ok(line);
            }
            if self.ended {
                return Err(RunError::Input(
                    "standard input has ended before a plan".to_owned(),
                ));
            }
            self.fill();
        }
    }

    /// Reads available input. Waits if there is none.
    pub(super) fn fill(&mut self) {
        let mut buffer = [0; 16 * 1024];
        match self.input.read(&mut buffer) {
            Ok(length) if length > 0 => self.read.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => self.ended = true,
        }
    }

    /// The next command, if it has arrived; [`Command::Stop`] at the end.
    pub(super) fn next(&mut self) -> Result<Option<Command>, RunError> {
        let Some(line) = self.line()? else {
            return Ok(self.ended.then_some(Command::Stop));
        };
        let order = serde_json::from_str(&line);
        order.map(Some).map_err(|error| {
            RunError::Input(format!("the command '{line}' is not understood: {error}"))
        })
    }

    fn line(&mut self) -> Result<Option<String>, RunError> {
        let end = self.read[self.seen..]
            .iter()
            .position(|&byte| byte == b'\n');
        let Some(end) = end.map(|end| self.seen + end) else {
            self.seen = self.read.len();
            if self.read.len() > MAX_LINE {
                return Err(RunError::Input(format!(
                    "a line on standard input is longer than {MAX_LINE} bytes"
                )));
            }
            return Ok(None);
        };
        let line = String::from_utf8(self.read[..end].to_vec());
        self.read.drain(..=end);
        self.seen = 0;
        line.map(Some)
            .map_err(|_| RunError::Input("a line on standard input is not UTF-8".to_owned()))
    }
}

impl AsFd for CommandReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

impl StartTime {
    /// The time that a start command names.
    pub(super) fn new(
        in_ns: Option<u64>,
        at_ns: Option<u64>,
        real_ns: Option<u64>,
        error_ns: Option<u64>,
    ) -> Result<StartTime, RunError> {
        match (in_ns, at_ns, real_ns, error_ns) {
            (Some(ns), None, None, None) => Ok(StartTime::In(ns)),
            (None, Some(ns), None, None) => Ok(StartTime::At(ns)),
            (None, None, Some(ns), Some(error_ns)) => Ok(StartTime::Real(ns, error_ns)),
            _ => Err(RunError::Input(
                "the start command must have one of 'in_ns', 'at_ns' and 'real_ns', the last with 'error_ns'"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn orders_follow_the_plan_and_the_end_stops() {
        let (ours, mut theirs) = std::io::pipe().unwrap();
        let mut commands = CommandReader::from(ours.as_fd()).unwrap();
        theirs
            .write_all(b"{\"plan\": 1}\n{\"order\": \"start\", \"in")
            .unwrap();
        assert_eq!(commands.first_line().unwrap(), "{\"plan\": 1}");
        assert_eq!(commands.next().unwrap(), None);
        theirs
            .write_all(b"_ns\": 7}\n{\"order\": \"dance\"}\n\xff\n")
            .unwrap();
        commands.fill();
        let start = Command::Start {
            in_ns: Some(7),
            at_ns: None,
            real_ns: None,
            error_ns: None,
        };
        assert_eq!(commands.next().unwrap(), Some(start));
        assert!(commands.next().unwrap_err().to_string().contains("dance"));
        assert!(commands.next().unwrap_err().to_string().contains("UTF-8"));
        assert_eq!(commands.next().unwrap(), None);
        drop(theirs);
        commands.fill();
        assert_eq!(commands.next().unwrap(), Some(Command::Stop));
        assert!(commands.first_line().is_err());
    }

    #[test]
    fn a_start_has_one_time() {
        let of =
            |in_ns, at_ns, real_ns, error_ns| StartTime::new(in_ns, at_ns, real_ns, error_ns).ok();
        assert_eq!(of(Some(1), None, None, None), Some(StartTime::In(1)));
        assert_eq!(of(None, Some(2), None, None), Some(StartTime::At(2)));
        assert_eq!(
            of(None, None, Some(3), Some(4)),
            Some(StartTime::Real(3, 4))
        );
        assert_eq!(of(None, None, None, None), None);
        assert_eq!(of(Some(1), Some(2), None, None), None);
        assert_eq!(of(None, None, Some(3), None), None);
    }
}
