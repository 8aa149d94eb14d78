//! Conversion of Pantheon's logs into records and back.

use crate::errors::{folder_error, record_error};
use crate::open;
use narrows_cell::RecordFolder;
use narrows_pantheon::{
    LogError, NoRun, Offsets, Outcome, RawLogSide, Reading, Statistics, Task, export, import, join,
    merge, read_merged, read_tunnel, write_merged,
};
use narrows_record::{Reason, Severity};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The logs of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Logs {
    /// True if flaws end reading but not the import.
    lenient: bool,
    data: Direction,
    ack: Option<Direction>,
}

/// The logs of one direction: the merged one, or the pairs that it is merged from.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Merged(PathBuf),
    Raw(Vec<Pair>),
}

/// The raw logs of one flow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    flow: u16,
    egress: PathBuf,
    ingress: PathBuf,
    /// Offset to be added to the clock of the sending end.
    sender_offset_ns: i64,
    /// Offset to be added to the clock of the receiving end.
    receiver_offset_ns: i64,
}

impl Logs {
    /// Builds the run, with the names of its logs.
    fn make(
        &self,
        task: &mut Task,
        data: &Reading,
        ack: Option<&Reading>,
    ) -> Result<Outcome, NoRun> {
        let read = self.ack.iter().filter(|_| ack.is_some());
        let files = std::iter::once(&self.data)
            .chain(read)
            .flat_map(Direction::files);
        let names: Vec<_> = files
            .filter_map(Path::file_name)
            .map(|name| name.to_string_lossy())
            .collect();
        task.source.insert("logs".into(), json!(names));
        import(task, narrows_cell::versions(), data, ack)
    }
}

impl Direction {
    /// The error of the logs of this direction, reported at the first of them.
    fn error(&self, why: &NoRun) -> LogError {
        let file = self.files().first().map(|path| path.display().to_string());
        LogError::new(&file.unwrap_or_default(), 0, why.to_string())
    }

    fn read(&self, lenient: bool) -> Result<Reading, LogError> {
        match self {
            Direction::Merged(path) => {
                let (name, text) = load(path)?;
                read_merged(&name, &text, lenient)
            }
            Direction::Raw(pairs) => {
                let mut all = Reading::default();
                let mut links = Vec::new();
                for pair in pairs {
                    let reading = pair.read(lenient)?;
                    all.stopped = all.stopped.or(reading.stopped);
                    all.disorder = all.disorder.or(reading.disorder);
                    all.flows.extend(reading.flows);
                    links.push(reading.link);
                }
                all.link = join(links);
                Ok(all)
            }
        }
    }

    fn files(&self) -> Vec<&Path> {
        match self {
            Direction::Merged(path) => vec![path],
            Direction::Raw(pairs) => pairs
                .iter()
                .flat_map(|pair| [pair.egress.as_path(), &pair.ingress])
                .collect(),
        }
    }
}

impl Pair {
    fn read(&self, lenient: bool) -> Result<Reading, LogError> {
        let one = |path: &Path, side| {
            let (name, text) = load(path)?;
            read_tunnel(&name, &text, side, lenient)
        };
        let egress = one(&self.egress, RawLogSide::Egress)?;
        let ingress = one(&self.ingress, RawLogSide::Ingress)?;
        let offsets = Offsets {
            sender_ns: self.sender_offset_ns,
            receiver_ns: self.receiver_offset_ns,
        };
        merge(&egress, &ingress, offsets, self.flow, lenient)
    }
}

/// Reads a log, which must be a regular file: other kinds of files might block, or never end.
fn load(path: &Path) -> Result<(String, Vec<u8>), LogError> {
    let name = path.display().to_string();
    match narrows_cell::read_regular(path) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(LogError::new(&name, 0, format!("can't be read: {error}"))),
    }
}

/// The reason for a run with an unusable log of the acknowledgements, which is imported without it.
fn left_out(error: &LogError) -> Reason {
    Reason {
        severity: Severity::Degraded,
        code: "log".into(),
        text: format!("The acknowledgements are not in the record ({error})."),
    }
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Makes the record `out_dir` of one run (JSON object) from its logs (JSON object with `lenient`, `data` and `ack`,
/// each `{"merged": PATH}` or `{"raw": [{"flow", "egress", "ingress", "sender_offset_ns", "receiver_offset_ns"}]}`).
/// Returns `run.json` as text and, as second value instead, the reason if the logs contain no run at all.
#[pyfunction]
pub(crate) fn import_pantheon(
    py: Python<'_>,
    task_json: &str,
    logs_json: &str,
    out_dir: PathBuf,
) -> PyResult<(Option<String>, Option<String>)> {
    let mut task: Task = serde_json::from_str(task_json).map_err(value_error)?;
    let logs: Logs = serde_json::from_str(logs_json).map_err(value_error)?;
    py.detach(|| {
        let data = logs.data.read(logs.lenient).map_err(value_error)?;
        let ack = match logs.ack.as_ref().map(|ack| ack.read(logs.lenient)) {
            Some(Err(error)) if logs.lenient => {
                task.reasons.push(left_out(&error));
                None
            }
            ack => ack.transpose().map_err(value_error)?,
        };
        let mut made = logs.make(&mut task, &data, ack.as_ref());
        if let (Err(why @ NoRun::AckApart(_)), Some(direction)) = (&made, &logs.ack) {
            let error = direction.error(why);
            if !logs.lenient {
                return Err(value_error(error));
            }
            task.reasons.push(left_out(&error));
            made = logs.make(&mut task, &data, None);
        }
        let mut outcome = match made {
            Ok(outcome) => outcome,
            Err(NoRun::Empty) => return Ok((None, Some(NoRun::Empty.to_string()))),
            Err(why) => return Ok((None, Some(logs.data.error(&why).to_string()))),
        };
        let folder = RecordFolder::create(&out_dir).map_err(folder_error)?;
        let mut file = folder.packets().map_err(folder_error)?;
        let written = outcome.packets.chunks(|chunk| file.write(chunk));
        written
            .and_then(|()| file.finish().map(drop))
            .map_err(|e| folder_error(folder.packets_error(e)))?;
        folder.capacity(outcome.capacity).map_err(folder_error)?;
        folder.complete(&mut outcome.run).map_err(folder_error)?;
        Ok((Some(outcome.run.to_text()), None))
    })
}

/// Writes the record in `cell_dir` as the merged logs of Pantheon's tunnel, its time zero at `base_ns` since 1970, or
/// as its original logs: the direction of the data to `data`, the other to `ack`, unless the run was imported without
/// it. Returns Pantheon's numbers as JSON: `statistics` and the `text` of its stats file, null if no packet arrived.
#[pyfunction]
pub(crate) fn export_pantheon(
    py: Python<'_>,
    cell_dir: PathBuf,
    base_ns: i64,
    data: PathBuf,
    ack: PathBuf,
) -> PyResult<String> {
    py.detach(|| {
        let record = open(&cell_dir)?;
        let found = export(&record, base_ns).map_err(|e| record_error(&cell_dir, e))?;
        let ack = found.ack.as_ref().map(|link| (link, ack));
        for (link, path) in std::iter::once((&found.data, data)).chain(ack) {
            std::fs::write(&path, write_merged(link))
                .map_err(|e| PyOSError::new_err(format!("{}: {e}", path.display())))?;
        }
        let text = found.statistics.as_ref().map(Statistics::text);
        Ok(json!({"statistics": found.statistics, "text": text}).to_string())
    })
}
