//! Model files and what they contain: networks and rule tables.

mod lstm;
pub mod model_file;
mod neural_network;
pub mod rule_table;

pub use lstm::Lstm;
pub use neural_network::{LayerKind, Network};
