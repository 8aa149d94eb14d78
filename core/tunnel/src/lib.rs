//! The measuring tunnel as state machines: the format of its datagrams, authentication, logs, and the relation of the
//! clocks at its two ends.
//!
//! ```text
//!   namespace of one host                                              namespace of the other
//!   programs -> TUN -> Peer::seal -> UDP ~~~ the real path ~~~ UDP -> Peer::receive -> TUN -> programs
//!                        |                                                 |
//!                        v                                                 v
//!                   log: sent                                         log: arrived
//! ```
//!
//! Each IP packet gets a 64-bit id and the time at which it was sent, and travels in one UDP datagram with an
//! authentication tag ([`wire`], [`keys`]). Both ends keep columnar logs ([`log`]). The two ends share no clock:
//! [`clock`] estimates offset and drift from the stamps of exchanged datagrams, with a bound of the error, and
//! [`merge`] joins two logs into one table of one-way delays.
//!
//! Like everything under `core/`, nothing here opens a socket or reads a clock. A [`Time`] is a reading of the local
//! clock, or of the peer's clock where stated.
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
