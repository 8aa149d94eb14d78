//! Declared effects of link elements and queues on packets, as promised by their documentation. Metrics and the
//! verifier use nothing else of an element.

use crate::DropReason;
use serde_json::{Map, Value};

/// Minimum share of random loss that limits the data in flight. Before its first loss a slow start sends 1 / share packets
/// on average, and as many are in flight.
pub const MIN_LOSS: f64 = 1e-4;

/// Effects of a link element on packets.
#[derive(Clone, Copy, Debug)]
pub struct LinkEffects {
    /// Time that packets spend inside.
    pub delay: DelayEffect,
    /// Order that it keeps. (None if a parameter `reorder` is true.)
    pub order: PacketOrder,
    /// Reasons for which it drops packets. (With a parameter `limit` also for lack of room.)
    pub drops: &'static [DropReason],
    /// True if it copies packets.
    pub copies: bool,
    /// True if it damages packets.
    pub corrupts: bool,
    /// True if every packet takes time, so that a window cannot pass an unlimited number of times at one instant.
    pub takes_time: bool,
    /// How it limits the data that a sender without limits can have in flight, by its parameters.
    pub limit: fn(&Map<String, Value>) -> DataLimit,
}

/// Limit that a link element sets on data in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DataLimit {
    /// None.
    None,
    /// Packets leave at a limited rate, in groups or one by one.
    Rate,
    /// Packets beyond a rate and a burst of this many bytes are dropped.
    Excess(f64),
    /// At most this many packets are inside; others are dropped.
    Room(f64),
    /// This share of packets is lost.
    Loss(f64),
}

/// A number among parameters.
pub(crate) fn number(state: &Map<String, Value>, name: &str, default: f64) -> f64 {
    state.get(name).and_then(Value::as_f64).unwrap_or(default)
}

/// Order of packets that an element keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOrder {
    /// All packets leave in order of arrival.
    All,
    /// Packets of one connection leave in order of arrival, acknowledgements and other packets separately.
    OfConnection,
    /// None.
    Free,
}

/// Time that packets spend in a link element.
#[derive(Clone, Copy, Debug)]
pub enum DelayEffect {
    /// None: packets leave when they arrive.
    None,
    /// The parameter `delay`: propagation.
    Fixed,
    /// The parameter `delay`, which is propagation, plus a non-negative time that varies from packet to packet.
    FixedAndJitter,
    /// A non-negative time that varies from packet to packet: no propagation.
    Jitter,
    /// Propagation that varies over time; the function computes its minimum in ns from the parameters at the start and
    /// those that each change sets.
    Changing(fn(&[&Map<String, Value>]) -> u64),
    /// Packets wait if this parameter has this value, otherwise none do.
    HoldIf(&'static str, &'static str),
}

impl LinkEffects {
    /// Every packet leaves unchanged when it arrives.
    pub const NONE: Self = LinkEffects {
        delay: DelayEffect::None,
        order: PacketOrder::All,
        drops: &[],
        copies: false,
        corrupts: false,
        takes_time: false,
        limit: |_| DataLimit::None,
    };

    /// Delays packets and has no other effect.
    pub const fn delays(delay: DelayEffect) -> Self {
        LinkEffects {
            delay,
            ..Self::NONE
        }
    }

    /// The same, for an element in which every packet takes time.
    pub const fn taking_time(self) -> Self {
        LinkEffects {
            takes_time: true,
            ..self
        }
    }

    /// The same, with a limit on the data in flight.
    pub const fn limiting(self, limit: fn(&Map<String, Value>) -> DataLimit) -> Self {
        LinkEffects { limit, ..self }
    }

    /// Drops packets for these reasons and does not affect the others.
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
    /// True if packets leave in the order in which they arrived.
    pub fifo: bool,
    /// Packets that it drops.
    pub drops: QueueDrops,
    /// Maximum number of waiting packets, if no parameter specifies it.
    pub packets: Option<u64>,
}

/// Packets that a queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDrops {
    /// Packets that find no room when they arrive.
    NoRoom,
    /// Arriving packets only, for any reason.
    Arriving,
    /// Any packet.
    Any,
}

impl QueueEffects {
    /// Nothing is known about the queue.
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
