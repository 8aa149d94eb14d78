//! Recipes of reinforcement learning.

use crate::error::RecipeError;
use crate::paths::{PathLaw, Share};
use narrows_gym::Reward;
use serde::{Deserialize, Serialize};

/// Name of the scheme, and of the set of inputs.
pub(crate) const SCHEME: &str = "aurora";

/// A recipe for Aurora's policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReinforcementRecipe {
    /// The scheme: `aurora`.
    pub scheme: String,
    /// Units of the hidden layers of the policy, and of the estimate of values.
    pub units: Vec<usize>,
    /// Number of rounds.
    pub rounds: u32,
    /// The law of the paths, each of which has one episode.
    pub law: PathLaw,
    /// Initial windows of episodes in bandwidth-delay products, and the share of episodes that have one; the others begin
    /// with the 10 packets of every flow.
    #[serde(default)]
    pub initial_bdp: Option<Share>,
    /// The reward of a step, as the gym names it: `aurora` or `power`.
    pub reward: String,
    /// Episodes per round.
    pub episodes: usize,
    /// Decisions per episode.
    pub decisions: usize,
    /// Weight of the reward one step later.
    pub discount: f64,
    /// Decay per step of the weights of estimates over more steps: 0 trusts the estimated values, 1 the rewards alone.
    pub trace: f64,
    /// Limit of the change of an action's probability per round, as a ratio.
    pub clip: f64,
    /// Times that the decisions of a round are used.
    pub epochs: u32,
    /// Decisions per update.
    pub batch: usize,
    /// Learning rate at the start and at the end; it falls geometrically after the first tenth.
    pub learning_rate: [f64; 2],
    /// Standard deviation of the actions about the policy's at the start.
    pub deviation: f64,
    /// Weight of the entropy of the actions.
    pub entropy: f64,
    /// Rounds between two validations.
    pub validate_every: u32,
    /// Paths of a validation, drawn from the law.
    pub validation: usize,
}

impl ReinforcementRecipe {
    /// Reads a recipe from JSON.
    ///
    /// # Errors
    /// Unknown or missing members, and values out of range.
    pub fn from_json(text: &str) -> Result<Self, RecipeError> {
        let recipe: ReinforcementRecipe =
            serde_json::from_str(text).map_err(|error| RecipeError(error.to_string()))?;
        recipe.check()?;
        Ok(recipe)
    }

    /// The reward of a step.
    pub(crate) fn find_reward(&self) -> Result<Reward, RecipeError> {
        match Reward::find(&self.reward) {
            Some(reward @ (Reward::Aurora | Reward::Power)) => Ok(reward),
            _ => Err(RecipeError(format!(
                "reward is {:?}; use aurora or power",
                self.reward
            ))),
        }
    }

    fn check(&self) -> Result<(), RecipeError> {
        if self.scheme != SCHEME {
            return Err(RecipeError(format!(
                "scheme is {:?}; use {SCHEME}",
                self.scheme
            )));
        }
        self.find_reward()?;
        if !(1..=4).contains(&self.units.len()) {
            return Err(RecipeError(format!(
                "units has {} layers; use 1 to 4",
                self.units.len()
            )));
        }
        let widest = self.units.iter().max().copied().unwrap_or(0);
        let narrowest = self.units.iter().min().copied().unwrap_or(0);
        let initial = self.initial_bdp.as_ref();
        let [least, most] = initial.map_or([1.0, 1.0], |initial| initial.range);
        let numbers = [
            ("units", widest as f64, 1.0, 1_024.0),
            ("units", narrowest as f64, 1.0, 1_024.0),
            ("rounds", f64::from(self.rounds), 1.0, 1e6),
            (
                "initial_bdp.share",
                initial.map_or(0.0, |it| it.share),
                0.0,
                1.0,
            ),
            ("initial_bdp.range[0]", least, 1e-3, 100.0),
            ("initial_bdp.range[1]", most, least, 100.0),
            ("episodes", self.episodes as f64, 1.0, 10_000.0),
            ("decisions", self.decisions as f64, 10.0, 1e5),
            ("discount", self.discount, 0.0, 0.9999),
            ("trace", self.trace, 0.0, 1.0),
            ("clip", self.clip, 0.01, 1.0),
            ("epochs", f64::from(self.epochs), 1.0, 1_000.0),
            ("batch", self.batch as f64, 1.0, 1e6),
            ("learning_rate[0]", self.learning_rate[0], 1e-8, 1.0),
            ("learning_rate[1]", self.learning_rate[1], 1e-8, 1.0),
            ("deviation", self.deviation, 0.01, 10.0),
            ("entropy", self.entropy, 0.0, 1.0),
            ("validate_every", f64::from(self.validate_every), 1.0, 1e6),
            ("validation", self.validation as f64, 1.0, 1_000.0),
        ];
        match numbers
            .iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value))
        {
            Some((name, value, min, max)) => Err(RecipeError(format!(
                "{name} is {value}; use {min} to {max}"
            ))),
            None => self.law.check(),
        }
    }
}
