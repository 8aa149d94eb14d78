//! A packet in the simulator.

use narrows_net::Packet;
use narrows_traffic::Stamp;
use narrows_transport::Data;
use narrows_units::Ecn;

/// A packet in the simulator: small and `Copy`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPacket {
    pub(crate) uid: u64,
    pub(crate) content: Content,
    pub(crate) size: u32,
    /// Index of the pipe it belongs to, and which of the pipes that had this index.
    pub(crate) pipe: u32,
    pub(crate) serial: u32,
    pub(crate) flow: u16,
    pub(crate) route: u16,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) corrupt: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Data(Data),
    /// An acknowledgement, in a slot.
    Ack(u32),
    Datagram(Stamp),
}

impl Packet for SimPacket {
    #[inline]
    fn size(&self) -> u32 {
        self.size
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
        matches!(self.content, Content::Ack(_))
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
