//! Reports of elements about drops, marks and copies.

use crate::Packet;
use narrows_units::Time;

/// Reason of a drop, as written to records (`queue_full`, `random_loss` ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason(pub &'static str);

/// One packet dropped by one element.
#[derive(Clone, Copy, Debug)]
pub struct PacketDrop<P> {
    /// The packet.
    pub packet: P,
    /// When.
    pub at: Time,
    /// Index of the element in its network.
    pub element: u16,
    /// Why.
    pub reason: DropReason,
}

/// One packet copied by one element. The driver assigns the copy a separate identity and inserts it
/// behind the element with [`Network::inject`](crate::Network::inject).
#[derive(Clone, Copy, Debug)]
pub struct Copied<P> {
    /// The original.
    pub packet: P,
    /// When.
    pub at: Time,
    /// Index of the element in its network.
    pub element: u16,
}

/// The channel through which elements report drops and marks.
///
/// One object serves a whole network; drivers drain [`Outcomes::drops`] after each step. The
/// buffer keeps its capacity, so reporting does not allocate.
#[derive(Clone, Debug)]
pub struct Outcomes<P> {
    /// Drops since the driver last looked, in order of time.
    pub drops: Vec<PacketDrop<P>>,
    /// Copies since the driver last looked. A network pauses until they are taken.
    pub copies: Vec<Copied<P>>,
    /// Element that is currently active, set by the path.
    pub(crate) element: u16,
    /// True if that element has reported anything in this step, so that usually one check suffices.
    pub(crate) reported: bool,
    /// Packets dropped, bytes dropped and packets marked by that element in this step.
    pub(crate) dropped_packets: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) marked_packets: u64,
    /// Packets and bytes of copies made by that element since the path last looked.
    pub(crate) copied_packets: u64,
    pub(crate) copied_bytes: u64,
}

impl<P: Packet> Outcomes<P> {
    /// An empty channel.
    pub fn new() -> Self {
        Outcomes {
            drops: Vec::with_capacity(64),
            copies: Vec::new(),
            element: 0,
            reported: false,
            dropped_packets: 0,
            dropped_bytes: 0,
            marked_packets: 0,
            copied_packets: 0,
            copied_bytes: 0,
        }
    }

    /// Reports that `packet` was dropped at `now`.
    #[inline]
    pub fn drop(&mut self, now: Time, packet: P, reason: DropReason) {
        self.reported = true;
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(packet.size());
        self.drops.push(PacketDrop {
            packet,
            at: now,
            element: self.element,
            reason,
        });
    }

    /// Reports that a copy of `packet` was made at `now`.
    #[inline]
    pub fn copy(&mut self, now: Time, packet: P) {
        self.reported = true;
        self.copied_packets += 1;
        self.copied_bytes += u64::from(packet.size());
        self.copies.push(Copied {
            packet,
            at: now,
            element: self.element,
        });
    }

    /// Marks `packet` with congestion experienced and reports it.
    #[inline]
    pub fn mark(&mut self, packet: &mut P) {
        packet.mark();
        self.reported = true;
        self.marked_packets += 1;
    }
}

impl<P: Packet> Default for Outcomes<P> {
    fn default() -> Self {
        Outcomes::new()
    }
}
