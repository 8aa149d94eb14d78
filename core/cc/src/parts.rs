//! Components shared by several schemes.

pub mod bbr;
mod coarse_clock;
mod congestion_window;
mod cube_root;
pub mod datagrams;
pub mod exp_log;
pub mod gradient;
mod hystart;
mod hystart_pp;
mod ledbat_delays;
mod limited_slow_start;
mod liveness_timer;
mod loss_based;
mod lstm;
pub mod model_file;
pub mod monitor_interval;
pub mod neural_policy;
pub mod probe_intervals;
mod rtt_rounds;
pub mod rule_table;
mod spline;
mod step_clock;
mod windowed_min;

pub use coarse_clock::CoarseClock;
pub use congestion_window::CongestionWindow;
pub use cube_root::{cube_root, rough_cube_root};
pub use hystart::{Detect as HyStartDetect, HyStart};
pub use hystart_pp::{HyStartPp, HyStartStep};
pub use ledbat_delays::{BaseDelays, CurrentDelays};
pub use limited_slow_start::LimitedSlowStart;
pub use liveness_timer::LivenessTimer;
pub use loss_based::{CongestionEvent, LossBased, ReductionCause, WindowRules};
pub use lstm::Lstm;
#[cfg(test)]
pub(crate) use rtt_rounds::play_round;
pub use rtt_rounds::{RttRound, RttRounds};
pub use spline::SmoothingSpline;
pub use step_clock::StepClock;
pub use windowed_min::WindowedMin;
