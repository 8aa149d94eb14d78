//! Episodes of learning environments: simulated worlds that pause at each decision of their agents.
//!
//! An agent is a flow whose scheme leaves its decisions to the caller. [`Worlds`] holds many episodes and advances all of
//! them with one call, on several threads; the results do not depend on their number. Nothing is recorded: an episode is
//! its cell and its seed, from which the simulator makes the record again.
#![forbid(unsafe_code)]

mod actions;
mod episode;
mod oracle;
mod path_facts;
mod policies;
mod reward;
mod step_counters;
mod worlds;

pub use actions::ActionSpace;
pub use episode::Ending;
pub use policies::Policies;
pub use reward::Reward;
pub use step_counters::{COUNTERS, Facts};
pub use worlds::{Course, Outputs, Worlds};
