//! Errors of the core as Python exceptions.

use narrows_cell::{CellError, FolderError};
use narrows_formats::FormatError;
use narrows_record::RecordError;
use narrows_sim::SimError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use std::path::Path;

/// A cell that cannot run.
pub(crate) fn cell_error(error: CellError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A record that cannot be read or written.
pub(crate) fn folder_error(error: FolderError) -> PyErr {
    let text = error.to_string();
    match error {
        FolderError::Record {
            error: RecordError::Data { .. },
            ..
        } => PyValueError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

/// A record in `folder` with invalid content.
pub(crate) fn record_error(folder: &Path, error: RecordError) -> PyErr {
    folder_error(FolderError::Record {
        folder: folder.to_owned(),
        error,
    })
}

/// A simulation that did not complete.
pub(crate) fn sim_error(error: SimError) -> PyErr {
    match error {
        SimError::Cell(error) => cell_error(error),
        SimError::Folder(error) => folder_error(error),
        SimError::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
    }
}

/// An error in the content of `path`.
pub(crate) fn input_error(path: &Path, error: FormatError) -> PyErr {
    PyValueError::new_err(format!("{}: {error}", path.display()))
}
