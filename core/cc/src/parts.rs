//! Parts that several schemes are made of.

pub mod bbr;
mod classic;
mod coarse_clock;
mod cube_root;
mod delay;
pub mod gradient;
mod hystart;
mod hystart_pp;
mod limited_slow_start;
mod lstm;
pub mod math;
mod minima;
pub mod model;
pub mod monitor;
pub mod policy;
pub mod rule_table;
mod silence;
mod spline;
mod window;
mod window_min;

pub use classic::{Cause, Classic, Congestion, Rules};
pub use coarse_clock::CoarseClock;
pub use cube_root::{cube_root, rough_cube_root};
#[cfg(test)]
pub(crate) use delay::play_round;
pub use delay::{RttRound, RttRounds};
pub use hystart::{Detect as HyStartDetect, HyStart, Sample as HyStartSample};
pub use hystart_pp::{HyStartPp, Step as HyStartStep};
pub use limited_slow_start::LimitedSlowStart;
pub use lstm::Lstm;
pub use minima::{RecentMin, SlotMinima};
pub use silence::Silence;
pub use spline::SmoothingSpline;
pub use window::Window;
pub use window_min::WindowMin;
