//! Logs of senders: qlog (draft-ietf-quic-qlog-main-schema, version 0.4), as JSON text sequences (RFC 7464).
//!
//! A file is a header and then one event per record, each after a record separator. Times are milliseconds.

mod read;
mod write;

pub use read::{Log, read};
pub use write::{Header, Written, write};

/// Begins a record of a JSON text sequence.
const SEPARATOR: u8 = 0x1e;
