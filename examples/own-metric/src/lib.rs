//! A metric outside Narrows: [`delay_variation`].
#![forbid(unsafe_code)]

pub mod delay_variation;
