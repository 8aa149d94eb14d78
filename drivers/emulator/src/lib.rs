//! The emulator: the network of a cell on the machine's clock.
#![forbid(unsafe_code)]

mod admission;
mod clock;
#[cfg(test)]
mod conformance;
mod control;
mod core;
mod core_config;
pub mod frame;
mod handle;
mod hooks;
mod live;
mod merge;
mod pool;
mod report;
mod sleep;
mod split;
mod steering;
pub mod testing;
#[cfg(test)]
mod tests;
mod thread;
mod writer;

pub use self::core::Core;
pub use clock::Clock;
pub use control::Control;
pub use core_config::{CoreConfig, FlowEntry, Forwarding, OwnHosts};
pub use handle::Handle;
pub use hooks::{Hooks, Injection, Transit};
pub use live::{ElementReading, FlowReading, Gauges, LiveHooks};
pub use pool::Pool;
pub use report::Report;
pub use split::split;
pub use steering::{Course, Settled, Steering};
pub use thread::{Emulator, Wires};
pub use writer::Writer;
