//! The live driver: the same state machines as in the simulator, on the machine's clock.
#![deny(unsafe_code)]

pub mod between;
pub mod bpf;
mod crew;
pub mod emulator;
pub mod endpoints;
mod error;
pub mod facts;
pub mod held;
pub mod hosts;
mod judge;
pub mod pack;
mod run;
pub mod shell;
pub mod side;
mod side_record;
#[allow(unsafe_code)]
pub mod sys;
pub mod timekeeping;
mod told;
pub mod tunnel;

pub use error::LiveError;
pub use run::{Surroundings, emulate};
pub use side_record::side_record;
