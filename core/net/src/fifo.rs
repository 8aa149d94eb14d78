//! Storage in order of arrival, with an exact backlog: the basis of most queue disciplines.

use crate::{Backlog, DropReason, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params};
use std::collections::VecDeque;

/// Packets in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    store: VecDeque<P>,
    backlog: Backlog,
}

impl<P: Packet> Fifo<P> {
    /// An empty store.
    pub fn new() -> Self {
        Fifo {
            store: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, packet: P) {
        self.backlog.add(packet.size());
        self.store.push_back(packet);
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let packet = self.store.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    /// The backlog.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Calls `visit` for each packet, oldest first.
    pub fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.store.iter().for_each(visit);
    }
}

impl<P: Packet> Default for Fifo<P> {
    fn default() -> Self {
        Fifo::new()
    }
}

/// Reason of drops by a queue without room.
pub const QUEUE_FULL: DropReason = DropReason("queue_full");

/// The limits of disciplines whose specification leaves the buffer to the operator.
pub const OPTIONAL_LIMIT: [ParamSpec; 2] = [
    ParamSpec::new(
        "bytes",
        Kind::Bytes,
        "Maximum number of waiting bytes (IP sizes); absent: no limit.",
    )
    .range(1.0, 1e15),
    ParamSpec::new(
        "packets",
        Kind::Packets,
        "Maximum number of waiting packets; absent: no limit.",
    )
    .range(1.0, 4e9),
];

/// Maximum numbers of waiting bytes and packets; the packet in service does not count.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimit {
    bytes: u64,
    packets: u32,
}

impl QueueLimit {
    /// From the parameters `bytes` and `packets`, at least one of which is required.
    ///
    /// # Errors
    /// Neither is given.
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let (bytes, packets) = (params.integer("bytes"), params.integer("packets"));
        if bytes.is_none() && packets.is_none() {
            return Err(ParamError::Conflict(
                "a limit is missing: specify bytes, packets or both, or use the queue 'unlimited'"
                    .into(),
            ));
        }
        Ok(QueueLimit::optional(params))
    }

    /// From the parameters `bytes` and `packets`; absent ones do not limit.
    pub fn optional(params: &Params) -> Self {
        let maximum = |name| params.integer(name).unwrap_or(u64::MAX);
        QueueLimit::from_counts(maximum("bytes"), maximum("packets"))
    }

    /// A limit of these numbers of bytes and packets.
    pub fn from_counts(bytes: u64, packets: u64) -> Self {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        QueueLimit { bytes, packets }
    }

    /// True if `backlog` is within the limit.
    #[inline]
    pub fn holds(&self, backlog: Backlog) -> bool {
        backlog.bytes <= self.bytes && backlog.packets <= self.packets
    }

    /// True if a packet of `size` bytes finds room behind `backlog`.
    #[inline]
    pub fn admits(&self, backlog: Backlog, size: u32) -> bool {
        backlog.bytes + u64::from(size) <= self.bytes && backlog.packets < self.packets
    }
}
