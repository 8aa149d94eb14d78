//! Where elements bear witness of what they did to packets.

use crate::Packet;
use narrows_units::Time;

/// Why a packet was dropped, as written to records (`queue_full`, `random_loss` ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub &'static str);

/// One packet dropped by one element.
#[derive(Clone, Copy, Debug)]
pub struct Drop<P> {
    /// The packet.
    pub packet: P,
    /// When.
    pub at: Time,
    /// Index of the element on its path.
    pub element: u16,
    /// Why.
    pub reason: Reason,
}

/// The channel through which elements report drops and marks.
///
/// One object serves a whole network; drivers drain [`Outcomes::drops`] after each step. The
/// buffer keeps its capacity, so reporting does not allocate.
#[derive(Clone, Debug)]
pub struct Outcomes<P> {
    /// Drops since the driver last looked, in order of time.
    pub drops: Vec<Drop<P>>,
    /// Element that is at work, set by the path.
    pub(crate) element: u16,
    /// Packets dropped, bytes dropped and packets marked by that element in this step.
    pub(crate) dropped_packets: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) marked_packets: u64,
}

impl<P: Packet> Outcomes<P> {
    /// An empty channel.
    pub fn new() -> Self {
        Outcomes {
            drops: Vec::with_capacity(64),
            element: 0,
            dropped_packets: 0,
            dropped_bytes: 0,
            marked_packets: 0,
        }
    }

    /// Reports that `packet` was dropped at `now`.
    #[inline]
    pub fn drop(&mut self, now: Time, packet: P, reason: Reason) {
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(packet.size());
        self.drops.push(Drop {
            packet,
            at: now,
            element: self.element,
            reason,
        });
    }

    /// Marks `packet` with congestion experienced and reports it.
    #[inline]
    pub fn mark(&mut self, packet: &mut P) {
        packet.mark();
        self.marked_packets += 1;
    }
}

impl<P: Packet> Default for Outcomes<P> {
    fn default() -> Self {
        Outcomes::new()
    }
}
