//! Hooks of a data plane: what happens to packets besides the network and its record. An ordinary run has none, which
//! costs nothing; a shell counts packets, numbers connections, and keeps frames until somebody is there to take them.

use super::handle::Handle;
use narrows_net::{Direction, Network};
use narrows_units::Time;

/// A packet at the edge of the network.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    /// Number of its frame among those that are in the network.
    pub slot: u32,
    /// The way it goes.
    pub direction: Direction,
    /// IP size in bytes.
    pub size: u32,
    /// Model time.
    pub at: Time,
}

/// A frame that hooks bring in, and the port that it is for.
#[derive(Debug)]
pub enum Injection {
    /// Is handed to the host at once, past the network.
    Deliver(u16, Vec<u8>),
    /// Counts as sent by the host just now.
    Arrive(u16, Vec<u8>),
}

/// Called by the data plane's thread, which waits for nobody: neither may they.
#[allow(unused_variables)]
pub trait Hooks {
    /// A packet enters. Number of its flow, if its ports do not say it.
    #[inline]
    fn enter(&mut self, packet: &Transit, frame: &[u8]) -> Option<u16> {
        None
    }

    /// An element has made another packet like the one in `original`.
    #[inline]
    fn copy(&mut self, original: u32, copy: u32) {}

    /// A packet has come through.
    #[inline]
    fn leave(&mut self, packet: &Transit, network: &Network<Handle>) {}

    /// An element has dropped a packet, for a reason in its own word.
    #[inline]
    fn dropped(&mut self, packet: &Transit, element: u16, reason: &'static str) {}

    /// True if a frame that is due at `port` may be sent.
    #[inline]
    fn admits(&self, port: u16, frame: &[u8]) -> bool {
        true
    }

    /// Takes over a frame that may not be sent.
    fn hold(&mut self, port: u16, frame: &[u8]) {}

    /// A frame to be brought in now.
    #[inline]
    fn injection(&mut self) -> Option<Injection> {
        None
    }

    /// Time has passed.
    #[inline]
    fn observe(&mut self, now: Time, network: &Network<Handle>) {}
}

impl Hooks for () {}
