//! The extension module `narrows._native`: simulate, read records, measure, verify.
//!
//! Few functions, each a thin layer over the core: documents go in and out as JSON text, series as numpy arrays, never
//! a Python object per packet. The interpreter lock is released while Rust works. Bad data raises `ValueError`,
//! problems with files `OSError`, each with one sentence.
#![forbid(unsafe_code)]
// Arguments are passed by value from Python, errors by value from `map_err`.
#![allow(clippy::needless_pass_by_value)]

mod batch;
mod captures;
mod errors;
mod fallible_text;
mod formats;
mod gym;
mod learn;
mod packets;
mod pantheon;
mod probe;
mod results_parquet;
mod series;
mod traces;
mod tunnel;

use errors::{cell_error, folder_error};
use fallible_text::Text;
use narrows_allocator::ExitingAllocator;
use narrows_record::{Record, metrics, verify};
use narrows_units::Time;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two reports of a simulation's progress.
const TELL: Duration = Duration::from_millis(200);

#[global_allocator]
static ALLOCATOR: ExitingAllocator = ExitingAllocator;

/// Reads the record in `folder`.
fn open(folder: &Path) -> PyResult<Record> {
    narrows_cell::open_record(folder).map_err(folder_error)
}

/// The native core of Narrows.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::batch::simulate_summaries;
    #[pymodule_export]
    use super::captures::{CaptureView, Connection, read_capture, relate};
    #[pymodule_export]
    use super::formats::{
        export_csv, export_pcapng, export_qlog, import_bins, import_packets, read_mahimahi,
        read_qlog,
    };
    #[pymodule_export]
    use super::gym::{Policies, Worlds, gym_counters, gym_rewards};
    #[pymodule_export]
    use super::learn::{Training, score_model, score_rules};
    #[pymodule_export]
    use super::packets::packets;
    #[pymodule_export]
    use super::pantheon::{export_pantheon, import_pantheon};
    #[pymodule_export]
    use super::probe::probe_element;
    #[pymodule_export]
    use super::results_parquet::encode_table;
    #[pymodule_export]
    use super::series::{
        capacity_series, delay_points, frames, queue_series, state_series, throughput_series,
        transfers,
    };
    #[pymodule_export]
    use super::traces::{read_trace, write_trace};
    #[pymodule_export]
    use super::tunnel::tunnel_arrivals;
    #[pymodule_export]
    use super::{
        answer_states, bounds, bpf_object_name, check_element, check_scheme, git, measure,
        metrics_registry, registry, simulate, verify_record, version,
    };
}

/// Version of the core.
#[pyfunction]
fn version() -> &'static str {
    narrows_cell::VERSION
}

/// The hash of the source tree that was built, if it was known at build time.
#[pyfunction]
fn git() -> Option<&'static str> {
    narrows_cell::GIT
}

/// All entries that scenarios may name, as JSON.
#[pyfunction]
fn registry() -> Text {
    Text(narrows_cell::registry().to_string())
}

/// The reason why an element (JSON object, base units) cannot be built; `None` if it can. `files` has the contents of
/// the files that it names, by their SHA-256.
#[pyfunction]
#[pyo3(signature = (element_json, files = None))]
fn check_element(
    element_json: &str,
    files: Option<std::collections::BTreeMap<String, Vec<u8>>>,
) -> PyResult<Option<String>> {
    let object = serde_json::from_str(element_json)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    let mut setup = narrows_net::ElementSetup::new(0, "element");
    for (sha256, content) in files.unwrap_or_default() {
        match narrows_cell::as_text(content) {
            Ok(content) => setup.files.insert(&sha256, content),
            Err(problem) => return Ok(Some(problem)),
        }
    }
    Ok(match narrows_net::check_element(&object, &setup) {
        Ok(()) => None,
        // The caller knows the position and reports it better.
        Err(narrows_net::NetworkError::Build { error, .. }) => Some(error.to_string()),
        Err(error) => Some(error.to_string()),
    })
}

/// The reason why a scheme cannot be built with these parameters (JSON object, base units); `None` if it can. `files`
/// has the contents of the files that they name, by their SHA-256. With `decided_outside` the caller will make its
/// decisions.
#[pyfunction]
#[pyo3(signature = (name, params_json, files, decided_outside = false))]
fn check_scheme(
    name: &str,
    params_json: &str,
    files: std::collections::BTreeMap<String, Vec<u8>>,
    decided_outside: bool,
) -> PyResult<Option<String>> {
    let params = serde_json::from_str(params_json)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    let mut contents = narrows_net::Files::default();
    for (sha256, content) in files {
        contents.insert(&sha256, content);
    }
    Ok(
        match narrows_cell::check_scheme(name, &params, &contents, decided_outside) {
            Ok(()) => None,
            // The caller knows the position and reports it better.
            Err(narrows_cell::CellError::Params { error, .. }) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        },
    )
}

/// The name of the congestion control in the content of a BPF object file.
#[pyfunction]
fn bpf_object_name(content: &[u8]) -> PyResult<String> {
    let object = narrows_bpf_programs::Object::parse(content);
    let object =
        object.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    Ok(object.name().to_owned())
}

/// The bounds of the flows of a cell (JSON text), as JSON: `flows` has the number of each flow and `by`, its bound as
/// part of a sentence, or null; `refusal` says why the cell must not be simulated, or is null.
#[pyfunction]
fn bounds(cell_json: &str) -> PyResult<Text> {
    let cell = narrows_cell::Cell::parse(cell_json).map_err(cell_error)?;
    let flows: Vec<_> = cell
        .bounds()
        .into_iter()
        .map(|bound| serde_json::json!({"flow": bound.flow, "by": bound.by}))
        .collect();
    let bounds = serde_json::json!({"flows": flows, "refusal": cell.unbounded()});
    Ok(Text(bounds.to_string()))
}

/// Simulate a cell (JSON text), write its record to `out_dir`, and return the text of `run.json`.
/// `files_dir` has the files that the cell names; `tell` gets the simulated time and its end, in nanoseconds, five times
/// a second.
#[pyfunction]
#[pyo3(signature = (cell_json, out_dir, files_dir = None, tell = None))]
fn simulate(
    py: Python<'_>,
    cell_json: &str,
    out_dir: PathBuf,
    files_dir: Option<PathBuf>,
    tell: Option<Py<PyAny>>,
) -> PyResult<Text> {
    let folder = files_dir.unwrap_or_default();
    let load = |json: &serde_json::Value| narrows_cell::load_files(json, &folder);
    let cell = narrows_cell::Cell::parse_with(cell_json, load).map_err(cell_error)?;
    // A signal (Ctrl-C) must not wait for the end of a long simulation.
    let mut interrupt: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let mut told = Instant::now();
        let mut progress = |time: Time| match Python::attach(|py| {
            if let Some(tell) = &tell
                && told.elapsed() >= TELL
            {
                told = Instant::now();
                tell.call1(py, (time.ns(), cell.duration.ns()))?;
            }
            py.check_signals()
        }) {
            Ok(()) => true,
            Err(error) => {
                interrupt = Some(error);
                false
            }
        };
        narrows_sim::run(&cell, &out_dir, &mut progress)
    });
    if let Some(error) = interrupt {
        return Err(error);
    }
    outcome
        .map(|run| Text(run.to_text()))
        .map_err(errors::sim_error)
}

/// All metrics of the record in `cell_dir`, as JSON.
#[pyfunction]
fn measure(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Text> {
    py.detach(|| {
        let record = open(&cell_dir)?;
        let measured = metrics::measure(&record);
        measured
            .map(|json| Text(json.to_string()))
            .map_err(|e| errors::record_error(&cell_dir, e))
    })
}

/// Answers to questions about modes and values of senders in the record in `cell_dir`: a JSON list of questions, and
/// one object for each with its `value` or the reason why it is `absent`.
#[pyfunction(name = "states")]
fn answer_states(py: Python<'_>, cell_dir: PathBuf, questions: &str) -> PyResult<Text> {
    let questions: Vec<metrics::states::StateQuestion> = serde_json::from_str(questions)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    py.detach(|| {
        let record = open(&cell_dir)?;
        metrics::states::answer(&record, &questions)
            .map(|json| Text(json.to_string()))
            .map_err(|e| errors::record_error(&cell_dir, e))
    })
}

/// The descriptions of all metrics, as JSON.
#[pyfunction(name = "metrics")]
fn metrics_registry() -> Text {
    Text(metrics::registry().to_string())
}

/// Whether the record in `cell_dir` is possible at all, check by check, as JSON.
#[pyfunction(name = "verify")]
fn verify_record(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Text> {
    py.detach(|| {
        let checks = verify::verify(&open(&cell_dir)?).to_json();
        Ok(Text(checks.to_string()))
    })
}
