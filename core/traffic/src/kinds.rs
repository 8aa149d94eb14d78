//! The registry of traffic. To add a kind: a file in `kinds/` and a name in this list.

use crate::Traffic;
use narrows_units::Example;

macro_rules! traffic {
    ($($module:ident),+ $(,)?) => {
        // All kinds share one signature, including those that cannot fail.
        $(#[allow(clippy::unnecessary_wraps)] pub mod $module;)+

        /// All kinds of traffic, in the order of the reference.
        pub const ALL: &[Traffic] = &[$($module::TRAFFIC),+];
    };
}

traffic!(bulk, transfer, onoff, cbr, poisson, requests, arrivals, web);

/// An example that is drawn over ten seconds.
const fn ten_seconds(written: &'static str, shows: &'static str) -> Example {
    Example::new(written, shows).picture(r#"{"seconds": 10, "bin_ms": 100}"#)
}

/// The kind called `name`.
pub fn find(name: &str) -> Option<&'static Traffic> {
    ALL.iter().find(|traffic| traffic.entry.name == name)
}
