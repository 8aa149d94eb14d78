//! The simulator: a virtual clock over the core.
//!
//! The world has one pending event for the network, the sampler, each application and each endpoint, never one per
//! packet in flight. A [`Wakeups`] tree contains the earliest; the loop advances to it, lets that part act, and updates
//! its next wake-up. Nothing is allocated per packet: packets are small and `Copy`, and their contents are in reused
//! slots.
//!
//! All endpoints are one list of [`narrows_cell::Machine`]s, driven through [`narrows_transport::Endpoint`].
//!
//! The same cell results in the same bytes: time is virtual, random numbers come from named streams, and ties are
//! broken by the fixed order of the parts.
#![forbid(unsafe_code)]

mod applications;
mod batch;
mod decisions;
mod endpoint_state;
mod flow;
mod packet;
mod packet_exchange;
pub mod parallel;
mod payloads;
mod run;
mod samples;
mod scheduling_noise;
mod submission;
mod transfers;
mod transit;
mod wakeup_clock;
mod world;

pub use batch::{
    CellFailure, Limits, Summary, run_to_record, run_to_record_deciding, summarise,
    summarise_deciding,
};
pub use decisions::{Decide, Decision};
pub use narrows_units::Wakeups;
pub use packet_exchange::RunTotals;
pub use run::{SimError, run, run_in_memory};
pub use submission::submission;
pub use world::World;
