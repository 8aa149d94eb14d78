//! The virtual clock: when each part of the world acts next.

use narrows_units::{Time, Wakeups};

/// A part of the world that acts at a time of its choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Sampler,
    /// The application of a flow, by the flow's index.
    Application(usize),
    Endpoint(usize),
    /// A process that may run late.
    Process(usize),
}

const SAMPLER: usize = 0;
const FIRST_APPLICATION: usize = 1;

/// The next wake-ups of all parts, in a tree. The parts are numbered: the sampler, the applications of all flows, the
/// endpoints that exist from the start, the processes that may run late, and the endpoints of connections. On ties the
/// lower number acts first.
pub(crate) struct Clock {
    wakeups: Wakeups,
    /// Number of endpoints that exist from the start.
    fixed: usize,
    /// Number of the first such endpoint.
    first_fixed: usize,
    first_process: usize,
    /// Number of the first endpoint of a connection.
    first_connection: usize,
}

impl Clock {
    /// A clock of a world with `flows`, `fixed` endpoints that exist from the start, and `processes` that may run late.
    pub(crate) fn new(flows: usize, fixed: usize, processes: usize) -> Self {
        let first_fixed = FIRST_APPLICATION + flows;
        let first_process = first_fixed + fixed;
        let mut clock = Clock {
            wakeups: Wakeups::new(0),
            fixed,
            first_fixed,
            first_process,
            first_connection: first_process + processes,
        };
        clock.wakeups = Wakeups::new(clock.endpoint(2 * flows));
        clock
    }

    #[inline]
    fn endpoint(&self, index: usize) -> usize {
        match index.checked_sub(self.fixed) {
            Some(behind) => self.first_connection + behind,
            None => self.first_fixed + index,
        }
    }

    /// The earliest wake-up and the number of its part.
    #[inline]
    pub(crate) fn earliest(&self) -> (Time, usize) {
        self.wakeups.earliest()
    }

    /// True if the part with this number is not an endpoint of a connection.
    #[inline]
    pub(crate) fn is_fixed(&self, number: usize) -> bool {
        number < self.first_connection
    }

    /// The part with this number.
    #[inline]
    pub(crate) fn part(&self, number: usize) -> Part {
        if number >= self.first_connection {
            Part::Endpoint(number - self.first_connection + self.fixed)
        } else if number == SAMPLER {
            Part::Sampler
        } else if number < self.first_fixed {
            Part::Application(number - FIRST_APPLICATION)
        } else if number < self.first_process {
            Part::Endpoint(number - self.first_fixed)
        } else {
            Part::Process(number - self.first_process)
        }
    }

    pub(crate) fn wake_sampler(&mut self, at: Time) {
        self.wakeups.set(SAMPLER, at);
    }

    pub(crate) fn wake_application(&mut self, flow: usize, at: Time) {
        self.wakeups.set(FIRST_APPLICATION + flow, at);
    }

    pub(crate) fn wake_process(&mut self, process: usize, at: Time) {
        self.wakeups.set(self.first_process + process, at);
    }

    #[inline]
    pub(crate) fn wake_endpoint(&mut self, index: usize, at: Time) {
        let part = self.endpoint(index);
        self.wakeups.set(part, at);
    }

    /// Like [`Clock::wake_endpoint`], but a wake-up that moves to a later time may stay where it is: see
    /// [`Wakeups::bring_forward`].
    #[inline]
    pub(crate) fn bring_endpoint_forward(&mut self, index: usize, at: Time, now: Time) {
        let part = self.endpoint(index);
        self.wakeups.bring_forward(part, at, now);
    }

    /// Makes room for `endpoints`.
    pub(crate) fn grow(&mut self, endpoints: usize) {
        self.wakeups.grow(self.endpoint(endpoints));
    }
}
