//! A metric outside Narrows: [`pdv`].
#![forbid(unsafe_code)]

pub mod pdv;
