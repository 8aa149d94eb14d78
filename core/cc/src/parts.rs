//! Parts that several schemes are made of.

mod hystart_pp;
mod window;

pub use hystart_pp::{HyStartPp, Step as HyStartStep};
pub use window::Window;
