//! Counters of one end.

/// Reason why a datagram was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramRefusal {
    /// Not a datagram of the tunnel, or an inconsistent one.
    Malformed,
    /// The tag is invalid.
    Forged,
    /// It belongs to an unknown session.
    UnknownSession,
    /// A duplicate.
    Replayed,
    /// Too old to be distinguished from a replay.
    TooOld,
    /// The other end speaks another version.
    Incompatible,
    /// Authentic, but its content is impossible.
    Implausible,
}

impl DatagramRefusal {
    /// All reasons, in the order of [`PeerCounts::refused`].
    pub const ALL: [DatagramRefusal; 7] = [
        DatagramRefusal::Malformed,
        DatagramRefusal::Forged,
        DatagramRefusal::UnknownSession,
        DatagramRefusal::Replayed,
        DatagramRefusal::TooOld,
        DatagramRefusal::Incompatible,
        DatagramRefusal::Implausible,
    ];

    /// The word used in files.
    pub const fn word(self) -> &'static str {
        match self {
            DatagramRefusal::Malformed => "malformed",
            DatagramRefusal::Forged => "forged",
            DatagramRefusal::UnknownSession => "unknown_session",
            DatagramRefusal::Replayed => "replayed",
            DatagramRefusal::TooOld => "too_old",
            DatagramRefusal::Incompatible => "incompatible",
            DatagramRefusal::Implausible => "implausible",
        }
    }
}

/// Everything that has arrived at one end is in exactly one of `packets`, `messages` and `refused`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// IP packets accepted, each once.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Messages of the tunnel itself.
    pub messages: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Number of times the other end was followed to another address.
    pub moves: u64,
    /// Number of times datagrams of the other end came from an address that it had not moved to.
    pub moves_refused: u64,
    refused: [u64; DatagramRefusal::ALL.len()],
}

impl PeerCounts {
    pub(super) fn refuse(&mut self, refusal: DatagramRefusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Datagrams that were refused for this reason.
    pub fn refused(&self, refusal: DatagramRefusal) -> u64 {
        self.refused[refusal as usize]
    }

    /// Datagrams that were refused for any reason.
    pub fn all_refused(&self) -> u64 {
        self.refused.iter().sum()
    }
}
