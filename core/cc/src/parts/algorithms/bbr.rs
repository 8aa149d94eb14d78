//! Components of the BBR family: the path measurements of its versions, one per file.
//!
//! Bandwidths are real numbers in bytes per second and amounts of data real numbers in bytes; both are computed with
//! operations that yield the same bits on every machine.

mod aggregation;
mod departures;
mod flow;
mod full_pipe;
mod machine;
mod max_filter;
mod min_rtt;
mod policer;
mod profile;
mod rounds;

pub use aggregation::{Aggregation, Memory};
pub use departures::Departures;
pub use flow::{BbrFlow, MIN_PACKETS};
pub use full_pipe::FullPipe;
pub use machine::Machine;
pub use max_filter::MaxFilter;
pub use min_rtt::MinRtt;
pub use policer::{PolicerDetector, PolicerTally};
pub use profile::{BbrParams, BbrProfile, Quantum};
pub use rounds::Rounds;

use crate::RateSample;
use narrows_units::{Bytes, Rate, Span};

/// The bandwidth of a delivery-rate sample, in bytes per second.
#[inline]
pub fn bandwidth(sample: &RateSample) -> f64 {
    sample.delivered.get() as f64 / sample.interval.secs()
}

/// The data that a path of `bandwidth` and `rtt` holds, in bytes.
#[inline]
pub fn bdp(bandwidth: f64, rtt: Span) -> f64 {
    bandwidth * rtt.secs()
}

/// A rate of `bytes_per_second`, at least one bit per second so that a flow never stalls.
#[inline]
pub fn rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps(((bytes_per_second * 8.0) as u64).max(1))
}

/// A real amount as whole bytes.
#[inline]
pub fn whole(bytes: f64) -> Bytes {
    Bytes::new(bytes as u64)
}
