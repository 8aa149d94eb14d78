//! The content of one part of a record: a written file, or rows that were never written.

use bytes::Bytes;
use std::sync::Arc;

/// One part of a record. Results (metrics, findings) do not depend on which of the two it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<R> {
    /// The bytes of a file.
    File(Bytes),
    /// Rows, or chunks of packets, in the order of the file.
    Rows(Arc<Vec<R>>),
}

impl<R> Content<R> {
    /// The bytes of the file; `None` for rows that were never written.
    pub fn file(&self) -> Option<&Bytes> {
        match self {
            Content::File(bytes) => Some(bytes),
            Content::Rows(_) => None,
        }
    }
}

impl<R> From<Bytes> for Content<R> {
    fn from(bytes: Bytes) -> Self {
        Content::File(bytes)
    }
}

impl<R> From<Vec<u8>> for Content<R> {
    fn from(bytes: Vec<u8>) -> Self {
        Content::File(bytes.into())
    }
}
