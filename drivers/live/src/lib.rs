//! The live driver: the same state machines as in the simulator, on the machine's clock.
#![deny(unsafe_code)]

pub mod emulator;
mod error;
pub mod hosts;
#[allow(unsafe_code)]
pub mod sys;

pub use error::LiveError;
