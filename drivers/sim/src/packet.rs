//! A packet in the simulator.

use narrows_net::Packet;
use narrows_units::Ecn;

/// A packet in the simulator: `Copy`, and as small as it can be, because it is copied from element
/// to element. What it carries waits in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPacket {
    pub(crate) uid: u64,
    /// Slot of what it carries, among those of its kind.
    pub(crate) slot: u32,
    /// Index of the pipe it belongs to, and which of the pipes that had this index.
    pub(crate) pipe: u32,
    pub(crate) serial: u32,
    /// No IP packet is larger.
    pub(crate) size: u16,
    pub(crate) flow: u16,
    pub(crate) route: u16,
    pub(crate) kind: SimPacketKind,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) corrupt: bool,
}

const _: () = assert!(std::mem::size_of::<SimPacket>() == 32);

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimPacketKind {
    Data,
    Ack,
    Datagram,
    /// A real-time scheme's, from its sender.
    Media,
    /// A real-time scheme's, from its receiver.
    Feedback,
}

impl Packet for SimPacket {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }
    #[inline]
    fn flow(&self) -> u16 {
        self.flow
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.dscp
    }
    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }
    #[inline]
    fn connection(&self) -> u32 {
        (self.serial << 1) | u32::from(self.is_ack())
    }
    #[inline]
    fn is_ack(&self) -> bool {
        matches!(self.kind, SimPacketKind::Ack | SimPacketKind::Feedback)
    }
    #[inline]
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    #[inline]
    fn route(&self) -> u16 {
        self.route
    }
}
