//! The expert: it knows the path's best window, and prefers the action that leads nearest to it.

use crate::paths::Path;
use crate::trained_scheme::{ACTIONS, Subject};
use narrows_cc::parts::exp_log;
use narrows_sim::{Limits, summarise, summarise_deciding};
use serde_json::Value;

/// Windows that a sweep tries, in bandwidth-delay products.
const TRIED: [f64; 10] = [0.5, 0.65, 0.8, 0.9, 1.0, 1.08, 1.2, 1.35, 1.6, 2.0];
/// Duration of each trial, and of a validation, in seconds.
const TRIAL_S: f64 = 12.0;
const VALIDATION_S: f64 = 20.0;
/// Above this loss ratio, or below this queue in bandwidth-delay products, the formula does not hold.
const MAX_LOSS: f64 = 0.005;
const MIN_QUEUE: f64 = 0.15;
/// Power of a flow that delivers nothing.
const NO_POWER: f64 = 1e-9;

/// A path, its best window, and the power that the expert reaches there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownPath {
    pub(crate) path: Path,
    /// In packets.
    pub(crate) best: f64,
    /// Throughput (Mbit/s) by the 95th percentile of the one-way delay (ms), with an expert that holds the best window.
    pub(crate) power: f64,
}

impl KnownPath {
    /// Finds out the best window of `path`: as published, by a formula, or where that does not hold by trials. `model` is
    /// the content of any model of the scheme.
    pub(crate) fn new(path: Path, subject: &Subject, model: &[u8], seed: u64) -> Self {
        let bdp = path.bdp(subject.packet_size);
        let queue = path
            .queue_packets
            .map_or(f64::INFINITY, |packets| packets as f64);
        let by_trials = path.poisson || path.loss > MAX_LOSS || queue < MIN_QUEUE * bdp;
        let best = match path.best_window {
            Some(window) => window,
            None if by_trials => best_tried(&path, subject, model, seed),
            None => best_window(bdp).min(bdp + queue),
        };
        let power = expert_power(&path, subject, model, seed, best, VALIDATION_S);
        KnownPath { path, best, power }
    }

    /// The window at which a decision of now should aim, with `queued` packets in the bottleneck. If the recipe has a
    /// share of the queue to fill, Muses' rule applies: the bandwidth-delay product, and the packets by which the queue is
    /// shorter than that share of its length (github.com/StanfordSNR/indigo, branch muses).
    pub(crate) fn aim(&self, size: u32, queue_share: Option<f64>, queued: u32) -> f64 {
        match (queue_share, self.path.queue_packets) {
            (Some(share), Some(packets)) => {
                let missing = share * packets as f64 - f64::from(queued);
                (self.path.bdp(size) + missing).max(1.0)
            }
            _ => self.best,
        }
    }

    /// The doublings by which the power of `model` exceeds that of the expert.
    pub(crate) fn advantage(&self, subject: &Subject, model: &[u8], seed: u64) -> f64 {
        let cell = self
            .path
            .cell(subject.flow(), true, seed, VALIDATION_S, model);
        let summary = summarise(&cell, &Limits::UNLIMITED);
        let power = summary.map_or(NO_POWER, |summary| power(&summary.measured));
        exp_log::ln(power / self.power) / std::f64::consts::LN_2
    }
}

/// The window that fills a constant link with a small queue: 5 % and a packet above the bandwidth-delay product, in steps
/// of 5 packets where that is a small part (github.com/StanfordSNR/indigo, the windows of its training).
fn best_window(bdp: f64) -> f64 {
    let window = bdp * 1.05 + 1.0;
    if window > 15.0 {
        (window / 5.0).ceil() * 5.0
    } else {
        window.ceil().max(3.0)
    }
}

/// The window with which the expert has the highest power.
fn best_tried(path: &Path, subject: &Subject, model: &[u8], seed: u64) -> f64 {
    let bdp = path.bdp(subject.packet_size);
    let mut best = (0.0, 2.0);
    for factor in TRIED {
        let window = (bdp * factor).round().max(2.0);
        let power = expert_power(path, subject, model, seed, window, TRIAL_S);
        if power > best.0 {
            best = (power, window);
        }
    }
    best.1
}

/// Power of a flow that always takes the action that leads nearest to `best`.
fn expert_power(
    path: &Path,
    subject: &Subject,
    model: &[u8],
    seed: u64,
    best: f64,
    seconds: f64,
) -> f64 {
    let cell = path.cell(subject.flow(), false, seed, seconds, model);
    let summary = summarise_deciding(&cell, &Limits::UNLIMITED, &mut |_, observation, action| {
        let regrets = regrets(subject, subject.window(observation), best);
        action.push(nearest(&regrets) as f32);
    });
    summary.map_or(NO_POWER, |summary| power(&summary.measured))
}

/// Throughput (Mbit/s) by the 95th percentile of the one-way delay (ms) of the first flow.
fn power(measured: &Value) -> f64 {
    let metrics = &measured["flows"][0]["metrics"];
    let throughput = metrics["throughput_bps"].as_f64();
    let delay = metrics["delay_p95_ns"].as_f64();
    match (throughput, delay) {
        (Some(bps), Some(ns)) if ns > 0.0 => (bps / ns).max(NO_POWER),
        _ => NO_POWER,
    }
}

/// For each action the distance between the window after it and `best`, as a logarithm of their ratio.
pub(crate) fn regrets(subject: &Subject, window: f64, best: f64) -> [f64; ACTIONS] {
    std::array::from_fn(|action| {
        let after = subject.window_after(action, window);
        exp_log::ln(after / best).abs()
    })
}

/// The action with the smallest regret, the first of equal ones.
pub(crate) fn nearest(regrets: &[f64; ACTIONS]) -> usize {
    let mut nearest = 0;
    for (action, regret) in regrets.iter().enumerate() {
        if *regret < regrets[nearest] {
            nearest = action;
        }
    }
    nearest
}

/// The shares of the actions in the expert's answer: e^-(regret/tolerance), with the sum 1.
pub(crate) fn answer(regrets: &[f64; ACTIONS], tolerance: f64) -> [f32; ACTIONS] {
    let least = regrets[nearest(regrets)];
    let powers = regrets.map(|regret| exp_log::exp((least - regret) / tolerance));
    let sum: f64 = powers.iter().sum();
    powers.map(|power| (power / sum) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indigo() -> &'static Subject {
        Subject::find("indigo").unwrap()
    }

    #[test]
    fn the_expert_leads_to_the_best_window_and_holds_it() {
        for best in [3.0, 12.0, 40.0, 700.0] {
            let mut window = 10.0;
            for _ in 0..60 {
                let action = nearest(&regrets(indigo(), window, best));
                window = indigo().window_after(action, window);
            }
            assert!((window / best).ln().abs() < 0.42, "{best}: {window}");
        }
    }

    #[test]
    fn windows_of_the_published_training_follow_from_the_formula() {
        // 100 Mbit/s and 40 ms: 340 packets of 1470 bytes; 5 Mbit/s and 20 ms: 8.5.
        assert_eq!(best_window(340.1), 360.0);
        assert_eq!(best_window(8.5), 10.0);
        assert_eq!(best_window(0.5), 3.0);
    }

    #[test]
    fn answers_are_shared_among_actions_with_the_same_regret() {
        let shares = answer(&regrets(indigo(), 1_000.0, 1_000.0), 0.02);
        let [half, less, same, more, twice] = shares;
        assert!(same > less && same > more && less > 0.15 && more > 0.15);
        assert!(half + twice < 1e-6);
        let exact = answer(&regrets(indigo(), 10.0, 10.0), 0.02);
        assert!(exact[2] > 0.999);
    }
}
