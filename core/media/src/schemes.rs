//! THE REGISTRY of real-time schemes.
//!
//! To add one: a file in `schemes/` with a `pub const SCHEME: Media`, and its name in the list below. The
//! file's header is what `narrows schemes NAME` shows.

use crate::Media;

macro_rules! schemes {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// All real-time schemes, in the order of the reference.
        pub const ALL: &[Media] = &[$($module::SCHEME),*];

        /// The files of all schemes, in the same order.
        const FILES: &[&str] = &[$(include_str!(concat!("schemes/", stringify!($module), ".rs"))),*];
    };
}

schemes! {
    sprout,
    scream,
    gcc,
}

/// The scheme called `name`.
pub fn find(name: &str) -> Option<&'static Media> {
    ALL.iter().find(|scheme| scheme.name == name)
}

/// The header of the file of the scheme called `name`, as [`narrows_cc::schemes::page`].
pub fn page(name: &str) -> Option<String> {
    let index = ALL.iter().position(|scheme| scheme.name == name)?;
    Some(narrows_cc::schemes::header(FILES[index]))
}
