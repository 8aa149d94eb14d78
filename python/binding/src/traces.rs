//! Traces in parquet files, for the commands that show and convert them.

use narrows_record::{RecordError, Steps};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Error};
use std::path::{Path, PathBuf};

type Column<'py> = Bound<'py, PyArray1<u64>>;

/// Times (ns) and rates (bit/s) of the trace in the parquet file at `path`.
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<(Column<'_>, Column<'_>)> {
    let steps = py.detach(|| {
        let content = std::fs::read(&path).map_err(|error| os_error(&path, &error))?;
        Steps::read(content.into()).map_err(|error| trace_error(&path, error))
    })?;
    if steps.value != "rate_bps" {
        let problem = format!("it holds {}, not rate_bps", steps.value);
        return Err(trace_error(&path, RecordError::data("trace", problem)));
    }
    Ok((
        PyArray1::from_vec(py, steps.times_ns),
        PyArray1::from_vec(py, steps.values),
    ))
}

/// Writes times (ns) and rates (bit/s) into a parquet file at `path`.
#[pyfunction]
pub(crate) fn write_trace(
    path: PathBuf,
    time_ns: PyReadonlyArray1<'_, i64>,
    rate_bps: PyReadonlyArray1<'_, i64>,
) -> PyResult<()> {
    let column = |values: PyReadonlyArray1<'_, i64>| {
        let values = values.as_array();
        let whole: Result<Vec<u64>, _> = values.iter().map(|&value| u64::try_from(value)).collect();
        whole.map_err(|_| PyValueError::new_err("times and rates must not be negative"))
    };
    let steps = Steps {
        value: "rate_bps",
        times_ns: column(time_ns)?,
        values: column(rate_bps)?,
    };
    let file = File::create(&path).map_err(|error| os_error(&path, &error))?;
    let written = steps.write(BufWriter::new(file));
    written.map_err(|error| trace_error(&path, error))?;
    Ok(())
}

fn os_error(path: &Path, error: &Error) -> PyErr {
    PyOSError::new_err(format!("{}: {error}", path.display()))
}

fn trace_error(path: &Path, error: RecordError) -> PyErr {
    match error {
        RecordError::Io(error) => os_error(path, &error),
        RecordError::Data { problem, .. } | RecordError::Encode(problem) => {
            PyValueError::new_err(format!("{}: {problem}", path.display()))
        }
    }
}
