//! Pantheon's logs in one program, since separate programs would take seconds each to link. Every file of this folder
//! is a module here.

#![forbid(unsafe_code)]

mod common;
mod flaws;
mod logs;
mod records;
mod trips;
