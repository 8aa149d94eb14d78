//! Rewards of a step.

use crate::step_counters::{Facts, Step};
use narrows_cc::parts::exp_log;

/// Least share of the capacity that rewards with logarithms count: a step without deliveries is worth -10 doublings.
const MIN_SHARE: f64 = 1.0 / 1024.0;
/// Orca's weight of losses, and the delay up to which it counts as none (Abbasloo, Yen, Chao 2020, section 4.2: zeta and
/// beta).
const ORCA_LOSS: f64 = 5.0;
const ORCA_DELAY: f64 = 1.25;

/// A rule that judges a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reward {
    /// log2(throughput / capacity) - log2(mean RTT / base RTT).
    Power,
    /// 10 throughput (packets per second) - 1000 mean RTT (s) - 2000 loss ratio (Jay et al. 2019, section 4).
    Aurora,
    /// (throughput - 5 lost rate) / delay, relative to capacity and minimum RTT; delays up to 1.25 minimum RTTs count as
    /// that minimum.
    Orca,
    /// log2(throughput / fair share) - log2(mean RTT / base RTT): Remy's objective with delta 1 (Winstein and
    /// Balakrishnan 2013).
    Remy,
    /// 1 if the action is the expert's, which leads nearest to the best window; else 0.
    Imitation,
}

impl Reward {
    /// All rewards by name, with their meaning.
    pub const ALL: [(&'static str, Reward, &'static str); 5] = [
        (
            "power",
            Reward::Power,
            "log2(throughput / capacity) - log2(mean RTT / base RTT)",
        ),
        (
            "aurora",
            Reward::Aurora,
            "10 x packets/s - 1000 x mean RTT (s) - 2000 x loss ratio",
        ),
        (
            "orca",
            Reward::Orca,
            "(throughput - 5 x lost rate) / delay, relative to capacity and base RTT",
        ),
        (
            "remy",
            Reward::Remy,
            "log2(throughput / fair share) - log2(mean RTT / base RTT)",
        ),
        (
            "imitation",
            Reward::Imitation,
            "1 if the action leads nearest to the path's best window, else 0",
        ),
    ];

    /// The reward called `name`.
    pub fn find(name: &str) -> Option<Reward> {
        let entry = Reward::ALL.iter().find(|(known, ..)| *known == name);
        entry.map(|(_, reward, _)| *reward)
    }

    /// The reward of a step with packets of `size` IP bytes; `imitated` is true if its action was the expert's.
    pub(crate) fn of_step(self, step: &Step, facts: &Facts, size: u64, imitated: bool) -> f64 {
        let share = |capacity: f64| {
            let share = (step.throughput_bps() / capacity).max(MIN_SHARE);
            let delay = (step.rtt_ns() / facts.base_rtt_ns).max(1.0);
            log2(share) - log2(delay)
        };
        match self {
            Reward::Power => share(facts.capacity_bps),
            Reward::Remy => share(facts.capacity_bps / facts.flows),
            Reward::Aurora => {
                10.0 * step.packets_per_second(size)
                    - 1e3 * step.rtt_ns() * 1e-9
                    - 2e3 * step.loss_ratio()
            }
            Reward::Orca => {
                let lost = step.throughput_bps() * step.loss_ratio();
                let delay = (step.rtt_ns() / facts.base_rtt_ns).max(1.0);
                let delay = if delay <= ORCA_DELAY { 1.0 } else { delay };
                (step.throughput_bps() - ORCA_LOSS * lost) / facts.capacity_bps / delay
            }
            Reward::Imitation => f64::from(imitated),
        }
    }
}

fn log2(value: f64) -> f64 {
    exp_log::ln(value) / std::f64::consts::LN_2
}
