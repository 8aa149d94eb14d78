//! Proximal policy optimisation (Schulman et al., arXiv 1707.06347), round by round.

use crate::adam::Adam;
use crate::episode::{
    ACTION, INPUTS, Networks, PACKET_SIZE, Plan, STEP, Steps, exp, log_density, play, unscale,
};
use crate::error::RecipeError;
use crate::model_file;
use crate::paths::log_uniform;
use crate::perceptron::{Layers, Perceptron};
use crate::ppo_recipe::{ReinforcementRecipe, SCHEME};
use narrows_cc::parts::exp_log;
use narrows_sim::parallel;
use narrows_units::Stream;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::json;

/// Decisions whose gradients are summed in one buffer: fixed, so that sums do not depend on the number of threads.
const CHUNK: usize = 256;
/// Factor of the initial weights of the policy's output, so that the first actions are near 0.
const FIRST_ACTIONS: f64 = 0.01;
/// Part of the schedule with the full learning rate.
const WARM: f64 = 0.1;
/// Least logarithm of the standard deviation of actions.
const LEAST_DEVIATION: f32 = -4.0;
/// The largest initial window of a transport in packets.
const MAX_INITIAL_WINDOW: f64 = 1_000.0;
/// Rounding of seeds that are drawn.
const SEEDS: u64 = 1 << 40;
/// Entropy of the normal distribution with deviation 1: half of ln(2 pi e).
const UNIT_ENTROPY: f64 = 1.418_938_533_204_672_7;
/// First bytes of a state.
const MAGIC: &[u8; 16] = b"narrows/learn/3\n";

/// A training under way.
#[derive(Debug)]
pub struct Reinforcement {
    recipe: ReinforcementRecipe,
    seed: u64,
    networks: Networks,
    policy_adam: Adam,
    value_adam: Adam,
    /// Rounds made.
    round: u32,
    /// The best validation so far, and the weights of its policy.
    best: Option<(f64, Vec<f32>)>,
    validation: Vec<Plan>,
}

/// The outcome of a round.
#[derive(Clone, Debug)]
pub struct ReinforcementReport {
    /// Number of the round, from 1.
    pub round: u32,
    /// Learning rate.
    pub rate: f64,
    /// Mean reward of a step; with Aurora's reward in units of that of the full link without delay.
    pub reward: f64,
    /// Entropy of the actions in nats.
    pub entropy: f64,
    /// Divergence of the policy before the round from that after it in nats, estimated from the last epoch.
    pub divergence: f64,
    /// Share of decisions whose ratio of probabilities reached the limit in the last epoch.
    pub clipped: f64,
    /// Mean square of the errors of the estimated values in the last epoch.
    pub value_loss: f64,
    /// Decisions simulated.
    pub decisions: usize,
    /// If the round was validated: the mean reward of a step without chance.
    pub validation: Option<f64>,
}

/// Sums over decisions of an update.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    divergence: f64,
    clipped: usize,
    value_loss: f64,
    decisions: usize,
}

/// Gradients and sums of a chunk.
struct Part {
    policy: Vec<f32>,
    value: Vec<f32>,
    fit: Fit,
}

impl Reinforcement {
    /// Begins a training.
    pub fn new(recipe: ReinforcementRecipe, seed: u64) -> Self {
        let shape = Perceptron::new(INPUTS, &recipe.units);
        let stream = &mut Stream::new(seed, "learn/weights");
        let mut policy = shape.initial(stream, FIRST_ACTIONS);
        policy.push(exp_log::ln(recipe.deviation) as f32);
        let value = shape.initial(stream, 1.0);
        let mut stream = Stream::new(seed, "learn/validation");
        let draw = |number: usize| Plan {
            path: recipe.law.draw(&mut stream, PACKET_SIZE),
            initial_window: None,
            seed: number as u64 + 1,
            by_chance: false,
        };
        let validation = (0..recipe.validation).map(draw).collect();
        Reinforcement {
            policy_adam: Adam::new(policy.len()),
            value_adam: Adam::new(value.len()),
            networks: Networks {
                shape,
                policy,
                value,
            },
            recipe,
            seed,
            round: 0,
            best: None,
            validation,
        }
    }

    /// True after the last round of the recipe.
    pub fn is_complete(&self) -> bool {
        self.round >= self.recipe.rounds
    }

    /// The best validation so far.
    pub fn best_validation(&self) -> Option<f64> {
        self.best.as_ref().map(|(mean, _)| *mean)
    }

    /// Makes one round on `threads` threads.
    pub fn round(&mut self, threads: usize) -> ReinforcementReport {
        let mut stream = Stream::new(self.seed, &format!("learn/round/{}", self.round));
        let episodes = self.play(&self.draw(&mut stream), threads);
        let decisions: usize = episodes.iter().map(|steps| steps.actions.len()).sum();
        let reward = episodes.iter().map(|steps| steps.reward).sum::<f64>();
        let rate = self.rate();
        let fit = self.update(&episodes, &mut stream, rate as f32, threads);
        self.round += 1;
        let due = self.round.is_multiple_of(self.recipe.validate_every) || self.is_complete();
        let validation = due.then(|| self.validate(threads));
        let count = fit.decisions.max(1) as f64;
        ReinforcementReport {
            round: self.round,
            rate,
            reward: reward / decisions.max(1) as f64,
            entropy: UNIT_ENTROPY + f64::from(*self.networks.policy.last().expect("a deviation")),
            divergence: fit.divergence / count,
            clipped: fit.clipped as f64 / count,
            value_loss: fit.value_loss / count,
            decisions,
            validation,
        }
    }

    /// The episodes of a round.
    fn draw(&self, stream: &mut Stream) -> Vec<Plan> {
        let recipe = &self.recipe;
        let mut plans = Vec::with_capacity(recipe.episodes);
        for _ in 0..recipe.episodes {
            let path = recipe.law.draw(stream, PACKET_SIZE);
            let mut initial_window = None;
            if let Some(initial) = &recipe.initial_bdp
                && stream.chance(initial.share)
            {
                let packets = path.bdp(PACKET_SIZE) * log_uniform(stream, initial.range);
                initial_window = Some(packets.clamp(1.0, MAX_INITIAL_WINDOW) as u64);
            }
            plans.push(Plan {
                path,
                initial_window,
                seed: 1 + stream.below(SEEDS),
                by_chance: true,
            });
        }
        plans
    }

    fn play(&self, plans: &[Plan], threads: usize) -> Vec<Steps> {
        parallel::map(threads, plans, |plan| {
            play(plan, &self.networks, &self.recipe).expect("a checked path makes a world")
        })
    }

    fn rate(&self) -> f64 {
        let [first, last] = self.recipe.learning_rate;
        let done = f64::from(self.round) / f64::from(self.recipe.rounds);
        let falling = ((done - WARM) / (1.0 - WARM)).max(0.0);
        first * exp_log::powf(last / first, falling)
    }

    /// Fits policy and values to the steps of a round; returns the sums of the last epoch.
    fn update(
        &mut self,
        episodes: &[Steps],
        stream: &mut Stream,
        rate: f32,
        threads: usize,
    ) -> Fit {
        let decisions: Vec<(usize, usize)> = episodes
            .iter()
            .enumerate()
            .flat_map(|(episode, steps)| (0..steps.actions.len()).map(move |step| (episode, step)))
            .collect();
        let advantage = Normal::new(episodes.iter().flat_map(|steps| &steps.advantages));
        let mut order = decisions;
        let mut fit = Fit::default();
        for _ in 0..self.recipe.epochs {
            fit = Fit::default();
            for last in (1..order.len()).rev() {
                order.swap(last, stream.below(last as u64 + 1) as usize);
            }
            for batch in order.chunks(self.recipe.batch) {
                let chunks: Vec<_> = batch.chunks(CHUNK).collect();
                let parts = parallel::map(threads, &chunks, |chunk| {
                    self.add_gradients(episodes, chunk, advantage, batch.len())
                });
                let mut policy = vec![0.0; self.networks.policy.len()];
                let mut value = vec![0.0; self.networks.value.len()];
                for part in parts {
                    add(&mut policy, &part.policy);
                    add(&mut value, &part.value);
                    fit.add(part.fit);
                }
                let networks = &mut self.networks;
                self.policy_adam
                    .step(&mut networks.policy, &mut policy, rate, 0.0);
                self.value_adam
                    .step(&mut networks.value, &mut value, rate, 0.0);
                let deviation = networks.policy.last_mut().expect("a deviation");
                *deviation = deviation.max(LEAST_DEVIATION);
            }
        }
        fit
    }

    /// Gradients of the mean loss of `count` decisions, the part of those in `chunk`.
    fn add_gradients(
        &self,
        episodes: &[Steps],
        chunk: &[(usize, usize)],
        advantage: Normal,
        count: usize,
    ) -> Part {
        let Networks {
            shape,
            policy,
            value,
        } = &self.networks;
        let (clip, share) = (self.recipe.clip as f32, 1.0 / count as f32);
        let mut part = Part {
            policy: vec![0.0; policy.len()],
            value: vec![0.0; value.len()],
            fit: Fit::default(),
        };
        let mut space = Layers::default();
        let weights = &policy[..policy.len() - 1];
        for &(episode, step) in chunk {
            let steps = &episodes[episode];
            let inputs = &steps.inputs[step * INPUTS..][..INPUTS];
            let (mean, log_deviation) = self.networks.decide(inputs, &mut space);
            let action = steps.actions[step];
            let change = log_density(action, mean, log_deviation) - steps.densities[step];
            let ratio = exp(change);
            let gain = advantage.of(steps.advantages[step]);
            // The surrogate min(r A, clip(r) A) does not depend on r beyond the limit in the direction of the advantage.
            let is_free = if gain > 0.0 {
                ratio < 1.0 + clip
            } else {
                ratio > 1.0 - clip
            };
            let deviation = exp(log_deviation);
            let distance = (action - mean) / deviation;
            let (last, gradient) = part.policy.split_last_mut().expect("a deviation");
            *last -= self.recipe.entropy as f32 * share;
            if is_free {
                let slope = -gain * ratio * share;
                shape.add_gradient(
                    weights,
                    inputs,
                    slope * distance / deviation,
                    gradient,
                    &mut space,
                );
                *last += slope * (distance * distance - 1.0);
            }
            let error = shape.evaluate(value, inputs, &mut space) - steps.returns[step];
            shape.add_gradient(value, inputs, error * share, &mut part.value, &mut space);
            part.fit.add(Fit {
                // Its expectation is the divergence, and no value is negative (Schulman 2020).
                divergence: f64::from(ratio - 1.0 - change),
                clipped: usize::from((ratio - 1.0).abs() > clip),
                value_loss: f64::from(error) * f64::from(error),
                decisions: 1,
            });
        }
        part
    }

    /// Measures the policy without chance on the paths of the validation, and keeps it if it is the best so far.
    fn validate(&mut self, threads: usize) -> f64 {
        let played = self.play(&self.validation, threads);
        let means = played
            .iter()
            .map(|steps| steps.reward / steps.actions.len().max(1) as f64);
        let mean = means.sum::<f64>() / played.len().max(1) as f64;
        if self.best.as_ref().is_none_or(|(best, _)| mean > *best) {
            self.best = Some((mean, self.networks.policy.clone()));
        }
        mean
    }

    /// The content of the file of the best policy so far, with `notes` in its metadata.
    pub fn model(&self, notes: &[(String, String)]) -> Vec<u8> {
        let best = self.best.as_ref();
        let weights = best.map_or(&self.networks.policy, |(_, weights)| weights);
        let mut layers = self.networks.shape.split(weights);
        let (kernel, bias) = unscale(layers[0].0, layers[0].1);
        layers[0] = (&kernel, &bias);
        let last = layers.len() - 1;
        let mut arrays = Vec::new();
        let mut kinds = Vec::new();
        for (layer, (kernel, bias)) in layers.into_iter().enumerate() {
            let shape = vec![kernel.len() / bias.len(), bias.len()];
            arrays.push((format!("kernel{layer}"), shape, kernel));
            arrays.push((format!("bias{layer}"), vec![bias.len()], bias));
            let activation = if layer == last { "none" } else { "tanh" };
            kinds.push(json!({"kind": "dense", "activation": activation}));
        }
        let bytes: Vec<Vec<u8>> = arrays
            .iter()
            .map(|(_, _, values)| {
                values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect()
            })
            .collect();
        let views = arrays.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (
                name.as_str(),
                view.expect("as many numbers as the shape has"),
            )
        });
        let design = json!({"observation": SCHEME, "step": {"rule": "rtt", "amount": STEP}, "action": ACTION,
            "layers": kinds});
        let design = ("policy".to_owned(), design.to_string());
        model_file::encode(views, SCHEME, &[&[design], notes].concat())
    }

    /// Everything that the next round depends on, besides recipe and seed.
    pub fn to_state(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.round.to_le_bytes());
        let best = self.best.as_ref();
        bytes.extend(best.map_or(f64::NAN, |(mean, _)| *mean).to_le_bytes());
        let best = best.map_or(&self.networks.policy, |(_, weights)| weights);
        for values in [&self.networks.policy, &self.networks.value, best] {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        for adam in [&self.policy_adam, &self.value_adam] {
            for values in [&adam.means[..], &adam.squares, &adam.powers] {
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        bytes
    }

    /// A training that continues from `state`, which was made with the same recipe and seed.
    ///
    /// # Errors
    /// A state that is damaged or of another recipe.
    pub fn resume(
        recipe: ReinforcementRecipe,
        seed: u64,
        state: &[u8],
    ) -> Result<Self, RecipeError> {
        let mut training = Reinforcement::new(recipe, seed);
        let damaged =
            || RecipeError("the saved state is damaged, or belongs to another recipe".into());
        training.restore(state).ok_or_else(damaged)?;
        Ok(training)
    }

    fn restore(&mut self, state: &[u8]) -> Option<()> {
        let rest = state.strip_prefix(MAGIC)?;
        let (round, rest) = rest.split_first_chunk::<4>()?;
        let (mean, mut rest) = rest.split_first_chunk::<8>()?;
        let mut best = self.networks.policy.clone();
        let (policy, value) = (&mut self.policy_adam, &mut self.value_adam);
        for values in [
            &mut self.networks.policy[..],
            &mut self.networks.value,
            &mut best,
            &mut policy.means,
            &mut policy.squares,
            &mut policy.powers,
            &mut value.means,
            &mut value.squares,
            &mut value.powers,
        ] {
            let (numbers, behind) = rest.split_at_checked(4 * values.len())?;
            rest = behind;
            for (value, number) in values.iter_mut().zip(numbers.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*number);
            }
        }
        self.round = u32::from_le_bytes(*round);
        let mean = f64::from_le_bytes(*mean);
        self.best = (!mean.is_nan()).then_some((mean, best));
        rest.is_empty().then_some(())
    }
}

/// Mean and standard deviation of the advantages of a round.
#[derive(Clone, Copy, Debug)]
struct Normal {
    mean: f64,
    deviation: f64,
}

impl Normal {
    fn new<'a>(values: impl Iterator<Item = &'a f32> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        let mean = values.clone().map(|value| f64::from(*value)).sum::<f64>() / count;
        let squares = values.map(|value| (f64::from(*value) - mean) * (f64::from(*value) - mean));
        Normal {
            mean,
            deviation: (squares.sum::<f64>() / count).sqrt().max(1e-8),
        }
    }

    fn of(self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) / self.deviation) as f32
    }
}

impl Fit {
    fn add(&mut self, other: Fit) {
        self.divergence += other.divergence;
        self.clipped += other.clipped;
        self.value_loss += other.value_loss;
        self.decisions += other.decisions;
    }
}

fn add(sums: &mut [f32], values: &[f32]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}
