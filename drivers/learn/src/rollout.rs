//! Rollouts: a network or the expert decides on a path, and each decision is kept with the expert's answer.

use crate::expert::{KnownPath, answer, nearest, regrets};
use crate::paths::BOTTLENECK;
use crate::recipe::Recipe;
use crate::replay::Sequence;
use crate::trained_scheme::{ACTIONS, Subject};
use narrows_cc::parts::Lstm;
use narrows_cc::parts::model_file::Model;
use narrows_cc::parts::neural_arithmetic::largest;
use narrows_sim::World;

/// Longest rollout in seconds of its path; those of slow paths have fewer decisions.
const MAX_S: f64 = 60.0;
/// Sequences with fewer decisions teach nothing.
const MIN_DECISIONS: usize = 50;

/// One rollout to make.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) known: KnownPath,
    pub(crate) late_hosts: bool,
    pub(crate) seed: u64,
    pub(crate) decisions: usize,
    /// Decided by the expert instead of the network.
    pub(crate) by_expert: bool,
}

/// Result of a rollout.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    pub(crate) sequence: Option<Sequence>,
    /// Mean distance |ln(window/best)| over the second half of the decisions.
    pub(crate) error: f64,
}

/// Makes a rollout with the network in `model`.
pub(crate) fn roll(plan: &Plan, subject: &Subject, model: &[u8], recipe: &Recipe) -> Rollout {
    let cell = plan
        .known
        .path
        .cell(subject.flow(), plan.late_hosts, plan.seed, MAX_S, model);
    let mut world = World::with_decisions_outside(&cell).expect("a checked path makes a world");
    let network = Model::parse(model)
        .and_then(|model| Lstm::new(&model, subject.features + ACTIONS, ACTIONS));
    let mut network = network.expect("a model of the trainer");
    let mut sequence = Sequence::new(subject.features, subject.gains);
    let mut errors = Vec::with_capacity(plan.decisions);
    let until = world.duration();
    let mut next = world.run_to_decision(until);
    while next.is_some() && sequence.len() < plan.decisions {
        let queued = match recipe.queue_share {
            Some(_) => world.held_packets(BOTTLENECK),
            None => 0,
        };
        let aim = plan
            .known
            .aim(subject.packet_size, recipe.queue_share, queued);
        let observation = world.observation();
        let (features, last) = observation.split_at(subject.features);
        let window = subject.window(observation);
        let regrets = regrets(subject, window, aim);
        sequence.push(features, largest(last), answer(&regrets, recipe.tolerance));
        // Holding the window has its present distance as regret.
        errors.push(regrets[2]);
        let action = if plan.by_expert {
            nearest(&regrets)
        } else {
            largest(network.step(observation))
        };
        next = world.step(&[action as f32], until);
    }
    let late = &errors[errors.len() / 2..];
    Rollout {
        error: late.iter().sum::<f64>() / late.len().max(1) as f64,
        sequence: (sequence.len() >= MIN_DECISIONS).then_some(sequence),
    }
}
