//! The agent as a black box: namespaces, rings, kernel TCP, tunnels and killed processes. One program, since separate
//! programs would take seconds each to link. Every file of this folder is a module here.

mod agreement;
mod bpf;
mod common;
mod ecn;
mod emulate;
mod failures;
mod programs;
mod shell;
mod side;
mod traffic;
mod tunnel;
mod tunnel_hostile;
mod tunnel_path;
mod watchdog;
