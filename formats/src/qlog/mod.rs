//! Logs of senders: qlog (draft-ietf-quic-qlog-main-schema), read in all its drafts, written as version 0.4 in JSON text
//! sequences (RFC 7464).
//!
//! A file is a header and then one event per record, each after a record separator. Times are milliseconds.

mod clock;
mod connection;
mod event;
mod lenient;
mod log;
mod ranges;
mod read;
mod text;
mod write;

pub use log::{Log, Matters, UnreadKind};
pub use read::read;
pub use write::{Header, Written, write};

/// Begins a record of a JSON text sequence.
const SEPARATOR: u8 = 0x1e;
