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
    /// Waits to be called.
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
    /// A random number; nonces count up from there, so that no process ever repeats one.
    pub salt: u64,
    /// Time between clock messages.
    pub clock_gap: Span,
    /// A dialer that has heard nothing for so long calls again.
    pub silence: Span,
    /// Largest IP packet that the interface towards the other end can send, in bytes.
    pub interface_mtu: u32,
}

/// State of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// There is no session.
    Waiting,
    /// Packets can be sent.
    Open,
    /// One of the ends has ended the session. What is still on its way is taken.
    Ended,
    /// The other end speaks this version of the protocol, which we do not.
    Incompatible(u8),
}

/// Four stamps: something went there and something came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// When we sent, by our clock.
    pub sent: Time,
    /// When that arrived, by the other clock.
    pub arrived_there: Time,
    /// When the other end sent, by its clock.
    pub sent_there: Time,
    /// When that arrived, by our clock.
    pub arrived: Time,
}

/// Verdict about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedDatagram<'a> {
    /// An IP packet for the inside.
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
        /// All four stamps, if the other end had heard of us.
        exchange: Option<ClockExchange>,
    },
    /// Part of the handshake, or the end of the session.
    Control,
    /// Not believed.
    Refused(DatagramRefusal),
}

/// A datagram that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Where to.
    pub to: SocketAddr,
    /// Its number.
    pub id: u64,
    /// True if it belongs to a session (and into the logs) or to the handshake.
    pub in_session: bool,
}
