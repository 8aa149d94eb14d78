//! Parts that several schemes are made of.

mod classic;
mod hystart_pp;
mod window;

pub use classic::{Cause, Classic, Congestion, Rules};
pub use hystart_pp::{HyStartPp, Step as HyStartStep};
pub use window::Window;
