//! Counters of one end.

/// Why a datagram was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a datagram of ours, or one that contradicts itself.
    Malformed,
    /// The tag is not one that the other end has made.
    Forged,
    /// It names a session that is not ours.
    UnknownSession,
    /// It has been here before.
    Replayed,
    /// Too old to be told from a replay.
    TooOld,
    /// The other end speaks another version.
    Incompatible,
    /// Authentic, but it says what cannot be.
    Implausible,
}

impl Refusal {
    /// All of them, in the order of [`Counts::refused`].
    pub const ALL: [Refusal; 7] = [
        Refusal::Malformed,
        Refusal::Forged,
        Refusal::UnknownSession,
        Refusal::Replayed,
        Refusal::TooOld,
        Refusal::Incompatible,
        Refusal::Implausible,
    ];

    /// The word used in files.
    pub const fn word(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::Forged => "forged",
            Refusal::UnknownSession => "unknown_session",
            Refusal::Replayed => "replayed",
            Refusal::TooOld => "too_old",
            Refusal::Incompatible => "incompatible",
            Refusal::Implausible => "implausible",
        }
    }
}

/// Everything that has arrived at one end is in exactly one of `packets`, `messages` and `refused`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// IP packets that were taken, each once.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Messages of the tunnel itself.
    pub messages: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Number of times the other end was followed to another address.
    pub moves: u64,
    /// Number of times datagrams of the other end came from another address at which it was not, or not alone.
    pub moves_refused: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Counts {
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Datagrams that were refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    /// Datagrams that were refused for any reason.
    pub fn all_refused(&self) -> u64 {
        self.refused.iter().sum()
    }
}
