//! Many simulated cells at once, for which only metrics and verdicts are needed.

use narrows_cell::Cell;
use narrows_sim::{CellFailure, Limits, Summary};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time between two checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// Simulate cells (JSON texts) in memory on `threads` threads (default: one for each processor that this process may
/// use), and pass the result of each to `tell(index, text)` as soon as it is known, in any order. The text is a JSON
/// object: `verdict`, `reasons` and `measured` (as returned by `measure` for a record of the same cell), or `error`
/// with `kind` (`input`, `memory`, `internal`) and `message`. No file is written and no process started. `memory` is
/// the maximum number of bytes per cell; `files_dir` has the files that cells name. Signals (in the main thread),
/// exceptions of `tell`, and `stop()`, called every 20 ms, end it; results not passed by then are lost.
#[pyfunction]
#[pyo3(signature = (cells, tell, *, memory, threads = None, files_dir = None, stop = None))]
pub(crate) fn simulate_summaries(
    py: Python<'_>,
    cells: Vec<String>,
    tell: Py<PyAny>,
    memory: u64,
    threads: Option<usize>,
    files_dir: Option<PathBuf>,
    stop: Option<Py<PyAny>>,
) -> PyResult<()> {
    let usable = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.unwrap_or(usable).clamp(1, cells.len().max(1));
    let folder = files_dir.unwrap_or_default();
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let limits = Limits {
        memory,
        stop: &|| over.load(Ordering::Relaxed),
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, results) = mpsc::channel::<(usize, String)>();
            for _ in 0..threads {
                let (done, cells, next, limits, folder) =
                    (done.clone(), &cells, &next, &limits, &folder);
                scope.spawn(move || {
                    while !(limits.stop)() {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(text) = cells.get(index) else { return };
                        let Some(result) = summarise_cell(text, folder, limits) else {
                            return;
                        };
                        if done.send((index, result)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            loop {
                let outcome = match results.recv_timeout(LOOK) {
                    Ok((index, text)) => {
                        Python::attach(|py| tell.call1(py, (index, text)).map(drop))
                    }
                    Err(RecvTimeoutError::Timeout) => match should_stop(stop.as_ref()) {
                        Ok(true) => {
                            over.store(true, Ordering::Relaxed);
                            return Ok(());
                        }
                        other => other.map(drop),
                    },
                    Err(RecvTimeoutError::Disconnected) => {
                        return signals();
                    }
                };
                let outcome = outcome.and_then(|()| signals());
                if let Err(error) = outcome {
                    over.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        })
    })
}

/// Lets Python handle the signals that have arrived.
fn signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

/// The answer of `stop`.
fn should_stop(stop: Option<&Py<PyAny>>) -> PyResult<bool> {
    stop.map_or(Ok(false), |stop| {
        Python::attach(|py| stop.call0(py)?.extract(py))
    })
}

/// The result of a cell as text; `None` if it was stopped.
fn summarise_cell(text: &str, folder: &Path, limits: &Limits<'_>) -> Option<String> {
    let load = |json: &Value| narrows_cell::load_files(json, folder);
    let evaluated: Result<Summary, CellFailure> = Cell::parse_with(text, load)
        .map_err(|error| CellFailure::Input(error.to_string()))
        .and_then(|cell| narrows_sim::summarise(&cell, limits));
    match evaluated {
        Ok(summary) => Some(summary.to_json().to_string()),
        Err(CellFailure::Interrupted) => None,
        Err(failure) => {
            let error = json!({"kind": failure.kind(), "message": failure.to_string()});
            Some(json!({ "error": error }).to_string())
        }
    }
}
