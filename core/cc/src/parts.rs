//! Components shared by several schemes: maths that give the same digits on every machine, contents of model files, and
//! parts of algorithms.

mod algorithms;
mod files;
mod maths;

#[cfg(test)]
pub(crate) use algorithms::play_round;
pub use algorithms::{
    BaseDelays, CoarseClock, CongestionEvent, CongestionWindow, CurrentDelays, HyStart,
    HyStartDetect, HyStartPp, HyStartStep, LimitedSlowStart, LivenessTimer, LossBased, Policy,
    ReductionCause, RttRound, RttRounds, StepClock, WindowRules, actions, bbr, datagrams, gradient,
    monitor_interval, neural_policy, observations, probe_intervals, step_rules,
};
pub use files::{LayerKind, Lstm, Network, model_file, rule_table};
pub use maths::{
    SmoothingSpline, WindowedMin, cube_root, exp_log, neural_arithmetic, rough_cube_root,
};
