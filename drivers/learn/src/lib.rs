//! Trainers of learned schemes.
//!
//! The simulator is the training ground: a scheme's decisions are left to the trainer ([`narrows_sim::World::step`]), which
//! sees the inputs that the scheme's network sees and knows the path. [`Imitation`] trains the recurrent networks of Indigo
//! and Muses by `DAgger` (Ross et al., AISTATS 2011): the network decides, an expert that knows the path's best window says
//! what should have been decided, and the network is fitted to all answers so far. [`Reinforcement`] trains Aurora's policy
//! by the rewards of the gym alone, with proximal policy optimisation.
//!
//! Everything is reproducible: a schedule counts rounds, never time; random numbers come from named streams; sums of single
//! precision have a fixed order, whatever the number of threads. The same recipe and seed give the same bytes on every
//! machine.
#![forbid(unsafe_code)]

mod adam;
mod episode;
mod error;
mod expert;
mod gradient;
mod imitation;
mod lstm_weights;
mod model_file;
mod objective;
mod paths;
mod perceptron;
mod ppo;
mod ppo_recipe;
mod recipe;
mod replay;
mod rollout;
mod rule_search;
mod rules;
mod rules_of_thumb;
mod saved_state;
mod score;
mod trained_scheme;
mod training;

pub use error::RecipeError;
pub use imitation::{Imitation, RoundReport};
pub use objective::Objective;
pub use paths::{AckBunches, Path, PathLaw};
pub use ppo::{Reinforcement, ReinforcementReport};
pub use ppo_recipe::ReinforcementRecipe;
pub use recipe::Recipe;
pub use rule_search::{RuleRecipe, RuleReport, RuleSearch};
pub use score::{LinkScore, Score, Trial, score, score_rules};
pub use training::{Saved, Training};
