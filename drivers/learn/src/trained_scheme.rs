//! The schemes that imitation trains: their inputs, windows and packets.

/// Number of actions.
pub(crate) const ACTIONS: usize = narrows_cc::parts::neural_policy::ACTIONS;

/// A scheme whose network chooses among the five changes of the window.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Name of the scheme, and kind of its models.
    pub(crate) scheme: &'static str,
    /// Inputs before the last action.
    pub(crate) features: usize,
    /// The input that holds the window, and the window (packets) that corresponds to an input of 1.
    window: (usize, f64),
    /// Minimum and maximum window in packets.
    bounds: (f64, f64),
    /// IP size of a packet in bytes.
    pub(crate) packet_size: u32,
    /// Factors of the features on their way into a network in training, so that usual values are near 1. They are part of
    /// the weights of the finished model.
    pub(crate) gains: &'static [f32],
}

const SUBJECTS: &[Subject] = &[
    Subject {
        scheme: "indigo",
        features: 4,
        window: (3, 5_000.0),
        bounds: (2.0, 100_000.0),
        packet_size: 1_470,
        gains: &[5.0, 10.0, 10.0, 25.0],
    },
    Subject {
        scheme: "muses",
        features: 6,
        window: (5, 12_500.0),
        bounds: (10.0, 12_500.0),
        packet_size: 1_500,
        gains: &[2.0, 1.0, 5.0, 5.0, 5.0, 10.0],
    },
];

impl Subject {
    /// The entry of `scheme`.
    pub(crate) fn find(scheme: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|subject| subject.scheme == scheme)
    }

    /// The names of all entries.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SUBJECTS.iter().map(|subject| subject.scheme)
    }

    /// Its scheme, and the size of its packets.
    pub(crate) fn flow(&self) -> (&'static str, u32) {
        (self.scheme, self.packet_size)
    }

    /// The window in packets that an observation shows.
    pub(crate) fn window(&self, observation: &[f32]) -> f64 {
        f64::from(observation[self.window.0]) * self.window.1
    }

    /// The window after an action.
    pub(crate) fn window_after(&self, action: usize, window: f64) -> f64 {
        narrows_cc::parts::neural_policy::window_after(action, window)
            .clamp(self.bounds.0, self.bounds.1)
    }
}
