//! Pantheon's logs: one program, since each one of its own would take seconds to link. Every file of this folder is a
//! module here.

#![forbid(unsafe_code)]

mod common;
mod flaws;
mod logs;
mod records;
mod trips;
