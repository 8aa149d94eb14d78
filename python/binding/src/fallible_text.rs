//! Text for Python.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Text of any length. Where memory runs out its conversion raises `MemoryError`; that of a `String` panics.
pub(crate) struct Text(pub(crate) String);

impl<'py> IntoPyObject<'py> for Text {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyString::from_bytes(py, self.0.as_bytes())
    }
}
