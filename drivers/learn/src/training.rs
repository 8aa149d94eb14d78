//! A training of any kind, as commands use it.

use crate::error::RecipeError;
use crate::imitation::Imitation;
use crate::ppo::Reinforcement;
use crate::ppo_recipe::{self, ReinforcementRecipe};
use crate::recipe::Recipe;
use crate::rule_search::{RuleRecipe, RuleSearch};
use serde_json::{Value, json};

/// A training under way: of a network by imitation or by rewards, or of a rule table.
#[derive(Debug)]
pub enum Training {
    /// See [`Imitation`].
    Imitation(Box<Imitation>),
    /// See [`Reinforcement`].
    Reinforcement(Box<Reinforcement>),
    /// See [`RuleSearch`].
    Rules(RuleSearch),
}

/// The files from which a training is resumed.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// Everything but rows.
    pub state: Vec<u8>,
    /// Rows of rounds with their numbers, oldest first.
    pub rows: Vec<(u32, Vec<u8>)>,
}

impl Training {
    /// Begins the training of a recipe (JSON), or resumes it, on `threads` threads.
    ///
    /// # Errors
    /// A recipe that can't be used; saved files that are damaged or belong to another recipe.
    pub fn new(
        recipe: &str,
        seed: u64,
        threads: usize,
        saved: Option<&Saved>,
    ) -> Result<Self, RecipeError> {
        let json: Value =
            serde_json::from_str(recipe).map_err(|error| RecipeError(error.to_string()))?;
        if json["scheme"] == "remy" {
            let recipe = RuleRecipe::from_json(recipe)?;
            let search = match saved {
                Some(saved) => {
                    RuleSearch::resume(&recipe, seed, &String::from_utf8_lossy(&saved.state))?
                }
                None => RuleSearch::new(recipe, seed),
            };
            return Ok(Training::Rules(search));
        }
        if json["scheme"] == ppo_recipe::SCHEME {
            let recipe = ReinforcementRecipe::from_json(recipe)?;
            let training = match saved {
                Some(saved) => Reinforcement::resume(recipe, seed, &saved.state)?,
                None => Reinforcement::new(recipe, seed),
            };
            return Ok(Training::Reinforcement(Box::new(training)));
        }
        let recipe = Recipe::from_json(recipe)?;
        let imitation = match saved {
            Some(Saved { state, rows }) => Imitation::resume(recipe, seed, threads, state, rows)?,
            None => Imitation::new(recipe, seed, threads)?,
        };
        Ok(Training::Imitation(Box::new(imitation)))
    }

    /// True after the last round of the recipe.
    pub fn is_complete(&self) -> bool {
        match self {
            Training::Imitation(training) => training.is_complete(),
            Training::Reinforcement(training) => training.is_complete(),
            Training::Rules(training) => training.is_complete(),
        }
    }

    /// Makes one round on `threads` threads; returns a row of the log, an object of numbers.
    pub fn round(&mut self, threads: usize) -> Value {
        match self {
            Training::Imitation(training) => {
                let report = training.round(threads);
                json!({"round": report.round, "learning_rate": report.rate, "loss": report.loss,
                    "agreement": report.agreement, "window_error": report.error, "decisions": report.decisions,
                    "advantage_log2": report.advantage})
            }
            Training::Reinforcement(training) => {
                let report = training.round(threads);
                json!({"round": report.round, "learning_rate": report.rate, "reward": report.reward,
                    "entropy": report.entropy, "divergence": report.divergence, "clipped": report.clipped,
                    "value_loss": report.value_loss, "decisions": report.decisions,
                    "validation": report.validation})
            }
            Training::Rules(training) => {
                let report = training.round(threads);
                json!({"round": report.round, "rules": report.rules, "evaluations": report.evaluations,
                    "score_log2": report.score})
            }
        }
    }

    /// The state after the latest round, without rows.
    pub fn to_state(&self) -> Vec<u8> {
        match self {
            Training::Imitation(training) => training.to_state(),
            Training::Reinforcement(training) => training.to_state(),
            Training::Rules(training) => training.to_state().into_bytes(),
        }
    }

    /// The rows of the latest round that later rounds need; empty if they need none.
    pub fn latest_rows(&self) -> Vec<u8> {
        match self {
            Training::Imitation(training) => training.latest_rows(),
            Training::Reinforcement(_) | Training::Rules(_) => Vec::new(),
        }
    }

    /// Number of latest rounds whose rows are needed.
    pub fn rounds_kept(&self) -> usize {
        match self {
            Training::Imitation(training) => training.recipe.replay,
            Training::Reinforcement(_) | Training::Rules(_) => 0,
        }
    }

    /// The score of the best model so far, once measured: of a network trained by imitation the mean advantage of its power
    /// over the expert's on the paths of the validation, of a rule table its objective, both in doublings; of a network
    /// trained by rewards its mean reward on the paths of the validation.
    pub fn score(&self) -> Option<f64> {
        match self {
            Training::Imitation(training) => training.best_advantage(),
            Training::Reinforcement(training) => training.best_validation(),
            Training::Rules(training) => training.score(),
        }
    }

    /// The content of the file of the best model so far, with `notes` in its metadata.
    pub fn model(&self, notes: &[(String, String)]) -> Vec<u8> {
        match self {
            Training::Imitation(training) => training.model(notes),
            Training::Reinforcement(training) => training.model(notes),
            Training::Rules(training) => training.model(notes),
        }
    }
}
