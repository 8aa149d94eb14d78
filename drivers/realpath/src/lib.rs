//! Runs between two hosts over the real path: the tunnel, the peers that run one end each, the examination of the path,
//! and the record made from the files of both peers.
#![forbid(unsafe_code)]

pub mod archive;
mod merge;
pub mod path_probe;
pub mod peer;
pub mod timekeeping;
pub mod tunnel;

pub use merge::side_record;
