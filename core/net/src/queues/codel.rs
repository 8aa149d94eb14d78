//! CoDel: drops from the head when the waiting time has been above a target for an interval.
//!
//! Source: RFC 8289. The law is in `aqm/codel.rs`, with its parameters and deviations. The RFC leaves
//! the buffer to the operator: without `bytes` or `packets` it is unlimited.

use crate::aqm::{Codel, CodelParams, LawQueue};
use crate::fifo::{QueueLimit, OPTIONAL_LIMIT};
use crate::{Entry, Example, Queue, QueueDrops, QueueEffects};
use narrows_units::ParamSpec;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "codel",
    summary: "Controlled delay: drops or marks at the head, ever more often, while the waiting time stays above a target",
    source: "RFC 8289",
    params: &ParamSpec::join::<7>(&[CodelParams::PARAMS, &OPTIONAL_LIMIT]),
    shorthand: &["target", "packets", "bytes"],
    example: Example::new(
        "{codel: {packets: 100 packets}}",
        "After 100 ms above 5 ms CoDel drops (flow 1: marks) at growing frequency; senders that do not react still fill the queue to its limit of 120 ms.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::Any);

crate::registry::build!(dyn Queue<P>: |params, _| LawQueue::new(
    QueueLimit::optional(params),
    Codel::new(params),
));
