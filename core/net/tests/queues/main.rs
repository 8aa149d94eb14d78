//! Queue disciplines compared with their specifications: decision by decision, with the time of
//! each.
//!
//! Each active queue management is compared with a second, naive transcription of its specification
//! that shares neither code nor structure with the first: both receive the same recorded arrivals
//! in front of a server, and every packet must leave, be marked or be dropped at the same time in
//! both. Manually computed vectors are checked as well.

mod cake;
mod cake_model;
mod codel;
mod dualpi2;
mod fair;
mod fqcodel;
mod harness;
mod pie;
mod red;
mod simple;
mod step;
