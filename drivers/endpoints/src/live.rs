//! States of a sender for those who watch a live run.

use super::{Channel, EndpointMessage, EndpointTask, StateSample};
use narrows_units::{Span, Time};

/// Time between two reports.
const DISTANCE: Span = Span::from_ms(200);

/// Reports the latest sample now and then, if the run is live.
pub(super) struct LiveStates {
    next: Time,
}

impl LiveStates {
    pub(super) fn new(task: &EndpointTask) -> Self {
        LiveStates {
            next: if task.is_live { Time::ZERO } else { Time::FAR },
        }
    }

    /// Reports the last of `states`, if it is time.
    pub(super) fn report(&mut self, now: Time, states: &[StateSample], channel: &mut Channel) {
        if now < self.next {
            return;
        }
        if let Some(state) = states.last() {
            self.next = now + DISTANCE;
            // An agent that has ended is noticed by the end of its channel.
            let _ = channel.send(&EndpointMessage::State(Box::new(state.clone())));
        }
    }
}
