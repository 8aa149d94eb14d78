//! Quantities, parameters and chance: what every other crate of the core is written in.
//!
//! Nothing here reads a clock. [`Time`] is given to state machines by whoever drives them, and all
//! randomness comes from a [`Stream`] that is named and derived from the seed of the run.
#![forbid(unsafe_code)]

mod ecn;
mod entry;
mod files;
mod laws;
mod params;
mod quantity;
mod random;
mod wakeups;

pub use ecn::Ecn;
pub use entry::Entry;
pub use files::Files;
pub use laws::{Law, Zipf};
pub use params::{FileRef, Kind, ParamError, ParamSpec, Params, Value};
pub use quantity::{Bytes, Rate, RateClock, Span, Time};
pub use random::Stream;
pub use wakeups::Wakeups;
