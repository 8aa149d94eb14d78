//! THE REGISTRY of congestion control schemes.
//!
//! To add one: a file in `schemes/` with a `pub const SCHEME: Scheme`, and its name in the list
//! below. Scenario validation, all planes, the command line, the reference, the conformance kit,
//! fuzzing and the golden tables follow from it.

use crate::{CongestionControl, Scheme, Setup};
use narrows_units::{ParamError, Params};

macro_rules! schemes {
    ($($module:ident),+ $(,)?) => {
        $(pub mod $module;)+

        /// All schemes, in the order of the reference.
        pub const ALL: &[Scheme] = &[$($module::SCHEME),+];
    };
}

schemes!(reno, cubic);

/// The scheme called `name`.
pub fn find(name: &str) -> Option<&'static Scheme> {
    ALL.iter().find(|scheme| scheme.name == name)
}

/// Builds `scheme` with checked parameters.
///
/// # Errors
/// Parameters that contradict each other.
pub fn build(
    scheme: &Scheme,
    params: &Params,
    setup: Setup,
) -> Result<Box<dyn CongestionControl>, ParamError> {
    (scheme.build)(params, setup)
}
