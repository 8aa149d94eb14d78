//! Recipes and states that can't be used.

use std::fmt;

/// The reason why a recipe can't be used, one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError(pub String);

impl fmt::Display for RecipeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for RecipeError {}
