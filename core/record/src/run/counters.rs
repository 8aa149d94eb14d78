//! Counters of flows, of their endpoints and of elements.

use crate::schema::Direction;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One flow: fingerprint, and counters of its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Number of the flow, from 1.
    pub flow: u16,
    /// Name of the scheme.
    pub scheme: String,
    /// Fingerprint of the scheme that ran.
    #[serde(default)]
    pub fingerprint: Fingerprint,
    /// Counters of the sender.
    #[serde(default)]
    pub sender: SenderCounters,
    /// Counters of the receiver.
    #[serde(default)]
    pub receiver: ReceiverCounters,
    /// Load that the application offered, if it chooses its load itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    /// Fields of newer minor versions, preserved.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Load that an application offered to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// Application bytes that it asked for or sent.
    pub bytes: u64,
    /// The same as a mean over the time during which the flow ran, in bit/s.
    pub mean_bps: f64,
}

/// Identity of a scheme that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fingerprint {
    /// `native`, `linux`, `bpf` or `program`.
    pub kind: String,
    /// Name of the algorithm.
    pub name: String,
    /// For native schemes the version of Narrows, for programs the version that they print.
    pub version: Option<String>,
    /// Hash of its source, for native schemes.
    pub git: Option<String>,
    /// Release of the kernel, for schemes inside the kernel.
    pub kernel: Option<String>,
    /// Name read back from the socket or object after the start.
    pub read_back: Option<String>,
    /// Parameters in force.
    pub params: Map<String, Value>,
    /// Program loaded into the kernel, for BPF programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bpf: Option<BpfFingerprint>,
}

/// Identity of a BPF program in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BpfFingerprint {
    /// SHA-256 of the object file, before parameters and name were set in it.
    pub sha256: String,
    /// Name under which the kernel knew it during the run.
    pub kernel_name: String,
    /// The kernel's tags of its functions: the beginning of a hash of their instructions.
    pub tags: BTreeMap<String, String>,
    /// Its constants as the kernel held them.
    pub constants: BTreeMap<String, u64>,
}

/// Counters of a sender; `None` for values that it does not report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SenderCounters {
    /// Packets that left the sender.
    pub sent_packets: Option<u64>,
    /// IP bytes that left the sender.
    pub sent_bytes: Option<u64>,
    /// Packets among them that repeated data.
    pub retransmitted_packets: Option<u64>,
    /// Bytes among them that repeated data.
    pub retransmitted_bytes: Option<u64>,
    /// Number of retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Number of tail-loss probes.
    pub tail_probes: Option<u64>,
    /// Number of losses that turned out to be spurious.
    pub spurious_losses: Option<u64>,
}

/// Counters of a receiver; `None` for values that it does not report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiverCounters {
    /// Packets that reached the receiver.
    pub received_packets: Option<u64>,
    /// Their IP bytes.
    pub received_bytes: Option<u64>,
    /// New application bytes among them.
    pub goodput_bytes: Option<u64>,
    /// For a sink of datagrams: sequence numbers that never arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_datagrams: Option<u64>,
    /// For a sink of datagrams: datagrams that arrived after a later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order_datagrams: Option<u64>,
    /// For a sink of datagrams: datagrams that arrived again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_datagrams: Option<u64>,
    /// For a sink of datagrams: jitter at the end (RFC 3550, section 6.4.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
}

/// Counters of an element: `in + copied = out + dropped + held`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementCounters {
    /// Name, unique within the network.
    pub name: String,
    /// Kind, as in the registry.
    pub kind: String,
    /// Link it is on; absent in records of the first release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Direction of the link it is on.
    pub direction: Direction,
    /// Packets that entered.
    pub in_packets: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Packets that left.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets marked (ECN).
    pub marked_packets: u64,
    /// Copies made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_packets: u64,
    /// Their bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_bytes: u64,
    /// For a bottleneck: bytes that its server could have carried during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Packets held at the end.
    pub held_packets: u64,
    /// Their bytes.
    pub held_bytes: u64,
}

impl ElementCounters {
    /// Zeroed counters of an element of a dumbbell.
    pub fn new(name: &str, kind: &str, direction: Direction) -> Self {
        ElementCounters {
            name: name.to_owned(),
            kind: kind.to_owned(),
            link: Some(direction.word().to_owned()),
            direction,
            ..ElementCounters::default()
        }
    }
}

// The signature is the one that serde calls.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
