//! A step: above a threshold every packet is marked, or dropped if it cannot be marked.
//!
//! The marking of DCTCP: a packet that finds more than the threshold waiting when it arrives is marked, based on the
//! instantaneous queue and not on an average. The threshold counts packets or bytes, on arrival, or the time that the
//! packet has waited, when it leaves; with several thresholds any one suffices. Packets that cannot be marked are
//! dropped above it, as RFC 8257, section 5, expects of switches with a common threshold. As in all queues here the
//! packet in service does not count: K packets at a switch that counts it are K - 1 here.

use crate::aqm::{AqmLaw, ArrivingPacket, Departure, LawQueue, AqmVerdict};
use crate::fifo::{QueueLimit, OPTIONAL_LIMIT};
use crate::{Backlog, Entry, Example, Queue, QueueDrops, QueueEffects, DropReason};
use narrows_units::{ParamError, ParamSpec, Params, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "step",
    summary: "Marks every packet while more than a threshold waits, and drops those that cannot be marked",
    source: "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, section 3.1; RFC 8257, section 3.1",
    params: &ParamSpec::join::<6>(&[StepParams::PARAMS, &OPTIONAL_LIMIT]),
    shorthand: &["threshold", "threshold_bytes", "threshold_time"],
    example: Example::new(
        "{step: {threshold: 20 packets, packets: 100 packets}}",
        "While more than 20 packets wait (24 ms), packets of flow 1 are marked, and those of flow 2 are dropped.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::Any);

/// Reason of drops before the queue is full.
const STEP: DropReason = DropReason("step");

// Builds the queue; at least one threshold is required.
crate::registry::build!(dyn Queue<P>: |params, _| {
    let law = StepMarking::new(params)?;
    LawQueue::new(QueueLimit::optional(params), law)
});

params! {
    /// Parameters.
    struct StepParams {
        /// A packet that finds more packets than this waiting is marked.
        #[trial("3")]
        threshold: Option<PacketCount>(0.0..=4e9),
            "K; SIGCOMM 2010, section 3.5: 20 packets at 1 Gbit/s, 65 at 10 Gbit/s";
        /// A packet that finds more bytes than this waiting is marked.
        #[trial("9000")]
        threshold_bytes: Option<Bytes>(0.0..=1e15);
        /// A packet that has waited longer than this is marked when it leaves.
        threshold_time: Option<Span>(0.0..=1e12);
        /// Whether packets that can be marked are marked instead of dropped.
        ecn: Flag = true;
    }
}

struct StepMarking(StepParams);

impl StepMarking {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = StepParams::read(params);
        if params.threshold.is_none() && params.threshold_bytes.is_none() && params.threshold_time.is_none() {
            return Err(ParamError::Conflict(
                "a threshold is missing: specify threshold (packets), threshold_bytes or threshold_time"
                    .into(),
            ));
        }
        Ok(StepMarking(params))
    }

    fn exceeded(&self, backlog: Backlog) -> bool {
        self.0.threshold.is_some_and(|maximum| u64::from(backlog.packets) > maximum)
            || self.0.threshold_bytes.is_some_and(|maximum| backlog.bytes > maximum.get())
    }

    fn signal(&self, ect: bool) -> AqmVerdict {
        if self.0.ecn && ect { AqmVerdict::Mark } else { AqmVerdict::Drop(STEP) }
    }
}

impl AqmLaw for StepMarking {
    fn arriving(&mut self, _: Time, packet: &ArrivingPacket) -> AqmVerdict {
        // A packet that finds no room is dropped by the queue already.
        if packet.room && self.exceeded(packet.backlog) {
            return self.signal(packet.ect);
        }
        AqmVerdict::Pass
    }

    fn leaving(&mut self, _: Time, packet: &Departure) -> AqmVerdict {
        if self.0.threshold_time.is_some_and(|maximum| packet.sojourn > maximum) {
            return self.signal(packet.ect);
        }
        AqmVerdict::Pass
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        *self = StepMarking::new(params)?;
        Ok(())
    }
}
