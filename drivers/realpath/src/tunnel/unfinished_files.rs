//! Files of an end that have a temporary name until they are complete.

use narrows_cell::{Context, RunError};
use std::fs;
use std::path::{Path, PathBuf};

/// The temporary name of a file while it is written.
pub(super) fn unfinished(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part"))
}

/// Writes a file under a temporary name and renames it.
pub(crate) fn save(folder: &Path, name: &str, text: &str) -> Result<(), RunError> {
    let path = folder.join(name);
    let unfinished = unfinished(folder, name);
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &path))
        .at(&path)
}
