//! Facts about our congestion controls for the Linux kernel from their source text, and a reader of object files of
//! such programs. Nothing is compiled or loaded here: that is done by `narrows-bpf` and its loader.
//!
//! A program is one C file, `bpf/src/c/NAME.bpf.c`; the folder is the registry. `bpf:NAME` in scenarios follows the
//! same rules as the native scheme NAME and shares those of its parameters for which the C file has a `PARAM(NAME,
//! ...)`.
#![forbid(unsafe_code)]

mod btf;
mod object;
mod page;
mod programs;
pub mod protocol;

pub use object::{Object, ObjectError};
pub use programs::{ALL, PARAM, Program, encode, find};
