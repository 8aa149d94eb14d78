//! Imitation by `DAgger`, round by round.

use crate::adam::Adam;
use crate::error::RecipeError;
use crate::expert::KnownPath;
use crate::gradient::{Fit, Workspace, add_gradient};
use crate::lstm_weights::Shape;
use crate::paths::Path;
use crate::recipe::Recipe;
use crate::replay::Sequence;
use crate::rollout::{Plan, roll};
use crate::trained_scheme::{ACTIONS, Subject};
use narrows_cc::parts::exp_log;
use narrows_sim::parallel;
use narrows_units::Stream;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Rounds with more updates at the beginning.
const FIRST_ROUNDS: u32 = 5;
/// Sequences whose gradients are summed in one buffer: fixed, so that sums do not depend on the number of threads.
const CHUNK: usize = 4;
/// One in this many sequences of a batch comes from the latest rounds, and how many rounds those are.
const FRESH: usize = 4;
const FRESH_ROUNDS: usize = 4;
/// Share that each update keeps of the averaged weights.
const AVERAGE_KEPT: f32 = 0.995;
/// Part of the schedule with the full learning rate.
const WARM: f64 = 0.1;
/// Advantages are limited to this many doublings on both sides, so that no path decides alone.
const MAX_ADVANTAGE: f64 = 3.0;
/// Rounding of seeds that are drawn.
const SEEDS: u64 = 1 << 40;

/// A training under way.
#[derive(Debug)]
pub struct Imitation {
    pub(crate) recipe: Recipe,
    pub(crate) seed: u64,
    pub(crate) subject: &'static Subject,
    pub(crate) shape: Shape,
    pub(crate) weights: Vec<f32>,
    /// Weights averaged over the latest updates, of which models are made.
    pub(crate) averaged: Vec<f32>,
    pub(crate) adam: Adam,
    /// Rounds made.
    pub(crate) round: u32,
    /// The best validation so far, and its weights.
    pub(crate) best: Option<(f64, Vec<f32>)>,
    /// Sequences of the latest rounds, the newest last.
    pub(crate) replay: VecDeque<Vec<Sequence>>,
    pool: Vec<KnownPath>,
    listed: Vec<KnownPath>,
    validation: Vec<KnownPath>,
}

/// The outcome of a round.
#[derive(Clone, Debug)]
pub struct RoundReport {
    /// Number of the round, from 1.
    pub round: u32,
    /// Learning rate.
    pub rate: f64,
    /// Mean cross-entropy of the updates in nats.
    pub loss: f64,
    /// Share of decisions of the updates on which network and expert agree.
    pub agreement: f64,
    /// Mean distance |ln(window/best)| in the rollouts, over the second half of each.
    pub error: f64,
    /// Decisions simulated.
    pub decisions: usize,
    /// If the round was validated: mean doublings of power over the expert's.
    pub advantage: Option<f64>,
}

impl Imitation {
    /// Begins a training: draws its paths and finds out their best windows, on `threads` threads.
    ///
    /// # Errors
    /// A recipe that can't be used.
    pub fn new(recipe: Recipe, seed: u64, threads: usize) -> Result<Self, RecipeError> {
        let subject = recipe.subject()?;
        let shape = Shape {
            inputs: subject.features + ACTIONS,
            units: recipe.units,
        };
        let weights = shape.initial(&mut Stream::new(seed, "learn/weights"));
        let model = shape.model(&weights, subject, &[]);
        let size = subject.packet_size;
        let draw = |name: &str, count: usize| -> Vec<Path> {
            let mut stream = Stream::new(seed, name);
            let law = recipe.law.as_ref();
            let paths = law.map(|law| (0..count).map(|_| law.draw(&mut stream, size)).collect());
            paths.unwrap_or_default()
        };
        let know = |paths: Vec<Path>| {
            parallel::map(threads, &paths, |path| {
                KnownPath::new(path.clone(), subject, &model, seed)
            })
        };
        let pool = know(draw("learn/pool", recipe.pool));
        let listed = know(recipe.paths.clone());
        let mut validation = know(draw("learn/validation", recipe.validation));
        validation.extend(listed.iter().cloned());
        Ok(Imitation {
            averaged: weights.clone(),
            adam: Adam::new(weights.len()),
            recipe,
            seed,
            subject,
            shape,
            weights,
            round: 0,
            best: None,
            replay: VecDeque::new(),
            pool,
            listed,
            validation,
        })
    }

    /// True after the last round of the recipe.
    pub fn is_complete(&self) -> bool {
        self.round >= self.recipe.rounds
    }

    /// Makes one round on `threads` threads.
    pub fn round(&mut self, threads: usize) -> RoundReport {
        let mut stream = Stream::new(self.seed, &format!("learn/round/{}", self.round));
        let (error, decisions) = self.roll_out(&mut stream, threads);
        let rate = self.rate();
        let fit = self.update(&mut stream, rate, threads);
        self.round += 1;
        let due = self.round.is_multiple_of(self.recipe.validate_every) || self.is_complete();
        let advantage = due.then(|| self.validate(threads));
        RoundReport {
            round: self.round,
            rate,
            loss: fit.loss / fit.decisions.max(1) as f64,
            agreement: fit.agreed as f64 / fit.decisions.max(1) as f64,
            error,
            decisions,
            advantage,
        }
    }

    /// The content of the file of the best model so far, with `notes` in its metadata.
    pub fn model(&self, notes: &[(String, String)]) -> Vec<u8> {
        let weights = self
            .best
            .as_ref()
            .map_or(&self.averaged, |(_, weights)| weights);
        self.shape.model(weights, self.subject, notes)
    }

    /// The best validation so far: mean doublings of power over the expert's.
    pub fn best_advantage(&self) -> Option<f64> {
        self.best.as_ref().map(|(advantage, _)| *advantage)
    }

    /// Makes the rollouts of a round; returns their mean error and the number of decisions.
    fn roll_out(&mut self, stream: &mut Stream, threads: usize) -> (f64, usize) {
        let recipe = &self.recipe;
        let mut plans = Vec::with_capacity(recipe.rollouts);
        for number in 0..recipe.rollouts {
            let is_listed = number < recipe.listed_rollouts || self.pool.is_empty();
            let paths = if is_listed { &self.listed } else { &self.pool };
            plans.push(Plan {
                known: paths[stream.below(paths.len() as u64) as usize].clone(),
                late_hosts: stream.chance(recipe.late_hosts),
                seed: 1 + stream.below(SEEDS),
                decisions: recipe.decisions,
                by_expert: self.round == 0,
            });
        }
        let model = self.shape.model(&self.weights, self.subject, &[]);
        let rollouts = parallel::map(threads, &plans, |plan| {
            roll(plan, self.subject, &model, recipe)
        });
        let error = rollouts.iter().map(|rollout| rollout.error).sum::<f64>();
        let error = error / rollouts.len().max(1) as f64;
        let sequences: Vec<_> = rollouts.into_iter().filter_map(|it| it.sequence).collect();
        let decisions = sequences.iter().map(Sequence::len).sum();
        self.replay.push_back(sequences);
        if self.replay.len() > recipe.replay {
            self.replay.pop_front();
        }
        (error, decisions)
    }

    fn rate(&self) -> f64 {
        let [first, last] = self.recipe.learning_rate;
        let done = f64::from(self.round) / f64::from(self.recipe.rounds);
        let falling = ((done - WARM) / (1.0 - WARM)).max(0.0);
        first * exp_log::powf(last / first, falling)
    }

    fn update(&mut self, stream: &mut Stream, rate: f64, threads: usize) -> Fit {
        let recipe = &self.recipe;
        let sequences: Vec<&Sequence> = self.replay.iter().flatten().collect();
        let latest = self.replay.iter().rev().take(FRESH_ROUNDS);
        let fresh: usize = latest.map(Vec::len).sum();
        let updates = if self.round < FIRST_ROUNDS {
            recipe.first_updates
        } else {
            recipe.updates
        };
        let mut fit = Fit::default();
        if sequences.is_empty() {
            return fit;
        }
        let chunks: Vec<usize> = (0..recipe.batch.div_ceil(CHUNK)).collect();
        let spaces: Vec<Mutex<(Vec<f32>, Workspace)>> = chunks
            .iter()
            .map(|_| Mutex::new((vec![0.0; self.weights.len()], Workspace::default())))
            .collect();
        let mut gradient = vec![0.0f32; self.weights.len()];
        for _ in 0..updates {
            let mut pick = |number: usize| {
                let from_end = number.is_multiple_of(FRESH) && fresh > 0;
                let among = if from_end { fresh } else { sequences.len() };
                sequences[sequences.len() - 1 - stream.below(among as u64) as usize]
            };
            let batch: Vec<&Sequence> = (0..recipe.batch).map(&mut pick).collect();
            let decisions: usize = batch.iter().map(|sequence| sequence.len()).sum();
            let scale = 1.0 / decisions as f32;
            let (shape, weights) = (self.shape, &self.weights);
            let fits = parallel::map(threads, &chunks, |chunk| {
                let mut space = spaces[*chunk].lock().expect("no thread has panicked");
                let (sums, space) = &mut *space;
                sums.fill(0.0);
                let mut fit = Fit::default();
                for sequence in batch.iter().skip(chunk * CHUNK).take(CHUNK) {
                    fit.add(add_gradient(shape, weights, sequence, scale, sums, space));
                }
                fit
            });
            for part in fits {
                fit.add(part);
            }
            gradient.fill(0.0);
            for space in &spaces {
                let space = space.lock().expect("no thread has panicked");
                for (sum, part) in gradient.iter_mut().zip(&space.0) {
                    *sum += part;
                }
            }
            self.adam.step(
                &mut self.weights,
                &mut gradient,
                rate as f32,
                recipe.decay as f32,
            );
            for (average, weight) in self.averaged.iter_mut().zip(&self.weights) {
                *average = AVERAGE_KEPT * *average + (1.0 - AVERAGE_KEPT) * weight;
            }
        }
        fit
    }

    /// Measures the averaged weights on the paths of the validation, and keeps them if they are the best so far.
    fn validate(&mut self, threads: usize) -> f64 {
        let model = self.shape.model(&self.averaged, self.subject, &[]);
        let advantages = parallel::map(threads, &self.validation, |known| {
            let advantage = known.advantage(self.subject, &model, self.seed);
            advantage.clamp(-MAX_ADVANTAGE, MAX_ADVANTAGE)
        });
        let mean = advantages.iter().sum::<f64>() / advantages.len().max(1) as f64;
        if self.best.as_ref().is_none_or(|(best, _)| mean > *best) {
            self.best = Some((mean, self.averaged.clone()));
        }
        mean
    }
}
