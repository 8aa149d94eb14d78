//! Records, metrics and the verifier in one program, since separate programs would take seconds each to link. Every
//! file of this folder is a module here.

#![forbid(unsafe_code)]

mod degenerate;
mod files;
mod frames;
mod graph;
mod measures;
mod metrics;
mod reference;
mod responsiveness;
mod time_scales;
mod verify;
