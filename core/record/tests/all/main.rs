//! Records, metrics and the verifier: one program, since each one of its own would take seconds to link. Every file of
//! this folder is a module here.

#![forbid(unsafe_code)]

mod degenerate;
mod files;
mod frames;
mod graph;
mod measures;
mod metrics;
mod reference;
mod time_scales;
mod verify;
