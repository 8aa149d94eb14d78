//! Logs of the measuring tunnel without a record: times and sizes of arrivals.

use narrows_tunnel::log::{LogKind, decode};
use numpy::PyArray1;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::path::PathBuf;

type Column<'py> = Bound<'py, PyArray1<i64>>;

/// The arrivals at one end from its log at `path`: times of sending and of arrival in ns, each by the clock of the
/// respective end, and sizes of the IP packets in bytes; and the problem with the rest of the log, if any.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn tunnel_arrivals(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Column<'_>, Column<'_>, Column<'_>, Option<String>)> {
    let (rows, problem) = py
        .detach(|| {
            let bytes = narrows_cell::read_regular(&path)?;
            let mut rows = Vec::new();
            let problem = decode(LogKind::Arrived, &bytes, &mut rows).err();
            Ok::<_, std::io::Error>((rows, problem.map(|problem| problem.to_string())))
        })
        .map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))?;
    let column = |value: fn(&narrows_tunnel::log::TunnelLogRow) -> u64| {
        // No clock counts 292 years, and a damaged log fails its checksum.
        let values = rows.iter().map(|row| value(row).cast_signed()).collect();
        PyArray1::from_vec(py, values)
    };
    Ok((
        column(|row| row.sent.ns()),
        column(|row| row.arrived.ns()),
        column(|row| u64::from(row.size)),
        problem,
    ))
}
