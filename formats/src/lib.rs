//! Records of runs as files of other tools, and measurements of other tools as columns for records.
//!
//! ```text
//! record -> Packets -> streams (who repeated what) -> pcapng | qlog
//! pcapng | qlog | mahimahi's log -> both directions of packets, states -> record
//! ```
//!
//! Records contain when each packet was sent and when it arrived, but not its content. Additional data that other tools
//! need, above all positions in the byte stream, are reconstructed in `streams` from the counters of the senders and
//! the fates of the packets.
//!
//! Like the crates under `core/`, this one opens no file and reads no clock: it takes bytes and any
//! [`std::io::Write`].
#![forbid(unsafe_code)]

pub mod connections;
mod error;
pub mod import;
pub mod mahimahi;
mod packets;
pub mod pcapng;
pub mod qlog;
mod streams;
#[cfg(test)]
mod testing;
mod traffic;

pub use error::FormatError;
pub use traffic::Traffic;
