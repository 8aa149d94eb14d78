//! Why parameters are refused.

/// Why parameters were refused. Each message is one sentence that names what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// A name that the owner does not know.
    #[error("unknown parameter '{name}'; allowed: {allowed}")]
    Unknown {
        /// The name found.
        name: String,
        /// The names known.
        allowed: String,
    },
    /// A mandatory parameter is absent.
    #[error("parameter '{name}' is missing")]
    Missing {
        /// The absent name.
        name: String,
    },
    /// A value of the wrong kind.
    #[error("parameter '{name}' must be a {expected}, not {got}")]
    Kind {
        /// Parameter.
        name: String,
        /// Kind wanted.
        expected: &'static str,
        /// Value found.
        got: String,
    },
    /// A value out of bounds.
    #[error("parameter '{name}' must be between {low} and {high}, not {got}")]
    Range {
        /// Parameter.
        name: String,
        /// Value found.
        got: f64,
        /// Smallest allowed.
        low: f64,
        /// Largest allowed.
        high: f64,
    },
    /// A word that is not among the choices.
    #[error("parameter '{name}' must be one of {allowed}, not '{got}'")]
    Choice {
        /// Parameter.
        name: String,
        /// Word found.
        got: String,
        /// Words allowed.
        allowed: String,
    },
    /// A combination that makes no sense; the text says which.
    #[error("{0}")]
    Conflict(String),
}
