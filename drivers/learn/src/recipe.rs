//! Recipes: everything that determines a trained model besides its seed.

use crate::error::RecipeError;
use crate::paths::{Path, PathLaw};
use crate::trained_scheme::Subject;
use serde::{Deserialize, Serialize};

/// A recipe of imitation learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The scheme: `indigo` or `muses`.
    pub scheme: String,
    /// Units of the recurrent layer.
    pub units: usize,
    /// Number of rounds.
    pub rounds: u32,
    /// The law of random paths; without it there are only the listed ones.
    #[serde(default)]
    pub law: Option<PathLaw>,
    /// Number of paths drawn from the law before the first round.
    #[serde(default)]
    pub pool: usize,
    /// Paths that are listed one by one.
    #[serde(default)]
    pub paths: Vec<Path>,
    /// Rollouts per round, and how many of them are over listed paths.
    pub rollouts: usize,
    /// See `rollouts`.
    #[serde(default)]
    pub listed_rollouts: usize,
    /// Share of rollouts whose hosts react as late as a virtual machine.
    pub late_hosts: f64,
    /// Decisions per rollout.
    pub decisions: usize,
    /// Updates per round, and in each of the first five.
    pub updates: u32,
    /// See `updates`.
    pub first_updates: u32,
    /// Sequences per update.
    pub batch: usize,
    /// Learning rate at the start and at the end; it falls geometrically after the first tenth.
    pub learning_rate: [f64; 2],
    /// Factor of the weights that is added to their gradient.
    pub decay: f64,
    /// Regret, in units of the logarithm of the window, at which an action's share in the target falls by e. Towards 0
    /// only the best action counts.
    pub tolerance: f64,
    /// Share of a limited queue that is to be filled, as Muses does; without it queues are to be short.
    #[serde(default)]
    pub queue_share: Option<f64>,
    /// Rounds whose sequences are kept.
    pub replay: usize,
    /// Rounds between two validations.
    pub validate_every: u32,
    /// Paths of a validation, drawn from the law, in addition to the listed ones.
    pub validation: usize,
}

impl Recipe {
    /// Reads a recipe from JSON.
    ///
    /// # Errors
    /// Unknown or missing members, and values out of range.
    pub fn from_json(text: &str) -> Result<Self, RecipeError> {
        let recipe: Recipe =
            serde_json::from_str(text).map_err(|error| RecipeError(error.to_string()))?;
        recipe.check()?;
        Ok(recipe)
    }

    pub(crate) fn subject(&self) -> Result<&'static Subject, RecipeError> {
        Subject::find(&self.scheme).ok_or_else(|| {
            let known: Vec<_> = Subject::names().collect();
            RecipeError(format!(
                "scheme is {:?}; imitation trains {}",
                self.scheme,
                known.join(" and ")
            ))
        })
    }

    fn check(&self) -> Result<(), RecipeError> {
        self.subject()?;
        let numbers = [
            ("units", self.units as f64, 1.0, 1_024.0),
            ("rounds", f64::from(self.rounds), 1.0, 1e6),
            ("pool", self.pool as f64, 0.0, 1e5),
            ("rollouts", self.rollouts as f64, 1.0, 10_000.0),
            (
                "listed_rollouts",
                self.listed_rollouts as f64,
                0.0,
                self.rollouts as f64,
            ),
            ("late_hosts", self.late_hosts, 0.0, 1.0),
            ("decisions", self.decisions as f64, 10.0, 1e5),
            ("updates", f64::from(self.updates), 1.0, 1e5),
            ("first_updates", f64::from(self.first_updates), 1.0, 1e5),
            ("batch", self.batch as f64, 1.0, 1_024.0),
            ("learning_rate[0]", self.learning_rate[0], 1e-8, 1.0),
            ("learning_rate[1]", self.learning_rate[1], 1e-8, 1.0),
            ("decay", self.decay, 0.0, 1.0),
            ("tolerance", self.tolerance, 1e-4, 10.0),
            ("queue_share", self.queue_share.unwrap_or(0.0), 0.0, 1.0),
            ("replay", self.replay as f64, 1.0, 1e5),
            ("validate_every", f64::from(self.validate_every), 1.0, 1e6),
            ("validation", self.validation as f64, 0.0, 1_000.0),
        ];
        if let Some((name, value, min, max)) = numbers
            .iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value))
        {
            return Err(RecipeError(format!(
                "{name} is {value}; use {min} to {max}"
            )));
        }
        for (number, path) in self.paths.iter().enumerate() {
            if let Some(problem) = path.problem() {
                return Err(RecipeError(format!("paths[{number}]: {problem}")));
            }
        }
        match (&self.law, self.pool) {
            (Some(law), 1..) => law.check()?,
            (Some(_), 0) => {
                return Err(RecipeError(
                    "pool is 0, but a law is given; use 1 or more".into(),
                ));
            }
            (None, _) if self.paths.is_empty() => {
                return Err(RecipeError("neither law nor paths are given".into()));
            }
            (None, _) => {}
        }
        if self.paths.is_empty() && self.listed_rollouts > 0 {
            return Err(RecipeError("listed_rollouts needs paths".into()));
        }
        Ok(())
    }
}
