//! What the registries of queues, links and rate servers have in common.

use narrows_units::{ParamError, ParamSpec, Stream};

/// One line of a registry: how scenarios name a thing and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in scenarios.
    pub name: &'static str,
    /// What it does, one sentence.
    pub summary: &'static str,
    /// Specification or paper.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// Parameters that a bare value (`{delay: 60 ms}`) may stand for: the first whose kind fits.
    pub shorthand: &'static [&'static str],
}

impl Entry {
    /// The entry as JSON, as scenario validation and references read it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "summary": self.summary,
            "source": self.source,
            "params": self.params.iter().map(ParamSpec::to_json).collect::<Vec<_>>(),
            "shorthand": self.shorthand,
        })
    }
}

/// What a constructor gets besides its parameters.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the element, unique in the network (`forward.2`).
    pub name: String,
}

impl Setup {
    /// The element's own stream of random numbers.
    pub fn stream(&self) -> Stream {
        Stream::new(self.seed, &format!("link/{}", self.name))
    }
}

/// Why something from a registry could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// No entry of that name.
    #[error("unknown {what} '{name}'; known: {known}")]
    Unknown {
        /// Kind of thing: queue, link element, rate.
        what: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Parameters were refused.
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
/// Each module has `ENTRY: Entry` and `build(&Params, &Setup) -> Result<Box<dyn ...>, ParamError>`.
macro_rules! registry {
    ($what:literal, dyn $trait:ident $(<$packet:ident>)? : $($module:ident),+ $(,)?) => {
        $(pub mod $module;)+

        /// All entries, in the order of the reference.
        pub const ALL: &[$crate::Entry] = &[$($module::ENTRY),+];

        /// Builds the entry called `name`.
        ///
        /// # Errors
        /// An unknown name, or parameters that the entry refuses.
        pub fn build $(<$packet: $crate::Packet + 'static>)? (
            name: &str,
            params: &serde_json::Map<String, serde_json::Value>,
            setup: &$crate::Setup,
        ) -> Result<Box<dyn $trait $(<$packet>)?>, $crate::BuildError> {
            $(if name == $module::ENTRY.name {
                return narrows_units::Params::from_json($module::ENTRY.params, params)
                    .and_then(|params| $module::build(&params, setup))
                    .map_err(|error| $crate::BuildError::Params { name: name.to_owned(), error });
            })+
            Err($crate::BuildError::Unknown {
                what: $what,
                name: name.to_owned(),
                known: ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
            })
        }
    };
}
pub(crate) use registry;
