//! Our congestion controls for the Linux kernel, and what the object file of any such program says.
//!
//! A program is one C file, `src/c/NAME.bpf.c`. The build compiles it (see `build.rs`) and embeds the
//! object; the folder is the registry. What is called `bpf:NAME` in scenarios follows the same rules as the native scheme
//! NAME and shares its parameters: those for which it has a constant `param_NAME`.
//!
//! ```text
//! src/c/vegas.bpf.c --clang--> object --embedded--> registry, agent
//!                                                     |
//!                        narrows-bpf (loader/) <------+   object, constants
//!                              |
//!                              v  libbpf
//!                           kernel: TCP_CONGESTION "nw_vegas", until the loader ends
//! ```
//!
//! Nothing is loaded here: this crate only reads. Loading is the job of a program of its own
//! ([`protocol`], `loader/`), because it needs libelf, rights, and an end that takes everything
//! along.
#![forbid(unsafe_code)]

mod btf;
mod elf;
mod object;
mod page;
pub mod programs;
pub mod protocol;

pub use object::{Object, ObjectError};
pub use programs::{ALL, Program, find};
