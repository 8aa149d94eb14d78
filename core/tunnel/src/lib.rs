//! The measuring tunnel as state machines: what its datagrams look like, whom it believes, what it
//! logs, and what it knows about the clocks at its two ends.
//!
//! ```text
//!   namespace of one host                                              namespace of the other
//!   programs -> TUN -> Peer::seal -> UDP ~~~ the real path ~~~ UDP -> Peer::receive -> TUN -> programs
//!                        |                                                 |
//!                        v                                                 v
//!                   log: sent                                         log: arrived
//! ```
//!
//! Each IP packet gets a 64-bit id and the time at which it was sent, and travels in one UDP
//! datagram with an authentication tag ([`wire`], [`keys`]). Both ends keep columnar logs
//! ([`log`]). The two ends share no clock: [`clock`] finds offset and drift from the stamps
//! of what was exchanged, with a bound of the error, and [`merge`] makes one table of one-way
//! delays out of two logs.
//!
//! Like everything under `core/`, nothing here opens a socket or reads a clock. A [`Time`] is a
//! reading of the clock of the end at hand, or of its peer where that is said.
//!
//! [`Time`]: narrows_units::Time
#![forbid(unsafe_code)]

pub mod clock;
pub mod ecn_tunnel;
pub mod keys;
pub mod log;
pub mod merge;
pub mod mtu;
mod peer;
mod replay_window;
pub mod wire;

pub use peer::{
    ClockExchange, DatagramRefusal, OutgoingDatagram, Peer, PeerConfig, PeerCounts, PeerState,
    ReceivedDatagram, Role,
};
pub use replay_window::ReplayWindow;
