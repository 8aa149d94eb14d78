//! The live driver: the same state machines as in the simulator, on the machine's clock.
#![deny(unsafe_code)]

pub mod between;
pub mod bpf;
pub mod emulator;
pub mod endpoints;
mod error;
pub mod facts;
pub mod held;
pub mod hosts;
mod judge;
mod run;
pub mod shell;
#[allow(unsafe_code)]
pub mod sys;
pub mod tunnel;

pub use error::LiveError;
pub use run::{Surroundings, emulate};
