//! Declared effects of link elements and queues on packets: what their documentation promises, for metrics and the
//! verifier, which read nothing else of an element.

use crate::DropReason;
use serde_json::{Map, Value};

/// Effects of a link element on packets.
#[derive(Clone, Copy, Debug)]
pub struct LinkEffects {
    /// Time that packets spend inside.
    pub delay: DelayEffect,
    /// Order that it keeps. (None where a parameter `reorder` is true.)
    pub order: PacketOrder,
    /// Reasons for which it drops packets. (With a parameter `limit` also for want of room.)
    pub drops: &'static [DropReason],
    /// True if it copies packets.
    pub copies: bool,
    /// True if it damages packets.
    pub corrupts: bool,
}

/// Order of packets that an element keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOrder {
    /// All leave as they came.
    All,
    /// Packets of one connection leave as they came, acknowledgements and others apart.
    OfConnection,
    /// None.
    Free,
}

/// Time that packets spend in a link element.
#[derive(Clone, Copy, Debug)]
pub enum DelayEffect {
    /// None: packets leave when they come.
    None,
    /// The parameter `delay`: propagation.
    Fixed,
    /// The parameter `delay`, which is propagation, and some time from zero on that differs from packet to packet.
    FixedAndJitter,
    /// Some time from zero on that differs from packet to packet: no propagation.
    Jitter,
    /// Propagation that differs over time; the least of it in ns, from the parameters at the start and those that each
    /// change sets.
    Changing(fn(&[&Map<String, Value>]) -> u64),
    /// Packets wait if this parameter has this value, else none do.
    HoldIf(&'static str, &'static str),
}

impl LinkEffects {
    /// Every packet leaves when it comes, as it came.
    pub const NONE: Self = LinkEffects {
        delay: DelayEffect::None,
        order: PacketOrder::All,
        drops: &[],
        copies: false,
        corrupts: false,
    };

    /// Delays packets and does nothing else to them.
    pub const fn delays(delay: DelayEffect) -> Self {
        LinkEffects {
            delay,
            ..Self::NONE
        }
    }

    /// Drops packets for one reason and does nothing to the others.
    pub const fn drops(reasons: &'static [DropReason]) -> Self {
        LinkEffects {
            drops: reasons,
            ..Self::NONE
        }
    }
}

/// Effects of a queue on packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEffects {
    /// True if packets leave in the order in which they came.
    pub fifo: bool,
    /// Packets that it drops.
    pub drops: QueueDrops,
    /// Packets that may wait, where no parameter says it.
    pub packets: Option<u64>,
}

/// Packets that a queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDrops {
    /// Those that find no room when they arrive.
    NoRoom,
    /// Arriving ones only, for whatever reason.
    Arriving,
    /// Any.
    Any,
}

impl QueueEffects {
    /// Nothing is known of it.
    pub const ANY: Self = QueueEffects {
        fifo: false,
        drops: QueueDrops::Any,
        packets: None,
    };

    /// First in, first out.
    pub const fn fifo(drops: QueueDrops) -> Self {
        QueueEffects {
            fifo: true,
            drops,
            packets: None,
        }
    }
}
