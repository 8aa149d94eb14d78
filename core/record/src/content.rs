//! The content of one part of a record: a file that somebody has written, or rows that nobody has.

use bytes::Bytes;
use std::sync::Arc;

/// One part of a record. What is made of it (metrics, findings) does not depend on which of the two it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<R> {
    /// The bytes of a file.
    File(Bytes),
    /// Rows, or chunks of packets, in the order in which the file would have them.
    Rows(Arc<Vec<R>>),
}

impl<R> Content<R> {
    /// The bytes of the file; `None` if there is none.
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
