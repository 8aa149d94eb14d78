//! Contents of the files named by parameters.

use crate::{FileRef, ParamError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// File contents by the SHA-256 of the original file. The core reads no files; drivers read them once, before anything
/// is built.
#[derive(Clone, Debug, Default)]
pub struct Files {
    contents: BTreeMap<String, Arc<[u8]>>,
}

impl Files {
    /// Provides the content of a file.
    pub fn insert(&mut self, sha256: &str, content: Vec<u8>) {
        self.contents.insert(sha256.to_owned(), content.into());
    }

    /// The content of `file`, if it was provided.
    pub fn get(&self, file: &FileRef) -> Option<&[u8]> {
        self.contents.get(&file.sha256).map(|content| &**content)
    }

    /// Like [`Files::get`], with an error message if the file is missing.
    ///
    /// # Errors
    /// If it was not provided.
    pub fn content(&self, file: &FileRef) -> Result<&[u8], ParamError> {
        self.get(file).ok_or_else(|| {
            ParamError::Conflict(format!(
                "the content of the file '{}' is not at hand",
                file.name
            ))
        })
    }
}
