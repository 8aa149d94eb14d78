//! Inputs and outputs of an end of a tunnel.

use super::counts::DatagramRefusal;
use crate::keys::{Secret, Sender};
use narrows_units::{Span, Time};
use std::net::SocketAddr;

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Calls the listener at this address.
    Dialer(SocketAddr),
    /// Listens for calls.
    Listener,
}

impl Role {
    pub(super) const fn sender(self) -> Sender {
        match self {
            Role::Dialer(_) => Sender::Dialer,
            Role::Listener => Sender::Listener,
        }
    }
}

/// Configuration of one end.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Which end it is.
    pub role: Role,
    /// Parameters that both ends share.
    pub secret: Secret,
    /// A random number; nonces count up from there, so that a process never repeats one.
    pub salt: u64,
    /// Time between clock messages.
    pub clock_gap: Span,
    /// A dialer that has received nothing for this long calls again.
    pub silence: Span,
    /// Largest IP packet that the interface towards the other end can send, in bytes.
    pub interface_mtu: u32,
}

/// State of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// No session exists.
    Waiting,
    /// Packets can be sent.
    Open,
    /// One of the ends has closed the session. Datagrams still in flight are accepted.
    Ended,
    /// The other end uses this version of the protocol, which is not supported.
    Incompatible(u8),
}

/// Four stamps: the sending and arrival times of a datagram in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// When the local end sent, by its clock.
    pub sent: Time,
    /// When that arrived, by the other clock.
    pub arrived_there: Time,
    /// When the other end sent, by its clock.
    pub sent_there: Time,
    /// When that arrived, by the local clock.
    pub arrived: Time,
}

/// Classification of an arriving datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedDatagram<'a> {
    /// An IP packet to deliver.
    Packet {
        /// Number of its datagram.
        id: u64,
        /// When it was sent, by the other end's clock.
        sent: Time,
        /// The packet.
        packet: &'a [u8],
    },
    /// A clock message.
    Clock {
        /// Number of its datagram.
        id: u64,
        /// When it was sent, by the other end's clock.
        sent: Time,
        /// All four stamps, if the other end had received a datagram.
        exchange: Option<ClockExchange>,
    },
    /// Part of the handshake, or the end of the session.
    Control,
    /// Rejected.
    Refused(DatagramRefusal),
}

/// A datagram that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Its destination.
    pub to: SocketAddr,
    /// Its number.
    pub id: u64,
    /// True if it belongs to a session (and into the logs) or to the handshake.
    pub in_session: bool,
}
