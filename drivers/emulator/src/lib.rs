//! The emulator: the network of a cell on the machine's clock.
#![forbid(unsafe_code)]

mod clock;
#[cfg(test)]
mod conformance;
mod core;
pub mod frame;
mod hooks;
mod pool;
mod sleep;
pub mod testing;
#[cfg(test)]
mod tests;
mod thread;
mod writer;

pub use self::core::{Core, CoreConfig, FlowEntry, Forwarding, Handle};
pub use clock::Clock;
pub use hooks::{Hooks, Injection, Transit};
pub use pool::Pool;
pub use thread::{Control, Emulator, Report, Wire};
pub use writer::Writer;
