//! Changes of elements by the timeline during a run.

use crate::RateServer;
use narrows_units::{ParamError, Params};

/// One change of one element. Invalid changes are rejected when they are prepared, before the run.
pub enum Change {
    /// All parameters of a link element, changed and unchanged ones.
    Params(Params),
    /// A new server of a bottleneck; a packet in service continues at the new rate.
    Rate(Box<dyn RateServer>),
    /// All parameters of the queue of a bottleneck.
    Queue(Params),
}

impl Change {
    /// The parameters of a link element.
    ///
    /// # Errors
    /// Changes that are meant for a bottleneck.
    pub fn into_params(self) -> Result<Params, ParamError> {
        match self {
            Change::Params(params) => Ok(params),
            Change::Rate(_) | Change::Queue(_) => Err(ParamError::Conflict(
                "only a bottleneck has a rate and a queue".to_owned(),
            )),
        }
    }
}
