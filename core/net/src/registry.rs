//! The common part of the registries of queues, links and rate servers.

use crate::Files;
use narrows_units::{ParamError, Stream};
use std::sync::Arc;

/// Arguments of a constructor in addition to its parameters.
#[derive(Clone, Debug, Default)]
pub struct ElementSetup {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the element, unique in the network (`forward.2`).
    pub name: String,
    /// Contents of the files that parameters name.
    pub files: Files,
    /// Numbers of the hosts at the ends of each route: sender and receiver.
    pub hosts: Arc<[(u16, u16)]>,
}

impl ElementSetup {
    /// The setup of the element called `name`, without files.
    pub fn new(seed: u64, name: &str) -> Self {
        ElementSetup {
            seed,
            name: name.to_owned(),
            files: Files::default(),
            hosts: Arc::default(),
        }
    }

    /// The element's own stream of random numbers.
    pub fn stream(&self) -> Stream {
        Stream::new(self.seed, &format!("link/{}", self.name))
    }
}

/// An entry of a registry could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// No entry with that name.
    #[error("unknown {what} '{name}'; known: {known}")]
    Unknown {
        /// Kind of entry: queue, link element, rate.
        what: &'static str,
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Parameters were rejected.
    #[error("{name}: {error}")]
    Params {
        /// The entry.
        name: String,
        /// Why.
        error: ParamError,
    },
}

/// Declares the registry of one kind: a module per entry, the table, and the constructor.
///
/// Each module has `ENTRY: Entry`, `build` (see [`build!`]) and, where their type is given, `EFFECTS`.
macro_rules! registry {
    ($what:literal, dyn $trait:ident $(<$packet:ident>)?, $effects:ident : $($module:ident),+ $(,)?) => {
        $crate::registry::registry!($what, dyn $trait $(<$packet>)?: $($module),+);

        /// The declared effects of the entry called `name`, if there is one.
        pub fn effects(name: &str) -> Option<$crate::$effects> {
            $(if name == $module::ENTRY.name {
                return Some($module::EFFECTS);
            })+
            None
        }
    };
    ($what:literal, dyn $trait:ident $(<$packet:ident>)? : $($module:ident),+ $(,)?) => {
        $(pub mod $module;)+

        /// All entries, in the order of the reference.
        pub const ALL: &[$crate::Entry] = &[$($module::ENTRY),+];

        /// Checks `params` for the entry called `name` and fills in its defaults.
        ///
        /// # Errors
        /// An unknown name, or parameters that the entry rejects.
        pub fn params(
            name: &str,
            params: &serde_json::Map<String, serde_json::Value>,
        ) -> Result<narrows_units::Params, $crate::BuildError> {
            let Some(entry) = ALL.iter().find(|entry| entry.name == name) else {
                return Err(unknown(name));
            };
            narrows_units::Params::from_json(entry.params, params)
                .map_err(|error| $crate::BuildError::Params { name: name.to_owned(), error })
        }

        fn unknown(name: &str) -> $crate::BuildError {
            $crate::BuildError::Unknown {
                what: $what,
                name: name.to_owned(),
                known: ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
            }
        }

        /// Builds the entry called `name`.
        ///
        /// # Errors
        /// An unknown name, or parameters that the entry rejects.
        pub fn build $(<$packet: $crate::Packet + 'static>)? (
            name: &str,
            params: &serde_json::Map<String, serde_json::Value>,
            setup: &$crate::ElementSetup,
        ) -> Result<Box<dyn $trait $(<$packet>)?>, $crate::BuildError> {
            let params = self::params(name, params)?;
            $(if name == $module::ENTRY.name {
                return $module::build(&params, setup)
                    .map_err(|error| $crate::BuildError::Params { name: name.to_owned(), error });
            })+
            Err(unknown(name))
        }
    };
}

/// Defines `build` of a module, as `dyn TRAIT: |params, setup| VALUE`; a `?` in the value rejects parameters.
macro_rules! build {
    (dyn $trait:ident $(<$packet:ident>)? : |$params:pat_param, $setup:pat_param| $value:expr) => {
        /// Builds it from parameters that were checked individually.
        ///
        /// # Errors
        /// Parameters that contradict each other, or an invalid file.
        pub fn build $(<$packet: $crate::Packet + 'static>)? (
            $params: &narrows_units::Params,
            $setup: &$crate::ElementSetup,
        ) -> Result<Box<dyn $trait $(<$packet>)?>, narrows_units::ParamError> {
            Ok(Box::new($value))
        }
    };
}
pub(crate) use {build, registry};
