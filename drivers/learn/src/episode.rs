//! Episodes of reinforcement learning: a policy decides on a path, by chance, and each step is kept with its advantage.

use crate::error::RecipeError;
use crate::paths::Path;
use crate::perceptron::{Layers, Perceptron};
use crate::ppo_recipe::{ReinforcementRecipe, SCHEME};
use narrows_cc::parts::exp_log;
use narrows_gym::{COUNTERS, Course, Ending, Outputs, Reward, Worlds};
use narrows_units::{Files, Stream};
use serde_json::json;

/// IP size of packets in bytes.
pub(crate) const PACKET_SIZE: u32 = 1_500;
/// Numbers of an observation, and of one of its ten steps.
pub(crate) const INPUTS: usize = 30;
const MEMBERS: usize = 3;
/// Usual values of the members (latency inflation, latency ratio, send ratio), and factors of the distances from them, so
/// that inputs of networks in training are near 1. They are part of the weights of the finished model.
const USUAL: [f32; MEMBERS] = [0.0, 1.0, 1.0];
const GAINS: [f32; MEMBERS] = [10.0, 2.0, 5.0];
/// The share of a round trip after which a step ends, and its action (Jay et al. 2019).
pub(crate) const STEP: f64 = 0.5;
pub(crate) const ACTION: &str = "rate-factor";
/// Longest episode, in multiples of the time that its steps take without a queue.
const MOST_TIME: f64 = 4.0;
/// Reward of a packet per second in the units of the paper.
const PACKET_REWARD: f64 = 10.0;

/// The networks of a training: the mean of the actions, and the value of a state.
#[derive(Clone, Debug)]
pub(crate) struct Networks {
    pub(crate) shape: Perceptron,
    /// Weights of the policy, and last the logarithm of the standard deviation of the actions.
    pub(crate) policy: Vec<f32>,
    pub(crate) value: Vec<f32>,
}

/// An episode to play.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) path: Path,
    /// Initial window in packets; absent for that of every flow.
    pub(crate) initial_window: Option<u64>,
    pub(crate) seed: u64,
    /// Actions are drawn, not those of the policy.
    pub(crate) by_chance: bool,
}

/// The steps of an episode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// Inputs of each decision, in units of the training.
    pub(crate) inputs: Vec<f32>,
    pub(crate) actions: Vec<f32>,
    /// Logarithm of the density of each action.
    pub(crate) densities: Vec<f32>,
    pub(crate) advantages: Vec<f32>,
    /// Values that the network of values should estimate.
    pub(crate) returns: Vec<f32>,
    /// Sum of the rewards.
    pub(crate) reward: f64,
}

impl Networks {
    /// Mean and logarithm of the standard deviation of the actions.
    pub(crate) fn decide(&self, inputs: &[f32], space: &mut Layers) -> (f32, f32) {
        let (deviation, weights) = self.policy.split_last().expect("a deviation");
        (self.shape.evaluate(weights, inputs, space), *deviation)
    }
}

/// Logarithm of the density of the normal distribution, plus half of ln 2 pi.
pub(crate) fn log_density(action: f32, mean: f32, log_deviation: f32) -> f32 {
    let distance = (action - mean) / exp(log_deviation);
    -0.5 * distance * distance - log_deviation
}

/// e to the power of `x`.
pub(crate) fn exp(x: f32) -> f32 {
    exp_log::exp(f64::from(x)) as f32
}

/// A standard normal number (polar method), with the same bits on every machine.
fn normal(stream: &mut Stream) -> f64 {
    loop {
        let [x, y] = [0; 2].map(|_| 2.0 * stream.uniform() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * exp_log::ln(square) / square).sqrt();
        }
    }
}

/// The kernel of a first layer for observations without scaling, and its bias, from those of a training.
pub(crate) fn unscale(kernel: &[f32], bias: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut kernel, mut bias) = (kernel.to_vec(), bias.to_vec());
    for (input, row) in kernel.chunks_exact_mut(bias.len()).enumerate() {
        let (usual, gain) = (USUAL[input % MEMBERS], GAINS[input % MEMBERS]);
        for (weight, sum) in row.iter_mut().zip(&mut bias) {
            *weight *= gain;
            *sum -= usual * *weight;
        }
    }
    (kernel, bias)
}

fn scale(observation: &[f32], inputs: &mut Vec<f32>) {
    let scaled = observation.iter().enumerate().map(|(input, value)| {
        let member = input % MEMBERS;
        (value - USUAL[member]) * GAINS[member]
    });
    inputs.extend(scaled);
}

/// The world of an episode.
fn open(plan: &Plan, recipe: &ReinforcementRecipe, reward: Reward) -> Result<Worlds, RecipeError> {
    let seconds = STEP * 2e-3 * plan.path.one_way_ms * recipe.decisions as f64 * MOST_TIME;
    let mut cell = plan
        .path
        .to_json(("policy", PACKET_SIZE), false, plan.seed, seconds.max(1.0));
    cell["flows"][0]["params"] =
        json!({"observation": SCHEME, "step": "rtt", "step_amount": STEP, "action": ACTION});
    if let Some(window) = plan.initial_window {
        cell["transport"]["initial_window"] = window.into();
    }
    let course = Course {
        cell,
        files: Files::default(),
    };
    let most = recipe.decisions as u32;
    Worlds::new(vec![course], vec![0], 1, reward, most, 1)
        .map_err(|error| RecipeError(format!("an episode can't be simulated: {error}")))
}

/// Plays an episode.
///
/// # Errors
/// A path on which no decision is made.
pub(crate) fn play(
    plan: &Plan,
    networks: &Networks,
    recipe: &ReinforcementRecipe,
) -> Result<Steps, RecipeError> {
    let reward = recipe.find_reward()?;
    let mut worlds = open(plan, recipe, reward)?;
    // In units of the reward of the full link, so that fast paths do not outweigh slow ones.
    let unit = match reward {
        Reward::Aurora => PACKET_REWARD * plan.path.rate_bps / 8.0 / f64::from(PACKET_SIZE),
        _ => 1.0,
    };
    let mut observation = [0.0; INPUTS];
    let mut counters = [0.0; COUNTERS.len()];
    let (mut rewards, mut clipped, mut ending) = ([0.0], [0], [0]);
    let mut space = Layers::default();
    let mut noise = Stream::new(plan.seed, "learn/actions");
    let mut steps = Steps::default();
    let (mut values, mut gains) = (Vec::new(), Vec::new());
    loop {
        let mut outputs = Outputs {
            observations: &mut observation,
            counters: &mut counters,
            rewards: &mut rewards,
            clipped: &mut clipped,
            endings: &mut ending,
        };
        if let Some(action) = steps.actions.last() {
            worlds.step(&[*action], &[], &mut outputs);
            steps.reward += rewards[0] / unit;
            gains.push(rewards[0] / unit * (1.0 - recipe.discount));
        } else {
            worlds
                .reset(&[Some((0, plan.seed))], &mut outputs)
                .map_err(|error| RecipeError(error.to_string()))?;
        }
        let begun = steps.inputs.len();
        scale(&observation, &mut steps.inputs);
        let inputs = &steps.inputs[begun..];
        values.push(networks.shape.evaluate(&networks.value, inputs, &mut space));
        if ending[0] != Ending::Running as u8 {
            steps.inputs.truncate(begun);
            break;
        }
        let (mean, deviation) = networks.decide(inputs, &mut space);
        let distance = if plan.by_chance {
            normal(&mut noise) as f32
        } else {
            0.0
        };
        let action = mean + exp(deviation) * distance;
        steps.actions.push(action);
        steps.densities.push(log_density(action, mean, deviation));
    }
    (steps.advantages, steps.returns) = estimate(&gains, &values, recipe.discount, recipe.trace);
    Ok(steps)
}

/// Advantages of the actions (Schulman et al., ICLR 2016), and returns: `values` has the estimate at each decision and at
/// the end, which is not the end of the flow.
fn estimate(rewards: &[f64], values: &[f32], discount: f64, trace: f64) -> (Vec<f32>, Vec<f32>) {
    let mut advantages = vec![0.0; rewards.len()];
    let mut returns = vec![0.0; rewards.len()];
    let mut advantage = 0.0;
    for (step, reward) in rewards.iter().enumerate().rev() {
        let [value, next] = [values[step], values[step + 1]].map(f64::from);
        let surprise = reward + discount * next - value;
        advantage = surprise + discount * trace * advantage;
        advantages[step] = advantage as f32;
        returns[step] = (advantage + value) as f32;
    }
    (advantages, returns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advantages_by_hand() {
        // Surprises: 1 + 0.5 * 4 - 2 = 1 and 3 + 0.5 * 6 - 4 = 2; the first counts the second with 0.5 * 0.5.
        let (advantages, returns) = estimate(&[1.0, 3.0], &[2.0, 4.0, 6.0], 0.5, 0.5);
        assert_eq!(advantages, [1.5, 2.0]);
        assert_eq!(returns, [3.5, 6.0]);
    }

    #[test]
    fn a_first_layer_for_observations_equals_that_of_the_training() {
        let shape = Perceptron::new(INPUTS, &[4]);
        let mut stream = Stream::new(1, "test");
        let weights = shape.initial(&mut stream, 1.0);
        let observation: Vec<f32> = (0..INPUTS).map(|_| 2.0 * stream.uniform() as f32).collect();
        let mut inputs = Vec::new();
        scale(&observation, &mut inputs);
        let wanted = shape.evaluate(&weights, &inputs, &mut Layers::default());
        let (kernel, bias) = shape.split(&weights)[0];
        let (kernel, bias) = unscale(kernel, bias);
        let rest = &weights[kernel.len() + bias.len()..];
        let unscaled = [&kernel, &bias, rest].concat();
        let found = shape.evaluate(&unscaled, &observation, &mut Layers::default());
        assert!((found - wanted).abs() < 1e-4, "{found} {wanted}");
    }

    #[test]
    fn numbers_are_normal() {
        let mut stream = Stream::new(1, "test");
        let numbers: Vec<f64> = (0..20_000).map(|_| normal(&mut stream)).collect();
        let mean = numbers.iter().sum::<f64>() / 2e4;
        let square = numbers.iter().map(|x| x * x).sum::<f64>() / 2e4;
        let within = numbers.iter().filter(|x| x.abs() < 1.0).count() as f64 / 2e4;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.04 && (within - 0.6827).abs() < 0.01);
    }
}
