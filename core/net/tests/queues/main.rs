//! Queue disciplines against their specifications: decision by decision, with the time of each.
//!
//! Each active queue management is compared with a second, naive transcription of its specification
//! that shares no code and no structure with the first: both are given the same recorded arrivals
//! before a server, and every packet must leave, be marked or be dropped at the same time in both.
//! Beside that stand vectors that were worked out by hand.

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
