//! Packets of the emulator: small handles of frames, which are stored in the pool.

use narrows_net::{Direction, Ecn, Packet};
use narrows_record::Entered;

/// A packet in the elements, representing its frame.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    /// Its key in the log.
    pub(crate) key: u64,
    /// Slot of its frame in the pool.
    pub(crate) slot: u32,
    pub(crate) connection: u32,
    /// IP bytes.
    pub(crate) size: u16,
    pub(crate) flow: u16,
    pub(crate) route: u16,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// See the constants.
    pub(crate) state: u8,
}

/// The packet is a pure acknowledgement.
pub(crate) const ACK: u8 = 1;
/// Its `tos` differs from that of the frame.
pub(crate) const REMARKED: u8 = 2;
/// It has to be damaged.
pub(crate) const CORRUPT: u8 = 4;
/// It travels backward.
pub(crate) const BACKWARD: u8 = 8;

impl Handle {
    /// The packet in the form of the log.
    #[inline]
    pub(crate) fn entered(&self) -> Entered {
        Entered {
            key: self.key,
            flow: self.flow,
            direction: Direction::BOTH[usize::from(self.state & BACKWARD != 0)],
            size: u32::from(self.size),
        }
    }
}

impl Packet for Handle {
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
        Ecn::from_bits(self.tos & 3)
    }
    #[inline]
    fn mark(&mut self) {
        self.tos |= 3;
        self.state |= REMARKED;
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.tos >> 2
    }
    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.tos = dscp << 2 | self.tos & 3;
        self.state |= REMARKED;
    }
    #[inline]
    fn connection(&self) -> u32 {
        self.connection
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.state & ACK != 0
    }
    #[inline]
    fn corrupt(&mut self) {
        self.state |= CORRUPT;
    }
    #[inline]
    fn route(&self) -> u16 {
        self.route
    }
}
