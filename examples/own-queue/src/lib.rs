//! A queue outside Narrows: [`randomdrop`].
#![forbid(unsafe_code)]

pub mod randomdrop;
