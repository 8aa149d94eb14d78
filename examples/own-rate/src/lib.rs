//! A rate outside Narrows: [`ramp`].
#![forbid(unsafe_code)]

pub mod ramp;
