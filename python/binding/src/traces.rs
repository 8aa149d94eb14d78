//! Traces in parquet files, for the commands that show and convert them.

use narrows_record::{RecordError, StepSeries};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Error};
use std::path::{Path, PathBuf};

type Column<'py> = Bound<'py, PyArray1<u64>>;

/// Times (ns) and values of the trace in the parquet file at `path`, and the name of the column of
/// values: `rate_bps` or `delay_ns`.
#[pyfunction]
pub(crate) fn read_trace(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Column<'_>, Column<'_>, &'static str)> {
    let steps = py.detach(|| {
        let content = narrows_cell::read_regular(&path).map_err(|error| os_error(&path, &error))?;
        StepSeries::read(content.into()).map_err(|error| trace_error(&path, error))
    })?;
    Ok((
        PyArray1::from_vec(py, steps.times_ns),
        PyArray1::from_vec(py, steps.values),
        steps.value,
    ))
}

/// Writes times (ns) and values (`rate_bps` or `delay_ns`) into a parquet file at `path`.
#[pyfunction]
pub(crate) fn write_trace(
    path: PathBuf,
    time_ns: PyReadonlyArray1<'_, i64>,
    values: PyReadonlyArray1<'_, i64>,
    name: &str,
) -> PyResult<()> {
    let value = StepSeries::VALUES.into_iter().find(|known| *known == name);
    let value = value.ok_or_else(|| {
        PyValueError::new_err(format!(
            "unknown column '{name}'; known: {:?}",
            StepSeries::VALUES
        ))
    })?;
    let column = |values: PyReadonlyArray1<'_, i64>| {
        let values = values.as_array();
        let whole: Result<Vec<u64>, _> = values.iter().map(|&value| u64::try_from(value)).collect();
        whole.map_err(|_| PyValueError::new_err("times and values must not be negative"))
    };
    let steps = StepSeries {
        value,
        times_ns: column(time_ns)?,
        values: column(values)?,
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
