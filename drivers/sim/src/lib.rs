//! The simulator: a virtual clock over the core.
//!
//! The world has one pending event for the network, per endpoint and for sampler and applications,
//! never one per packet in flight. A [`Wakeups`] tree names the earliest; the loop jumps there, lets that part
//! act, and asks it when it wants to act next. Nothing is allocated per packet: packets are small
//! and `Copy`, and the variable parts of acknowledgements and of messages of real-time schemes live in reused
//! slots.
//!
//! The same cell gives the same bytes: time is virtual, chance comes from named streams, and ties
//! are broken by the fixed order of the parts.
#![forbid(unsafe_code)]

mod applications;
mod endpoints;
mod flow;
mod media;
mod packet;
mod payloads;
mod run;
mod scheduling_noise;
mod world;

pub use narrows_units::Wakeups;
pub use run::{SimError, run, run_in_memory};
pub use world::{RunTotals, World};
