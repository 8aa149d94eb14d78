//! The conformance kit for real-time schemes, and a pipe between two ends for their tests.
//!
//! The pipe is far simpler than the simulator: a rate, a queue, a delay and randomness in each direction. It exercises
//! schemes; real measurements use the simulator.

mod conformance;
mod pipe;

pub use conformance::check;
pub use pipe::{Passed, Pipe, Way};

use crate::{Media, MediaSetup};
use narrows_units::{Params, Stream, Time};

/// The construction arguments of an end in tests.
pub fn setup(seed: u64) -> MediaSetup {
    MediaSetup {
        now: Time::ZERO,
        packet_size: 1500,
        random: Stream::new(seed, "media"),
    }
}

/// Parameters of `scheme`: its defaults, those of a profile, and others (texts in base units), which go first.
///
/// # Panics
/// If the scheme does not have a name or value.
pub fn params(scheme: &Media, profile: Option<&str>, set: &[(&str, &str)]) -> Params {
    let params = Params::resolve(scheme.params, []).expect("defaults resolve");
    let params = params.with_defaults(scheme.params, set);
    let Some(name) = profile else { return params };
    let profile = scheme.profiles.iter().find(|profile| profile.name == name);
    params.with_defaults(
        scheme.params,
        profile.expect("a profile that exists").params,
    )
}
