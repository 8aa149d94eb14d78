//! Quantities, parameters and random numbers: the vocabulary of every other crate of the core.
//!
//! Nothing here reads a clock. Drivers pass [`Time`] to the state machines, and all randomness comes from a [`Stream`]
//! that is named and derived from the seed of the run.
#![forbid(unsafe_code)]

mod direction;
mod distributions;
mod ecn;
mod files;
mod params;
mod quantity;
mod random;
mod registry_entry;
mod wakeups;

pub use direction::Direction;
pub use distributions::{Distribution, Zipf};
pub use ecn::Ecn;
pub use files::Files;
pub use params::{FileRef, Kind, ParamError, ParamSpec, Params, ReadParam, Value, join};
pub use quantity::{Bytes, Rate, RateClock, Span, Time};
pub use random::Stream;
pub use registry_entry::{Entry, Example};
pub use wakeups::Wakeups;
