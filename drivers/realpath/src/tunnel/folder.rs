//! The files of one end of a tunnel.

#[cfg(test)]
mod tests;

use super::logs::{ARRIVED, SENT, file_name};
use super::report::{FILE, FORMAT};
use super::unfinished_files::unfinished;
use narrows_cell::RunError;
use narrows_cell::judgement::ProgramTraffic;
use narrows_tunnel::log::{LogError, LogKind, TunnelLogRow, decode};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of refused address changes that an address translator does not explain.
const MANY_MOVES: u64 = 10;

/// Contents of the folder of an end.
pub(crate) struct EndFolder {
    folder: PathBuf,
    /// `tunnel.json`.
    pub(crate) document: Value,
    /// All packets that it sent.
    pub(crate) sent: Vec<TunnelLogRow>,
    /// All packets that arrived.
    pub(crate) arrived: Vec<TunnelLogRow>,
    /// Remarks about missing parts of the logs, without full stop.
    pub(crate) remarks: Vec<String>,
}

impl EndFolder {
    /// Reads a folder. With `lenient`, truncated logs are used up to the truncation, and so are files of a killed
    /// agent.
    ///
    /// # Errors
    /// [`RunError::Input`] with the file and what is wrong with it.
    pub(crate) fn read(folder: &Path, lenient: bool) -> Result<EndFolder, RunError> {
        let mut remarks = Vec::new();
        let path = present(folder, FILE, lenient)?;
        let wrong = |message: String| RunError::Input(format!("{}: {message}", path.display()));
        let text = read_regular(&path)?;
        let document: Value =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if document["format"] != FORMAT {
            return Err(wrong(format!("'format' is not '{FORMAT}'")));
        }
        if path != folder.join(FILE) {
            remarks.push(format!(
                "{}: its agent was killed, so the last one or two seconds of its logs are missing, and so are its counters",
                folder.display()
            ));
        }
        let mut log = |kind: LogKind| -> Result<Vec<TunnelLogRow>, RunError> {
            let path = present(folder, file_name(kind), lenient)?;
            let mut rows = Vec::new();
            let (problem, remedy) = match decode(kind, &read_regular(&path)?, &mut rows) {
                Err(error) => (error.to_string(), remedy(&error)),
                Ok(()) => match lacking(&document, kind, rows.len()) {
                    Some(problem) => (problem, "; --lenient uses the existing ones"),
                    None => return Ok(rows),
                },
            };
            if !lenient {
                let path = path.display();
                return Err(RunError::Input(format!("{path}: {problem}{remedy}")));
            }
            remarks.push(format!("{}: {problem}", path.display()));
            Ok(rows)
        };
        let (sent, arrived) = (log(LogKind::Sent)?, log(LogKind::Arrived)?);
        Ok(EndFolder {
            folder: folder.to_owned(),
            document,
            sent,
            arrived,
            remarks,
        })
    }

    /// A placeholder for an end without a tunnel.
    pub(crate) fn absent(folder: &Path) -> EndFolder {
        EndFolder {
            folder: folder.to_owned(),
            document: Value::Null,
            sent: Vec::new(),
            arrived: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Its role: `dialer` or `listener`.
    pub(crate) fn role(&self) -> &str {
        self.document["role"].as_str().unwrap_or("tunnel")
    }

    /// A number in `tunnel.json`; zero where it is not known.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let number = self.document.pointer(pointer);
        number.and_then(Value::as_u64).unwrap_or(0)
    }

    /// The packets that it has sent for the flow of a program.
    pub(crate) fn programs(&self, flow: u16) -> ProgramTraffic {
        let counted = self.document.pointer(&format!("/programs/{flow}"));
        let read = counted.map(|counted| serde_json::from_value(counted.clone()));
        read.and_then(Result::ok).unwrap_or_default()
    }

    /// The log of sent packets.
    pub(crate) fn sent_file(&self) -> PathBuf {
        self.folder.join(file_name(LogKind::Sent))
    }

    /// A doubt about the path from its counters, without full stop.
    pub(crate) fn doubt(&self) -> Option<String> {
        let refused = self.count("/arrived/moves_refused");
        (refused >= MANY_MOVES).then(|| {
            format!(
                "datagrams of the other end arrived at the {} {refused} times from an address at which it did not answer, or not exclusively; a node on the path sends copies of them, or they take several paths",
                self.role()
            )
        })
    }

    /// Rejects two ends that cannot belong to one tunnel.
    ///
    /// # Errors
    /// [`RunError::Input`] with both folders.
    pub(crate) fn check_pair(&self, other: &EndFolder) -> Result<(), RunError> {
        if self.document["role"] == other.document["role"] {
            return Err(RunError::Input(format!(
                "{} and {} are both of a {}; name the folders of the two ends of one tunnel",
                self.folder.display(),
                other.folder.display(),
                self.role(),
            )));
        }
        Ok(())
    }

    /// The error for two ends whose clocks cannot be compared; `implausible` of their stamps were excluded.
    pub(crate) fn no_clocks(&self, other: &EndFolder, implausible: u64) -> RunError {
        let silent = [self, other].into_iter().find(|end| end.arrived.is_empty());
        if let Some(end) = silent {
            return RunError::Input(format!(
                "{}: no packet has arrived at this end, so the clocks of both cannot be compared",
                end.folder.display()
            ));
        }
        let wild = match implausible {
            0 => String::new(),
            count => format!(" ({count} of them are years away from the others)"),
        };
        RunError::Input(format!(
            "{} and {}: no relation of two clocks fits the stamps of the arrivals{wild}; the logs are of different \
             tunnels, or damaged",
            self.folder.display(),
            other.folder.display()
        ))
    }
}

/// The path of a file of an end: its final name or, with `lenient`, the temporary name left by a killed agent.
fn present(folder: &Path, name: &str, lenient: bool) -> Result<PathBuf, RunError> {
    let path = folder.join(name);
    let unfinished = unfinished(folder, name);
    if path.exists() || !unfinished.exists() {
        return Ok(path);
    }
    if lenient {
        return Ok(unfinished);
    }
    Err(RunError::Input(format!(
        "{}: does not exist, but {} does: the agent was killed, or still runs; --lenient uses the data written so far",
        path.display(),
        unfinished.display()
    )))
}

/// The content of a regular file: other kinds of files might block, or never end.
fn read_regular(path: &Path) -> Result<Vec<u8>, RunError> {
    let wrong = |message: String| Err(RunError::Input(format!("{}: {message}", path.display())));
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => wrong("is not a regular file".to_owned()),
        Ok(_) => fs::read(path).or_else(|error| wrong(error.to_string())),
        Err(error) => wrong(format!(
            "{error}; an end of a tunnel leaves {FILE}, {SENT} and {ARRIVED} in its folder"
        )),
    }
}

/// The missing part of a log according to the counters of its end. Blocks are independent, so a log without some of
/// them can be read.
fn lacking(document: &Value, kind: LogKind, rows: usize) -> Option<String> {
    let member = match kind {
        LogKind::Sent => "sent",
        LogKind::Arrived => "arrived",
    };
    let said = document["log_rows"][member].as_u64()?;
    (said != rows as u64).then(|| format!("has {rows} of the {said} rows that {FILE} lists"))
}

/// The remedy for a log that cannot be read completely.
fn remedy(error: &LogError) -> &'static str {
    match error {
        LogError::NotABlock(at) | LogError::Truncated(at) | LogError::Damaged(at) if *at > 0 => {
            "; --lenient uses the part before it"
        }
        _ => "",
    }
}
