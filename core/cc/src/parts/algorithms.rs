//! Windows, rounds, clocks, intervals and policies, as schemes assemble them.

pub mod actions;
pub mod bbr;
mod coarse_clock;
mod congestion_window;
pub mod datagrams;
pub mod gradient;
mod hystart;
mod hystart_pp;
mod ledbat_delays;
mod limited_slow_start;
mod liveness_timer;
mod loss_based;
pub mod monitor_interval;
pub mod neural_policy;
pub mod observations;
mod policy;
pub mod probe_intervals;
mod rtt_rounds;
mod step_clock;
pub mod step_rules;

pub use coarse_clock::CoarseClock;
pub use congestion_window::CongestionWindow;
pub use hystart::{Detect as HyStartDetect, HyStart};
pub use hystart_pp::{HyStartPp, HyStartStep};
pub use ledbat_delays::{BaseDelays, CurrentDelays};
pub use limited_slow_start::LimitedSlowStart;
pub use liveness_timer::LivenessTimer;
pub use loss_based::{CongestionEvent, LossBased, ReductionCause, WindowRules};
pub use policy::Policy;
#[cfg(test)]
pub(crate) use rtt_rounds::play_round;
pub use rtt_rounds::{RttRound, RttRounds};
pub use step_clock::StepClock;
