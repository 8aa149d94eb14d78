//! The parts of a scenario that some metrics are about.

/// The part of a scenario that a metric is about, if not every scenario has it. Reports omit such a metric where no run
/// has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Several flows that run together.
    Sharing,
    /// Transfers of applications.
    Transfers,
    /// Datagrams of applications.
    Datagrams,
    /// Applications that choose their load.
    Load,
    /// Frames of video.
    Frames,
}

impl Group {
    /// Its name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Group::Sharing => "sharing",
            Group::Transfers => "transfers",
            Group::Datagrams => "datagrams",
            Group::Load => "load",
            Group::Frames => "frames",
        }
    }

    /// The reason for the absence of a value where a flow has nothing that the metric is about; `None` if every flow
    /// has it.
    pub(super) fn no_subject(self) -> Option<&'static str> {
        match self {
            Group::Sharing => None,
            Group::Transfers => Some("no application made transfers"),
            Group::Datagrams => Some("no sink of datagrams reported"),
            Group::Load => Some("no application that chooses its load took part"),
            Group::Frames => Some("no frames of video were sent"),
        }
    }

    /// That reason as the result of a computation.
    pub(super) fn absent<T>(self) -> Result<T, String> {
        Err(self.no_subject().unwrap_or("it is not defined").into())
    }
}
