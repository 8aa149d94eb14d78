//! The emulator: the network of a cell on the machine's clock.

#[cfg(test)]
mod conformance;
mod core;
pub mod frame;
mod pool;
mod sleep;
#[cfg(test)]
mod tests;
mod thread;
mod writer;

pub use self::core::{Core, Handle, KnownFlow, Purpose, Refused, Switching};
pub use pool::Pool;
pub(crate) use sleep::Sleep;
pub use thread::{Control, Effort, Emulator, Report, Wire};
pub use writer::Writer;
