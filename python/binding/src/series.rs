//! Series over time as dictionaries of numpy arrays.

use crate::errors::record_error;
use crate::open;
use narrows_record::series;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

fn array(py: Python<'_>, values: Vec<f64>) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, values)
}

/// Throughput in bins of `bin_ns`: `time_s`, `capacity_bps` (or None), and per flow `sent_bps` and
/// `arrived_bps` in the direction of its data.
#[pyfunction]
pub(crate) fn throughput_series(
    py: Python<'_>,
    cell_dir: PathBuf,
    bin_ns: u64,
) -> PyResult<Bound<'_, PyDict>> {
    let series = py.detach(|| {
        series::throughput(&open(&cell_dir)?, bin_ns).map_err(|e| record_error(&cell_dir, e))
    })?;
    let flows = PyDict::new(py);
    for (flow, (sent, arrived)) in series.flows {
        let entry = PyDict::new(py);
        entry.set_item("sent_bps", array(py, sent))?;
        entry.set_item("arrived_bps", array(py, arrived))?;
        flows.set_item(flow, entry)?;
    }
    let all = PyDict::new(py);
    all.set_item("time_s", array(py, series.time_s))?;
    all.set_item(
        "capacity_bps",
        series.capacity_bps.map(|bps| array(py, bps)),
    )?;
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
    let points = py.detach(|| {
        let record = open(&cell_dir)?;
        series::delay_points(&record, max_points).map_err(|e| record_error(&cell_dir, e))
    })?;
    let Some(points) = points else {
        return Ok(None);
    };
    let all = PyDict::new(py);
    for (flow, points) in points {
        let entry = PyDict::new(py);
        entry.set_item("time_s", array(py, points.time_s))?;
        entry.set_item("delay_ms", array(py, points.delay_ms))?;
        all.set_item(flow, entry)?;
    }
    Ok(Some(all))
}

/// The samples of each queue: `time_s`, `backlog_bytes`, `backlog_packets`.
#[pyfunction]
pub(crate) fn queue_series(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let queues =
        py.detach(|| series::queues(&open(&cell_dir)?).map_err(|e| record_error(&cell_dir, e)))?;
    let all = PyDict::new(py);
    for (element, series) in queues {
        let entry = PyDict::new(py);
        entry.set_item("time_s", array(py, series.time_s))?;
        entry.set_item("backlog_bytes", array(py, series.backlog_bytes))?;
        entry.set_item("backlog_packets", array(py, series.backlog_packets))?;
        all.set_item(element, entry)?;
    }
    Ok(all)
}

/// The states of each sender: `time_s` and one array per quantity, NaN where it was not reported.
#[pyfunction]
pub(crate) fn state_series(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let states =
        py.detach(|| series::states(&open(&cell_dir)?).map_err(|e| record_error(&cell_dir, e)))?;
    let all = PyDict::new(py);
    for (flow, series) in states {
        let entry = PyDict::new(py);
        entry.set_item("time_s", array(py, series.time_s))?;
        for (name, column) in series.columns {
            entry.set_item(name, array(py, column))?;
        }
        all.set_item(flow, entry)?;
    }
    Ok(all)
}

/// The frames of video as columns: `flow`, `frame`, `captured_s`, `bytes`, `key`, `discarded` (0 or 1),
/// `arrived_s` (NaN if it was never whole).
#[pyfunction]
pub(crate) fn frames(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let columns =
        py.detach(|| series::frames(&open(&cell_dir)?).map_err(|e| record_error(&cell_dir, e)))?;
    let all = PyDict::new(py);
    for (name, values) in columns {
        all.set_item(name, array(py, values))?;
    }
    Ok(all)
}

/// The transfers of applications as columns: `flow`, `connection`, `transfer`, `bytes`, `started_s`,
/// and `ended_s`, NaN where a transfer was not complete at the end.
#[pyfunction]
pub(crate) fn transfers(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let columns =
        py.detach(|| series::transfers(&open(&cell_dir)?).map_err(|e| record_error(&cell_dir, e)))?;
    let all = PyDict::new(py);
    for (name, values) in columns {
        all.set_item(name, array(py, values))?;
    }
    Ok(all)
}

/// What each bottleneck could carry in bins of `bin_ns`: `time_s`, and `elements` with an array of
/// bit/s for each whose rate over time is known.
#[pyfunction]
pub(crate) fn capacity_series(
    py: Python<'_>,
    cell_dir: PathBuf,
    bin_ns: u64,
) -> PyResult<Bound<'_, PyDict>> {
    let (time, rates) = py.detach(|| {
        series::capacities(&open(&cell_dir)?, bin_ns).map_err(|e| record_error(&cell_dir, e))
    })?;
    let elements = PyDict::new(py);
    for (name, bps) in rates {
        elements.set_item(name, array(py, bps))?;
    }
    let all = PyDict::new(py);
    all.set_item("time_s", array(py, time))?;
    all.set_item("elements", elements)?;
    Ok(all)
}
