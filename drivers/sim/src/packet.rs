//! A packet in the simulator.

use narrows_net::{Direction, Packet};
use narrows_record::Entered;
use narrows_units::Ecn;
use std::num::NonZeroU64;

/// An endpoint by its slot, and its serial number among those that had this slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointId {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

/// A packet in the simulator: `Copy`, and as small as possible, because it is copied from element to element. Its
/// content is in a slot.
///
/// Four words with several values each: a dozen members would be copied one by one each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPacket {
    /// Its key in the log. Never zero, so that an `Option` of it has the same size and is copied in the same pieces.
    key: NonZeroU64,
    /// Its destination endpoint: index, and above it the serial number.
    to: u64,
    /// Slot of its payload, and above it the IP bytes.
    load: u64,
    /// See [`FLOW`] and the following.
    label: u64,
}

const _: () = assert!(std::mem::size_of::<Option<SimPacket>>() == 32);

/// Bit in the label at which each value begins.
const FLOW: u32 = 0;
const ROUTE: u32 = 16;
const DSCP: u32 = 32;
const ECN: u32 = 40;
const DIRECTION: u32 = 48;
const IS_ACK: u32 = 56;
const CORRUPT: u32 = 57;

/// The common part of all packets of an endpoint.
pub(crate) struct Label {
    pub(crate) to: u32,
    pub(crate) flow: u16,
    pub(crate) route: u16,
    pub(crate) direction: Direction,
    pub(crate) dscp: u8,
    /// True for acknowledgements and other feedback of a receiver.
    pub(crate) is_ack: bool,
}

impl SimPacket {
    /// A packet without content that others are made from.
    pub(crate) fn template(label: &Label) -> Self {
        SimPacket {
            key: NonZeroU64::MAX,
            to: u64::from(label.to),
            load: 0,
            label: u64::from(label.flow) << FLOW
                | u64::from(label.route) << ROUTE
                | u64::from(label.dscp) << DSCP
                | (label.direction as u64) << DIRECTION
                | u64::from(label.is_ack) << IS_ACK,
        }
    }

    /// Sets the serial number, which distinguishes endpoints that had the same index.
    pub(crate) fn set_serial(&mut self, serial: u32) {
        self.to = self.to & u64::from(u32::MAX) | u64::from(serial) << 32;
    }

    /// The same with a payload.
    #[inline]
    pub(crate) fn carrying(self, slot: u32, size: u32, ecn: Ecn) -> Self {
        SimPacket {
            load: u64::from(slot) | u64::from(size) << 32,
            label: self.label | (ecn as u64) << ECN,
            ..self
        }
    }

    #[inline]
    pub(crate) fn set_key(&mut self, entered: Entered) {
        self.key = NonZeroU64::new(entered.key).expect("no key is zero");
    }

    /// The packet in the form of the log.
    #[inline]
    pub(crate) fn entered(&self) -> Entered {
        Entered {
            key: self.key.get(),
            flow: self.flow(),
            direction: self.direction(),
            size: self.size(),
        }
    }

    /// Its destination endpoint.
    #[inline]
    pub(crate) fn to(&self) -> EndpointId {
        EndpointId {
            index: self.to as u32,
            serial: (self.to >> 32) as u32,
        }
    }

    /// Slot of its payload.
    #[inline]
    pub(crate) fn slot(&self) -> u32 {
        self.load as u32
    }

    /// Direction in which it travels.
    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        Direction::BOTH[usize::from(self.has(DIRECTION))]
    }

    #[inline]
    pub(crate) fn is_corrupt(&self) -> bool {
        self.has(CORRUPT)
    }

    #[inline]
    fn has(&self, bit: u32) -> bool {
        self.label >> bit & 1 != 0
    }
}

impl Packet for SimPacket {
    #[inline]
    fn size(&self) -> u32 {
        (self.load >> 32) as u32
    }
    #[inline]
    fn flow(&self) -> u16 {
        (self.label >> FLOW) as u16
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.label >> ECN) as u8)
    }
    #[inline]
    fn mark(&mut self) {
        self.label |= (Ecn::Ce as u64) << ECN;
    }
    #[inline]
    fn dscp(&self) -> u8 {
        (self.label >> DSCP) as u8
    }
    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.label = self.label & !(0xff << DSCP) | u64::from(dscp) << DSCP;
    }
    #[inline]
    fn connection(&self) -> u32 {
        (self.to().serial << 1) | u32::from(self.is_ack())
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.has(IS_ACK)
    }
    #[inline]
    fn corrupt(&mut self) {
        self.label |= 1 << CORRUPT;
    }
    #[inline]
    fn route(&self) -> u16 {
        (self.label >> ROUTE) as u16
    }
}
