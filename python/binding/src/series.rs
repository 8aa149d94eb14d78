//! Series over time as dictionaries of numpy arrays.

use crate::errors::record_error;
use crate::open;
use narrows_record::{Record, RecordError, series};
use numpy::PyArray1;
use pyo3::IntoPyObject;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};

fn array(py: Python<'_>, values: Vec<f64>) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, values)
}

/// Columns by their names.
fn arrays<'py, K: IntoPyObject<'py>>(
    py: Python<'py>,
    columns: impl IntoIterator<Item = (K, Vec<f64>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, values) in columns {
        all.set_item(name, array(py, values))?;
    }
    Ok(all)
}

/// Reads the record in a folder with `of`, without the interpreter's lock.
fn read<T: Send>(
    py: Python<'_>,
    cell_dir: &Path,
    of: impl FnOnce(&Record) -> Result<T, RecordError> + Send,
) -> PyResult<T> {
    py.detach(|| of(&open(cell_dir)?).map_err(|e| record_error(cell_dir, e)))
}

/// Throughput in bins of `bin_ns`: `time_s`, `capacity_bps` (or None), and per flow `sent_bps` and
/// `arrived_bps` in the direction of its data.
#[pyfunction]
pub(crate) fn throughput_series(
    py: Python<'_>,
    cell_dir: PathBuf,
    bin_ns: u64,
) -> PyResult<Bound<'_, PyDict>> {
    let series = read(py, &cell_dir, |record| series::throughput(record, bin_ns))?;
    let flows = PyDict::new(py);
    for (flow, (sent, arrived)) in series.flows {
        let entry = arrays(py, [("sent_bps", sent), ("arrived_bps", arrived)])?;
        flows.set_item(flow, entry)?;
    }
    let all = arrays(py, [("time_s", series.time_s)])?;
    let capacity = series.capacity_bps.map(|bps| array(py, bps));
    all.set_item("capacity_bps", capacity)?;
    all.set_item("flows", flows)?;
    Ok(all)
}

/// One-way delays per flow at the time of arrival (`time_s`, `delay_ms`), thinned out to at most
/// `max_points` without losing extremes; None for records of bins.
#[pyfunction]
pub(crate) fn delay_points(
    py: Python<'_>,
    cell_dir: PathBuf,
    max_points: usize,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let points = read(py, &cell_dir, |record| {
        series::delay_points(record, max_points)
    })?;
    let Some(points) = points else {
        return Ok(None);
    };
    let all = PyDict::new(py);
    for (flow, points) in points {
        let columns = [("time_s", points.time_s), ("delay_ms", points.delay_ms)];
        all.set_item(flow, arrays(py, columns)?)?;
    }
    Ok(Some(all))
}

/// The samples of each queue: `time_s`, `backlog_bytes`, `backlog_packets`.
#[pyfunction]
pub(crate) fn queue_series(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (element, series) in read(py, &cell_dir, series::queues)? {
        let columns = [
            ("time_s", series.time_s),
            ("backlog_bytes", series.backlog_bytes),
            ("backlog_packets", series.backlog_packets),
        ];
        all.set_item(element, arrays(py, columns)?)?;
    }
    Ok(all)
}

/// The states of each sender: `time_s` and one array per quantity, NaN where it was not reported.
#[pyfunction]
pub(crate) fn state_series(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (flow, series) in read(py, &cell_dir, series::states)? {
        let time = std::iter::once(("time_s", series.time_s));
        all.set_item(flow, arrays(py, time.chain(series.columns))?)?;
    }
    Ok(all)
}

/// The frames of video as columns: `flow`, `frame`, `captured_s`, `bytes`, `key`, `discarded` (0 or 1), `arrived_s`
/// (NaN if it was never complete).
#[pyfunction]
pub(crate) fn frames(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    arrays(py, read(py, &cell_dir, series::frames)?)
}

/// The transfers of applications as columns: `flow`, `connection`, `transfer`, `bytes`, `started_s`,
/// and `ended_s`, NaN where a transfer was not complete at the end.
#[pyfunction]
pub(crate) fn transfers(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    arrays(py, read(py, &cell_dir, series::transfers)?)
}

/// The capacity of each bottleneck in bins of `bin_ns`: `time_s`, and `elements` with an array of bit/s for each whose
/// rate over time is known.
#[pyfunction]
pub(crate) fn capacity_series(
    py: Python<'_>,
    cell_dir: PathBuf,
    bin_ns: u64,
) -> PyResult<Bound<'_, PyDict>> {
    let (time, rates) = read(py, &cell_dir, |record| series::capacities(record, bin_ns))?;
    let all = arrays(py, [("time_s", time)])?;
    all.set_item("elements", arrays(py, rates)?)?;
    Ok(all)
}
