//! Arguments from which a core is constructed.

use narrows_net::Direction;
use narrows_record::Log;
use narrows_units::{Span, Time};

/// The rule by which the destination of a packet is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Each frame leaves at the host that has its destination address.
    ByAddress,
    /// Frames that enter at one of two ports leave at the other, regardless of their destination.
    Across,
}

/// Properties of a flow that admission uses.
#[derive(Clone, Copy, Debug)]
pub struct FlowEntry {
    /// The host that sends the data.
    pub from: u16,
    /// The recorded direction of the data.
    pub direction: Direction,
    /// When the flow stops.
    pub stop: Time,
    /// True if our transport carries it.
    pub native: bool,
    /// Its private hosts, if any.
    pub own: Option<OwnHosts>,
}

/// Private hosts of a single flow: every packet between them belongs to the flow.
#[derive(Clone, Copy, Debug)]
pub struct OwnHosts {
    /// Their ports, behind those of the network's hosts: of the host that sends the data, and of the other.
    pub ports: [u16; 2],
    /// The hosts of the network that they replace.
    pub places: [u16; 2],
    /// When the flow starts.
    pub start: Time,
}

/// Construction arguments of a core, in addition to its network.
#[derive(Debug)]
pub struct CoreConfig {
    /// By flow number; 0 is not a flow.
    pub flows: Vec<Option<FlowEntry>>,
    /// The log of the packets.
    pub log: Log,
    /// Time between samples of queues; zero disables sampling.
    pub sample: Span,
    /// When the run ends.
    pub end: Time,
    /// The rule by which packets are forwarded.
    pub forwarding: Forwarding,
    /// Width of bins, and the bottlenecks whose rate over time does not follow from the cell.
    pub unknown_rates: (Span, Vec<String>),
    /// Bottlenecks whose server the timeline replaces.
    pub replaced_rates: Vec<String>,
}
