//! The results of a campaign, columns of Python objects, as a parquet file.

use narrows_record::{NamedValues, encode_columns};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// A parquet file of `columns`, each a name, a type (`text`, `integer`, `number` or `flag`) and a value or None for
/// each row, with `entries` in its footer. Raises `ValueError` if lengths differ, `TypeError` or `OverflowError` if a
/// value is not of its column's type.
#[pyfunction]
pub(crate) fn encode_table<'py>(
    py: Python<'py>,
    columns: Vec<(String, String, Bound<'py, PyList>)>,
    entries: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let columns = columns.into_iter().map(|(name, kind, rows)| {
        let values = match kind.as_str() {
            "text" => NamedValues::Text(rows.extract()?),
            "integer" => NamedValues::Integers(rows.extract()?),
            "number" => NamedValues::Numbers(rows.extract()?),
            "flag" => NamedValues::Flags(rows.extract()?),
            _ => return Err(PyValueError::new_err(format!("no type of columns: {kind}"))),
        };
        Ok((name, values))
    });
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    let content = py.detach(|| encode_columns(columns, &entries));
    let content = content.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &content))
}
