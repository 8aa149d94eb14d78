//! Our congestion controls for the Linux kernel as far as their source text tells, and what the object file of any
//! such program says. Nothing is compiled or loaded here: that is the work of `narrows-bpf` and its loader.
//!
//! A program is one C file, `bpf/src/c/NAME.bpf.c`; the folder is the registry. What is called `bpf:NAME` in scenarios
//! follows the same rules as the native scheme NAME and shares its parameters: those for which it has a `PARAM(NAME, ...)`.
#![forbid(unsafe_code)]

mod btf;
mod object;
mod page;
mod programs;
pub mod protocol;

pub use object::{Object, ObjectError};
pub use programs::{ALL, PARAM, Program, encode, find};
