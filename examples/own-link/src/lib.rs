//! A link element outside Narrows: [`biterrors`].
#![forbid(unsafe_code)]

pub mod biterrors;
