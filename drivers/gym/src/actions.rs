//! Actions of agents.

use narrows_cc::parts::{actions, neural_policy};
use narrows_cc::{CongestionControl, Setup};
use narrows_cell::{Cell, CellError, SchemeRef};
use narrows_units::{Bytes, Stream, Time};

/// The actions that a scheme takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpace {
    /// The number of one of so many actions.
    Choice(usize),
    /// One number for each pair of bounds.
    Numbers(Vec<(f32, f32)>),
}

impl ActionSpace {
    /// The actions of `scheme`; `None` if it makes no decisions.
    pub(crate) fn from_scheme(scheme: &dyn CongestionControl) -> Option<Self> {
        let bounds = |space: &actions::ActionSpace| match *space {
            actions::ActionSpace::Choice(names) => (0.0, (names.len() - 1) as f32),
            actions::ActionSpace::Interval { low, high, .. } => (low as f32, high as f32),
        };
        match scheme.action_space().as_slice() {
            [] => None,
            [actions::ActionSpace::Choice(names)] => Some(ActionSpace::Choice(names.len())),
            numbers => Some(ActionSpace::Numbers(numbers.iter().map(bounds).collect())),
        }
    }

    /// Numbers of one action.
    pub fn size(&self) -> usize {
        match self {
            ActionSpace::Choice(_) => 1,
            ActionSpace::Numbers(bounds) => bounds.len(),
        }
    }

    /// Moves `action` into its bounds; returns whether it had to. `None` if a number is not one.
    pub(crate) fn clip(&self, action: &mut [f32]) -> Option<bool> {
        let mut clipped = false;
        for (position, value) in action.iter_mut().enumerate() {
            if value.is_nan() {
                return None;
            }
            let (low, high) = match self {
                ActionSpace::Choice(count) => (0.0, (*count - 1) as f32),
                ActionSpace::Numbers(bounds) => bounds[position],
            };
            let inside = value.clamp(low, high);
            clipped |= inside != *value;
            *value = inside;
        }
        Some(clipped)
    }
}

/// The scheme of the flow with index `agent` of a cell.
///
/// # Errors
/// A flow whose scheme is not native, and contradictory parameters.
pub(crate) fn build_scheme(
    cell: &Cell,
    agent: usize,
) -> Result<Box<dyn CongestionControl>, CellError> {
    let flow = &cell.flows[agent];
    let SchemeRef::Native(scheme, params) = &flow.scheme else {
        return Err(CellError::Conflict("the scheme is not a native one".into()));
    };
    let transport = cell.transport(flow, flow.client());
    let setup = Setup {
        mss: Bytes::new(transport.mss()),
        initial_window: transport.initial_window,
        now: Time::ZERO,
        random: Stream::new(cell.seed, "policy"),
        ecn: false,
        files: cell.files.clone(),
    };
    (scheme.build)(params, setup).map_err(|error| CellError::Conflict(error.to_string()))
}

/// The expert's choice: the action that leads nearest to `best` from `window` (both in packets).
pub(crate) fn expert_choice(window: f64, best: f64) -> usize {
    let distance = |action: usize| {
        let after = neural_policy::window_after(action, window).max(2.0);
        (after / best).ln().abs()
    };
    let mut nearest = 0;
    for action in 1..neural_policy::ACTIONS {
        if distance(action) < distance(nearest) {
            nearest = action;
        }
    }
    nearest
}
