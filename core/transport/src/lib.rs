//! The bulk transport over which every window- or rate-based scheme is evaluated.
//!
//! A [`Sender`] and a [`Receiver`] are sans-IO state machines. A driver passes them the time and the packets that
//! arrived, and takes the packets to send; the same objects run in the simulator and over UDP sockets. It implements
//! what TCP and QUIC have in common: packet numbers that are never reused, acknowledgements with ranges, RTT and RTO,
//! loss detection by packet and time threshold, tail-loss probes, retransmission, Proportional Rate Reduction,
//! delivery-rate samples, pacing and ECN echo. The congestion control decides only how much may be in flight, and how
//! fast.
//!
//! Sizes: a full packet is `packet_size` bytes at the IP layer (default 1500). IPv4 (20), UDP (8) and the transport
//! header (24) leave 1448 bytes of payload, as in TCP with timestamps.
#![forbid(unsafe_code)]

mod config;
mod connection_totals;
mod delivery_rate;
mod message;
mod pacing;
mod prr;
mod rack;
mod range_set;
mod receiver;
mod rtt;
mod sack_limit;
mod sender;
mod sent_packets;
pub mod wire;

pub use config::{Config, PARAMS};
pub use connection_totals::ConnectionTotals;
pub use message::{Ack, Arrival, Body, Data, Header, Media, Outgoing};
pub use range_set::{Range, RangeSet};
pub use receiver::{Receiver, ReceiverCounters};
pub use rtt::{RtoRule, RttEstimator};
pub use sender::{Sender, SenderCounters, SenderProgress, SenderSnapshot};

use narrows_units::{Ecn, Time};

/// One end of a path: a state machine that a driver runs.
///
/// The driver calls `receive` for each packet that arrives, then `transmit` until it returns
/// `None`, and calls `transmit` again at `next_wakeup`. Times never decrease.
pub trait Endpoint: Send {
    /// A packet arrived.
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, body: &Body);

    /// The next packet to send now, if any. Variable parts are written to `body`, which is overwritten but keeps its
    /// capacity.
    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing>;

    /// Latest time for the next call of `transmit`; [`Time::FAR`] if no timer is armed.
    fn next_wakeup(&self) -> Time;
}
