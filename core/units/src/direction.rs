//! The two directions of a path.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Direction of a packet or a link.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Direction {
    /// From the senders' side to the receivers' side.
    #[default]
    Forward = 0,
    /// From the receivers' side to the senders' side.
    Backward = 1,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// The word used in files.
    pub const fn word(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
    }

    /// The direction that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::BOTH
            .into_iter()
            .find(|direction| direction.word() == word)
    }

    /// The other direction.
    pub const fn reverse(self) -> Self {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
