//! A kind of traffic outside Narrows: [`imix`].
#![forbid(unsafe_code)]

pub mod imix;
