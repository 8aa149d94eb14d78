//! A checksum over the body of each columnar file, kept in its footer, so that a damaged file can
//! be distinguished from a tampered or wrong one before any decoder sees it.
//!
//! It is the 64-bit xxHash (Collet) of all bytes before the footer, in hexadecimal. Files without
//! the entry (written by other programs) are read without this check.

use std::hash::Hasher;
use std::io::Write;
use twox_hash::XxHash64;

/// Name of the entry in the footer's key-value metadata.
pub(crate) const KEY: &str = "narrows.body.xxh64";

/// A writer that computes the checksum of everything written through it.
pub(crate) struct Summing<W> {
    inner: W,
    hash: XxHash64,
}

impl<W: Write> Summing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Summing {
            inner,
            hash: XxHash64::with_seed(0),
        }
    }

    pub(crate) fn sum(&self) -> String {
        text(self.hash.finish())
    }

    pub(crate) fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// The checksum of `bytes`.
pub(crate) fn compute(bytes: &[u8]) -> String {
    text(XxHash64::oneshot(0, bytes))
}

fn text(hash: u64) -> String {
    format!("{hash:016x}")
}
