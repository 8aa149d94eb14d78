//! Reasons for which parameters are rejected.

/// Reason for which parameters were rejected. Each message is one sentence that names what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// A name that the owner does not declare.
    #[error("unknown parameter '{name}'; allowed: {allowed}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// The declared names.
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
        /// Expected kind.
        expected: &'static str,
        /// Actual value.
        got: String,
    },
    /// A value out of bounds.
    #[error("parameter '{name}' must be between {low} and {high}, not {got}")]
    Range {
        /// Parameter.
        name: String,
        /// Actual value.
        got: f64,
        /// Minimum allowed.
        low: f64,
        /// Maximum allowed.
        high: f64,
    },
    /// A word that is not among the choices.
    #[error("parameter '{name}' must be one of {allowed}, not '{got}'")]
    Choice {
        /// Parameter.
        name: String,
        /// The unknown word.
        got: String,
        /// Allowed words.
        allowed: String,
    },
    /// An inconsistent combination; the text names it.
    #[error("{0}")]
    Conflict(String),
}
