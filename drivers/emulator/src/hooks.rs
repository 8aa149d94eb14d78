//! Hooks of a data plane: further processing of packets in addition to the network and its record. An ordinary run has
//! none, at no cost; a shell counts packets, numbers connections, and keeps frames until they can be delivered.

use super::handle::Handle;
use super::steering::Steering;
use narrows_net::{Direction, Network};
use narrows_units::Time;

/// A packet at the edge of the network.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    /// Slot of its frame among those that are in the network.
    pub slot: u32,
    /// Number of its flow by its ports, or 0.
    pub flow: u16,
    /// Index of its route.
    pub route: u16,
    /// Its direction.
    pub direction: Direction,
    /// IP size in bytes.
    pub size: u32,
    /// Model time.
    pub at: Time,
}

/// A frame that hooks inject, and its port.
#[derive(Debug)]
pub enum Injection {
    /// Delivers the frame to the host immediately, bypassing the network.
    Deliver(u16, Vec<u8>),
    /// Counts as sent by the host now.
    Arrive(u16, Vec<u8>),
}

/// Called by the data plane's thread, which never blocks; implementations must not block either.
#[allow(unused_variables)]
pub trait Hooks {
    /// A packet enters. Returns the number of its flow, if its ports do not determine it.
    #[inline]
    fn enter(&mut self, packet: &Transit, frame: &[u8]) -> Option<u16> {
        None
    }

    /// An element has made another packet like the one in `original`.
    #[inline]
    fn copy(&mut self, original: u32, copy: u32) {}

    /// A packet has left the network.
    #[inline]
    fn leave(&mut self, packet: &Transit, network: &Network<Handle>) {}

    /// An element has dropped a packet; the reason is the element's word.
    #[inline]
    fn dropped(&mut self, packet: &Transit, element: u16, reason: &'static str) {}

    /// True if a frame that is due at `port` may be sent.
    #[inline]
    fn admits(&self, port: u16, frame: &[u8]) -> bool {
        true
    }

    /// Takes a frame that must not be sent.
    fn hold(&mut self, port: u16, frame: &[u8]) {}

    /// A frame to be injected now.
    #[inline]
    fn injection(&mut self) -> Option<Injection> {
        None
    }

    /// Time has passed.
    #[inline]
    fn observe(&mut self, now: Time, network: &Network<Handle>) {}

    /// A change of the network that was decided during the run.
    #[inline]
    fn steering(&mut self) -> Option<Steering> {
        None
    }
}

impl Hooks for () {}
