//! Counters of one end.

/// Why a datagram was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramRefusal {
    /// Not a datagram of ours, or one that contradicts itself.
    Malformed,
    /// The tag is not one that the other end has made.
    Forged,
    /// It names a session that is not ours.
    UnknownSession,
    /// It has been here before.
    Replayed,
    /// Too old to be distinguished from a replay.
    TooOld,
    /// The other end speaks another version.
    Incompatible,
    /// Authentic, but it says what cannot be.
    Implausible,
}

impl DatagramRefusal {
    /// All of them, in the order of [`PeerCounts::refused`].
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
