//! Runs between two hosts over the real path: the tunnel, the peers that play one end of a run each, the
//! examination of the path, and the record that is made of what both peers have written.
#![forbid(unsafe_code)]

pub mod archive;
mod merge;
pub mod path_probe;
pub mod peer;
pub mod timekeeping;
pub mod tunnel;

pub use merge::side_record;
