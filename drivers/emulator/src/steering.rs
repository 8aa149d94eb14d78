//! Changes of the network that are decided while a run is under way. A core either takes over a new timeline before the
//! first time at which it differs from the old one, or changes nothing.

use narrows_net::PendingChanges;
use narrows_units::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const OPEN: u8 = 0;
const TAKEN: u8 = 1;
const TOO_LATE: u8 = 2;

/// The outcome of a decision, shared with the thread that waits for it.
#[derive(Clone, Debug, Default)]
pub struct Settled(Arc<AtomicU8>);

impl Settled {
    /// For a decision that concerns no thread of the emulator.
    pub fn by_itself() -> Self {
        Settled(Arc::new(AtomicU8::new(TAKEN)))
    }

    /// Whether the change was carried out; `None` before that is known.
    pub fn outcome(&self) -> Option<bool> {
        match self.0.load(Ordering::Acquire) {
            OPEN => None,
            outcome => Some(outcome == TAKEN),
        }
    }

    /// The change was carried out, or was too late.
    pub(crate) fn settle(&self, taken: bool) {
        let outcome = if taken { TAKEN } else { TOO_LATE };
        self.0.store(outcome, Ordering::Release);
    }
}

/// Another course of a run from a time on.
#[derive(Debug)]
pub enum Course {
    /// The network has another timeline.
    Timeline {
        /// The timeline from the time of the change on.
        changes: PendingChanges,
        /// See [`CoreConfig::replaced_rates`](super::CoreConfig::replaced_rates).
        replaced_rates: Vec<String>,
        /// Those of [`CoreConfig::unknown_rates`](super::CoreConfig::unknown_rates).
        unknown_rates: Vec<String>,
    },
    /// A flow stops at this time.
    Stop {
        /// Number of the flow.
        flow: u16,
        /// When it stops.
        at: Time,
    },
}

impl Course {
    /// The time from which it differs from the course so far.
    pub fn from(&self) -> Time {
        match self {
            Course::Timeline { changes, .. } => changes.from(),
            Course::Stop { at, .. } => *at,
        }
    }
}

/// A decision about a run that is under way.
#[derive(Debug)]
pub struct Steering {
    /// The new course.
    pub course: Course,
    /// The outcome.
    pub settled: Settled,
}
