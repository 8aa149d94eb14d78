//! Functions, filters and curves.

mod cube_root;
pub mod exp_log;
pub mod neural_arithmetic;
mod spline;
mod windowed_min;

pub use cube_root::{cube_root, rough_cube_root};
pub use spline::SmoothingSpline;
pub use windowed_min::WindowedMin;
