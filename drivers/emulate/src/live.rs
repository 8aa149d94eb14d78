//! Readings of a run while it is under way, as events for the program that shows them.

use super::testbed::Testbed;
use narrows_cell::{Role, RunError};
use narrows_emulator::{ElementReading, FlowReading, Handle};
use narrows_endpoints::supervisor::Supervisor;
use narrows_net::Network;
use serde::Serialize;
use serde_json::{Map, Value};

/// An event of a live run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum LiveEvent {
    /// A reading of all flows and queues.
    Live(LiveSample),
    /// An order has been carried out.
    Changed {
        /// Run time at which it takes effect.
        at_ns: u64,
        /// The element that changes.
        #[serde(skip_serializing_if = "Option::is_none")]
        element: Option<String>,
        /// Its new values.
        #[serde(skip_serializing_if = "Option::is_none")]
        set: Option<Map<String, Value>>,
        /// The flow that starts.
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<u16>,
        /// The flow that stops.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<u16>,
    },
    /// An order has been refused.
    Refused {
        /// Why, one sentence.
        message: String,
    },
}

/// A reading of all flows and queues. Counters are since the start of the run.
#[derive(Clone, Debug, Serialize)]
pub struct LiveSample {
    /// Run time of the reading.
    pub time_ns: u64,
    /// The flows of the cell, in its order.
    pub flows: Vec<FlowSample>,
    /// The elements with a queue.
    pub elements: Vec<ElementSample>,
}

/// A reading of the data of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowSample {
    /// Number of the flow.
    pub flow: u16,
    /// Counts of its data.
    #[serde(flatten)]
    pub counts: FlowReading,
    /// Latest congestion window of the sender, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Latest smoothed round-trip time of the sender, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<u64>,
}

/// A reading of one element with a queue.
#[derive(Clone, Debug, Serialize)]
pub struct ElementSample {
    /// Name of the element.
    pub element: String,
    /// Its counts and state.
    #[serde(flatten)]
    pub counts: ElementReading,
}

/// Takes readings of a run.
#[derive(Debug)]
pub(super) struct LiveReader {
    /// Indices of the elements with a queue.
    queues: Vec<u16>,
}

impl LiveReader {
    pub(super) fn new(testbed: &Testbed) -> Result<Self, RunError> {
        let network: Network<Handle> = testbed.cell.network()?;
        let stages = network.stages();
        let queues = stages.filter(|stage| stage.element.server().is_some());
        Ok(LiveReader {
            queues: queues.map(|stage| stage.index).collect(),
        })
    }

    /// A reading at `time_ns` of the run; `None` if the run has no gauges.
    pub(super) fn read(
        &self,
        time_ns: u64,
        testbed: &Testbed,
        supervisor: &Supervisor,
    ) -> Option<LiveSample> {
        let gauges = testbed.gauges.as_ref()?;
        let flows = testbed.cell.flows.iter().map(|flow| {
            let mut ends = supervisor.endpoints.iter();
            let sender = ends.find(|end| end.flow == flow.flow && end.role == Role::Sender);
            let state = sender.and_then(|end| end.state.as_ref());
            FlowSample {
                flow: flow.flow,
                counts: gauges.flow(flow.flow),
                cwnd_bytes: state.and_then(|state| state.cwnd_bytes),
                srtt_ns: state.and_then(|state| state.srtt_ns),
            }
        });
        let elements = self.queues.iter().map(|&index| ElementSample {
            element: testbed.elements[usize::from(index)].clone(),
            counts: gauges.element(index),
        });
        Some(LiveSample {
            time_ns,
            flows: flows.collect(),
            elements: elements.collect(),
        })
    }
}
