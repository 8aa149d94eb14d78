//! A packet in the simulator.

use narrows_net::Packet;
use narrows_units::Ecn;

/// A packet in the simulator: `Copy`, and as small as it can be, because it is copied from element
/// to element. What it carries waits in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPacket {
    pub(crate) uid: u64,
    /// Slot of its payload.
    pub(crate) slot: u32,
    /// Index of the endpoint it is for, and which of the endpoints that had this index.
    pub(crate) to: u32,
    pub(crate) serial: u32,
    /// IP bytes; no IP packet is larger.
    pub(crate) size: u16,
    pub(crate) flow: u16,
    pub(crate) route: u16,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) corrupt: bool,
    /// True for acknowledgements and other feedback of a receiver.
    pub(crate) is_ack: bool,
}

const _: () = assert!(std::mem::size_of::<SimPacket>() == 32);

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
        (self.serial << 1) | u32::from(self.is_ack)
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.is_ack
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
