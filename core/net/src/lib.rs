//! The network: packets, queues, link elements, paths and topologies.
//!
//! Everything here is a state machine that receives the time as an argument. The same objects run on the virtual clock
//! of the simulator and on the machine's clock in the emulator; they are generic over [`Packet`], so that the simulator
//! uses small `Copy` packets and the emulator handles of pooled frames.
//!
//! The pieces, from small to large:
//!
//! * a [`Queue`] stores packets and decides which to drop or mark;
//! * a [`RateServer`] determines when a packet that starts now has left;
//! * an [`Element`] is anything a packet passes: delay, loss, or a [`Bottleneck`] = queue + server;
//! * a link is a list of elements in one direction, a [`Network`] routes flows over links.
//!
//! **Time contract.** A driver may be late. [`Network::advance`] therefore never passes the driver's time to an
//! element: it calls each element at exactly the time the element requested, and forwards the packet with that *model
//! time*. A late driver changes when packets are released, never their fate.
//!
//! **Witness contract.** The element that drops or marks a packet reports it in [`Outcomes`]; nothing has to be
//! inferred afterwards.
#![forbid(unsafe_code)]

mod access;
pub mod aqm;
mod bottleneck;
mod change;
mod declared_effects;
mod describe;
mod fifo;
pub mod links;
mod modulated;
mod network;
mod opportunities;
mod outcomes;
mod path;
mod per_packet;
mod piecewise;
mod pipe;
pub mod queues;
mod rate_schedule;
pub mod rates;
mod registry;
pub mod testing;
mod token_bucket;
mod topology;
pub mod trace;

pub use bottleneck::{Bottleneck, PARAMS as BOTTLENECK_PARAMS};
pub use change::Change;
pub use declared_effects::{
    DataLimit, DelayEffect, LinkEffects, MIN_LOSS, PacketOrder, QueueDrops, QueueEffects,
};
pub use fifo::{Fifo, OPTIONAL_LIMIT, QUEUE_FULL, QueueLimit};
pub use network::{ElementView, Network, PendingChanges, Plan};
pub use outcomes::{Copied, DropReason, Outcomes, PacketDrop};
use path::LinkPath;
pub use path::{ElementCounters, ElementState};
pub use per_packet::{PacketDecision, PacketRule, PerPacket};
pub use registry::{BuildError, ElementSetup};
pub use topology::{Direction, FlowSetup, LinkPlan, NetworkError, Route, Topology};

pub use describe::check_element;
use narrows_units::{Bytes, ParamError, Params, Rate, Span, Time};
pub use narrows_units::{Ecn, Entry, Example, Files};

/// A packet as the network sees it.
pub trait Packet: Copy + Send {
    /// Size of the IP packet in bytes.
    fn size(&self) -> u32;
    /// Number of the flow, from 1; 0 for packets of no flow.
    fn flow(&self) -> u16;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to congestion experienced.
    fn mark(&mut self);
    /// The DSCP field.
    fn dscp(&self) -> u8 {
        0
    }
    /// Sets the DSCP field.
    fn set_dscp(&mut self, _: u8) {}
    /// A number that all packets of one connection in one direction share; fair queues hash it.
    fn connection(&self) -> u32 {
        u32::from(self.flow())
    }
    /// True if it is a pure acknowledgement.
    fn is_ack(&self) -> bool {
        false
    }
    /// Damages the content, so that the receiver will discard it.
    fn corrupt(&mut self) {}
    /// Index of its route in [`Network::routes`].
    fn route(&self) -> u16 {
        0
    }
}

/// Packets and bytes that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Sum of the IP sizes.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u32,
}

impl std::ops::Add for Backlog {
    type Output = Backlog;

    fn add(self, other: Backlog) -> Backlog {
        Backlog {
            bytes: self.bytes + other.bytes,
            packets: self.packets + other.packets,
        }
    }
}

impl Backlog {
    /// Adds a packet of `size` bytes.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.bytes += u64::from(size);
        self.packets += 1;
    }

    /// Removes a packet of `size` bytes.
    #[inline]
    pub fn remove(&mut self, size: u32) {
        self.bytes -= u64::from(size);
        self.packets -= 1;
    }
}

/// A store of packets with a rule for drops and marks.
///
/// The packet in service is not in the queue. Every packet given to `enqueue` is later returned by
/// `dequeue` once, or reported to `Outcomes` as dropped once.
pub trait Queue<P: Packet>: Send {
    /// Takes `packet`, which arrives at `now`, or reports it (or another packet) as dropped.
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>);
    /// The next packet to serve at `now`; `None` if the queue is empty.
    fn dequeue(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P>;
    /// The present backlog.
    fn backlog(&self) -> Backlog;
    /// Calls `visit` for each packet that waits.
    fn visit(&self, visit: &mut dyn FnMut(&P));
    /// All parameters (changed and unchanged ones) have these values from `now`. Waiting packets stay, unless the
    /// discipline specifies otherwise; random streams continue.
    ///
    /// # Errors
    /// Values that contradict each other; nothing has changed then.
    fn change(
        &mut self,
        now: Time,
        params: &Params,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError>;
}

/// The server of a bottleneck: how fast packets leave.
pub trait RateServer: Send {
    /// A packet of `bytes` starts to be served at `now`; returns when it has left ([`Time::FAR`]
    /// if never). Called in order of time, never before the previous packet has left.
    fn serve(&mut self, now: Time, bytes: u32) -> Time;
    /// The server is idle from now until the next call of `serve`.
    fn rest(&mut self);
    /// True if service begins at certain instants only (delivery opportunities): packets then stay in the queue until
    /// [`RateServer::next_slot`]. Other servers begin whenever they are free.
    fn is_slotted(&self) -> bool {
        false
    }
    /// The first time, not before `now`, at which service of a packet can begin ([`Time::FAR`] if never). Called for
    /// slotted servers only.
    fn next_slot(&mut self, now: Time) -> Time {
        now
    }
    /// True if several packets may be served together, as frames of one transmission: all of them
    /// leave when the last one has been served. See [`RateServer::join`].
    fn is_aggregating(&self) -> bool {
        false
    }
    /// True if another packet may fit into the service that has just begun. Called for aggregating servers only.
    fn has_room(&self) -> bool {
        false
    }
    /// A packet of `bytes` is to be served with those whose service has just begun; returns when all of them have left,
    /// or `None` if it does not fit.
    fn join(&mut self, _bytes: u32) -> Option<Time> {
        None
    }
    /// Bytes of the packet in service, which began at `began`, that have been served until just before
    /// `now`.
    fn served(&self, began: Time, now: Time) -> Bytes {
        self.capacity(began, now)
    }
    /// The bytes that could have been served between two times.
    fn capacity(&self, from: Time, to: Time) -> Bytes;
    /// The rate at `now`, for plots.
    fn rate(&self, now: Time) -> Rate;
}

/// Anything that a packet passes on its path.
///
/// Every packet given to `push` is later returned by `pop` once, or reported to `Outcomes` as dropped once (the copy of
/// a packet has a separate identity). `push` is called with non-decreasing times (which may be slightly before the last
/// `pop` if the driver is late); `pop(now)` is called with `now == next_wakeup()` and returns a packet that leaves at
/// exactly that time, or `None` after purely internal work.
pub trait Element<P: Packet>: Send {
    /// `packet` arrives at `now`.
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>);
    /// The packet that leaves at `now`, if any.
    fn pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P>;
    /// When `pop` is to be called next; [`Time::FAR`] if the element is empty.
    fn next_wakeup(&self) -> Time;
    /// Backlog of this element's queue (propagating packets never count as queued).
    fn queued(&self) -> Backlog {
        Backlog::default()
    }
    /// Everything inside the element: queued, in service and propagating.
    fn held(&self) -> Backlog;
    /// Calls `visit` for each packet inside, so that a record can name the element that holds it at the end.
    fn visit_held(&self, visit: &mut dyn FnMut(&P));
    /// The server, if the element has one.
    fn server(&self) -> Option<&dyn RateServer> {
        None
    }
    /// The minimum time of any packet in this element; zero for all but delays.
    fn propagation(&self) -> Span {
        Span::ZERO
    }
    /// Applies a change to this element at `now`; random streams continue.
    ///
    /// # Errors
    /// Values that contradict each other; nothing has changed then.
    fn change(
        &mut self,
        now: Time,
        change: Change,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError>;
}
