//! Readings of one peer of a run that is under way, as events for the program that shows the run.
//!
//! ```text
//! {"event": "counts", "number": 7, "time_ns": 3500021000,
//!  "sent": [{"flow": 1, "interval": 812, "before": 4711, "cwnd_bytes": 86880, "srtt_ns": 41000000}],
//!  "arrived": [{"flow": 2, "packets": 950, "bytes": 1417800, "queueing_ns": 30100200, "interval": 790, "before": 911}]}
//! ```
//!
//! Both peers take a reading at the same times, so that those with the same number belong together.

use crate::tunnel::FlowMeter;
use narrows_cell::{Cell, Role};
use narrows_endpoints::host_at;
use narrows_endpoints::supervisor::Supervisor;
use narrows_units::Time;
use serde_json::{Value, json};

/// Time between two readings.
const DISTANCE_NS: u64 = 500_000_000;

/// A flow with an end at this host.
struct OwnFlow {
    flow: u16,
    sends_here: bool,
    arrives_here: bool,
}

/// Takes readings at regular times of a run.
pub(super) struct PeerReadings {
    flows: Vec<OwnFlow>,
    /// Number of the next reading.
    next: u64,
    /// Number of a reading that waits for the counts of the tunnel.
    requested: Option<u64>,
}

impl PeerReadings {
    pub(super) fn new(cell: &Cell, host: u16) -> Self {
        let flows = cell.flows.iter().map(|flow| OwnFlow {
            flow: flow.flow,
            sends_here: host_at(flow, Role::Sender) == host,
            arrives_here: host_at(flow, Role::Receiver) == host,
        });
        PeerReadings {
            flows: flows.collect(),
            next: 1,
            requested: None,
        }
    }

    /// The number of the reading that has to be taken at `passed_ns` of the run, if there is one.
    pub(super) fn due(&mut self, passed_ns: u64) -> Option<u64> {
        let number = passed_ns / DISTANCE_NS;
        if number < self.next {
            return None;
        }
        self.next = number + 1;
        Some(number)
    }

    /// Time in ns from `passed_ns` of the run until the next reading.
    pub(super) fn until_next(&self, passed_ns: u64) -> u64 {
        (self.next * DISTANCE_NS).saturating_sub(passed_ns)
    }

    /// The reading with this number waits for the counts of the tunnel.
    pub(super) fn request(&mut self, number: u64) {
        self.requested = Some(number);
    }

    /// The number of the reading that waits for the counts of the tunnel.
    pub(super) fn take_request(&mut self) -> Option<u64> {
        self.requested.take()
    }

    /// The event of a reading at `time_ns` of the run, with the counts of the tunnel at a time of its clock.
    pub(super) fn event(
        &self,
        number: u64,
        time_ns: u64,
        supervisor: &Supervisor,
        counts: Option<(&FlowMeter, Time)>,
    ) -> Value {
        let mut sent = Vec::new();
        let mut arrived = Vec::new();
        for own in &self.flows {
            let flow = own.flow;
            if own.arrives_here
                && let Some(count) = counts.and_then(|(meter, _)| meter.arrived(flow))
            {
                arrived.push(json!({
                    "flow": flow, "packets": count.packets, "bytes": count.bytes,
                    "queueing_ns": count.queueing_ns, "interval": count.interval, "before": count.before,
                }));
            }
            if !own.sends_here {
                continue;
            }
            let mut document = json!({"flow": flow});
            if let Some(count) = counts.and_then(|(meter, now)| meter.sent(flow, now)) {
                document["interval"] = count.interval.into();
                document["before"] = count.before.into();
            }
            let mut ends = supervisor.endpoints.iter();
            let end = ends.find(|end| end.flow == flow && end.role == Role::Sender);
            if let Some(state) = end.and_then(|end| end.state.as_ref()) {
                let members = [
                    ("cwnd_bytes", state.cwnd_bytes),
                    ("srtt_ns", state.srtt_ns),
                    ("acknowledged_bytes", state.delivered_bytes),
                ];
                for (name, value) in members {
                    if let Some(value) = value {
                        document[name] = value.into();
                    }
                }
            }
            sent.push(document);
        }
        json!({"event": "counts", "number": number, "time_ns": time_ns, "sent": sent, "arrived": arrived})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_due_at_the_same_times_at_both_peers_and_once() {
        let cell = json!({
            "format": "narrows/cell/1", "id": "a", "seed": 1, "duration_ns": 3_000_000_000_u64, "record": "bins",
            "bin_ns": 10_000_000, "sample_ns": 10_000_000,
            "network": {"forward": [{"kind": "delay", "name": "forward.0", "delay": 1_000_000}], "backward": []},
            "flows": [{"flow": 1, "scheme": "reno", "stop_ns": 1_000_000_000}],
        });
        let cell = Cell::parse(&cell.to_string()).unwrap();
        let mut readings = PeerReadings::new(&cell, 0);
        assert_eq!(readings.due(499_000_000), None);
        assert_eq!(readings.until_next(499_000_000), 1_000_000);
        assert_eq!(readings.due(500_300_000), Some(1));
        assert_eq!(readings.due(900_000_000), None);
        // A peer that was late leaves one out.
        assert_eq!(readings.due(1_600_000_000), Some(3));
        assert_eq!(readings.until_next(1_600_000_000), 400_000_000);
        let event = readings.event(
            3,
            1_600_000_000,
            &Supervisor {
                endpoints: Vec::new(),
            },
            None,
        );
        assert_eq!(event["sent"], json!([{"flow": 1}]));
        assert_eq!(event["arrived"], json!([]));
    }
}
