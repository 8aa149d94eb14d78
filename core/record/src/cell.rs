//! The part of a cell (the input of a run) that metrics and the verifier need.

use crate::RecordError;
use crate::schema::{Direction, RUN_FILE};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Kinds of elements that hold packets for no time at all, so that they add nothing to a delay.
const INSTANT: [&str; 3] = ["loss", "policer", "mark"];

/// A cell, as far as it bears on its record. All quantities in base units.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Label of the cell.
    pub scheme: String,
    /// Length of the run.
    pub duration_ns: u64,
    /// Width of the bins of `record: bins`.
    #[serde(default)]
    pub bin_ns: Option<u64>,
    /// What the packets passed.
    pub network: Network,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// The elements of both directions, in the order in which packets pass them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Network {
    /// From the senders' side to the receivers' side.
    #[serde(default)]
    pub forward: Vec<Element>,
    /// The other way.
    #[serde(default)]
    pub backward: Vec<Element>,
}

/// One element.
#[derive(Clone, Debug, Deserialize)]
pub struct Element {
    /// Its name, if it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its kind, as in the registry.
    pub kind: String,
    /// Its parameters.
    #[serde(flatten)]
    pub params: Map<String, Value>,
}

/// One flow.
#[derive(Clone, Debug, Deserialize)]
pub struct Flow {
    /// Number, from 1.
    pub flow: u16,
    /// Name of the scheme.
    pub scheme: String,
    /// When it starts.
    #[serde(default)]
    pub start_ns: u64,
    /// When it stops.
    pub stop_ns: u64,
    /// Which way its data travel.
    #[serde(default)]
    pub direction: Direction,
    /// Round-trip time that it has in addition to the path's.
    #[serde(default)]
    pub extra_rtt_ns: u64,
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Most bytes that may wait.
    pub bytes: Option<u64>,
    /// Most packets that may wait.
    pub packets: Option<u64>,
}

impl Cell {
    /// The cell inside `run.json`.
    ///
    /// # Errors
    /// A cell without network, flows or duration.
    pub fn parse(json: &Value) -> Result<Self, RecordError> {
        let mut cell = Cell::deserialize(json)
            .map_err(|e| RecordError::data(RUN_FILE, format!("the cell cannot be read ({e})")))?;
        for direction in [Direction::Forward, Direction::Backward] {
            for (index, element) in cell.network.elements_mut(direction).iter_mut().enumerate() {
                element
                    .name
                    .get_or_insert_with(|| format!("{direction}.{index}"));
            }
        }
        Ok(cell)
    }

    /// The elements that packets pass in `direction`, without the access links.
    pub fn elements(&self, direction: Direction) -> &[Element] {
        match direction {
            Direction::Forward => &self.network.forward,
            Direction::Backward => &self.network.backward,
        }
    }

    /// The flow with this number.
    pub fn flow(&self, number: u16) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.flow == number)
    }

    /// The delay of the access link of flow `number` in `direction`: half of its extra round-trip
    /// time, the odd nanosecond on the way back.
    pub fn access_ns(&self, number: u16, direction: Direction) -> u64 {
        let extra = self.flow(number).map_or(0, |flow| flow.extra_rtt_ns);
        match direction {
            Direction::Forward => extra / 2,
            Direction::Backward => extra - extra / 2,
        }
    }

    /// The sum of the fixed delays that a packet of flow `number` meets in `direction`. No packet
    /// can be faster.
    pub fn propagation_ns(&self, number: u16, direction: Direction) -> u64 {
        let path = self
            .elements(direction)
            .iter()
            .map(Element::delay_ns)
            .sum::<u64>();
        path.saturating_add(self.access_ns(number, direction))
    }

    /// The first element in `direction` that delays packets by an amount that is neither fixed nor
    /// queueing; without one, delay less propagation is the time spent in queues.
    pub fn unsteady(&self, direction: Direction) -> Option<&Element> {
        self.elements(direction).iter().find(|element| {
            !matches!(element.kind.as_str(), "delay" | "bottleneck")
                && !INSTANT.contains(&element.kind.as_str())
        })
    }

    /// The smallest constant rate in `direction` in bit/s.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn capacity_bps(&self, direction: Direction) -> Result<u64, String> {
        let mut least = None;
        for element in self
            .elements(direction)
            .iter()
            .filter(|e| e.kind == "bottleneck")
        {
            let rate = element
                .constant_bps()
                .ok_or_else(|| format!("the rate of {} is not constant", element.label()))?;
            least = Some(least.map_or(rate, |known: u64| known.min(rate)));
        }
        least.ok_or_else(|| format!("the {direction} path has no bottleneck"))
    }

    /// The time during which all flows are meant to run.
    pub fn shared_span_ns(&self) -> Option<(u64, u64)> {
        let from = self.flows.iter().map(|flow| flow.start_ns).max()?;
        let to = self
            .flows
            .iter()
            .map(|flow| flow.stop_ns)
            .min()?
            .min(self.duration_ns);
        (from < to).then_some((from, to))
    }
}

impl Network {
    fn elements_mut(&mut self, direction: Direction) -> &mut Vec<Element> {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Backward => &mut self.backward,
        }
    }
}

impl Element {
    /// The name.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }

    /// The fixed delay; zero for all other kinds.
    pub fn delay_ns(&self) -> u64 {
        match self.kind.as_str() {
            "delay" => self
                .params
                .get("delay")
                .and_then(Value::as_u64)
                .unwrap_or(0),
            _ => 0,
        }
    }

    /// The rate of a bottleneck, if it is constant.
    pub fn constant_bps(&self) -> Option<u64> {
        let rate = self.params.get("rate")?;
        (rate.get("kind")?.as_str()? == "constant").then(|| rate.get("rate")?.as_u64())?
    }

    /// The kind of the queue of a bottleneck.
    pub fn queue_kind(&self) -> Option<&str> {
        self.params.get("queue")?.get("kind")?.as_str()
    }

    /// The limits of the queue of a bottleneck.
    pub fn limit(&self) -> Limit {
        let of = |name: &str| self.params.get("queue")?.get(name)?.as_u64();
        Limit {
            bytes: of("bytes"),
            packets: of("packets"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell() -> Cell {
        Cell::parse(&json!({
            "format": "narrows/cell/1", "id": "x", "scheme": "reno", "duration_ns": 1000,
            "network": {"kind": "dumbbell", "forward": [
                {"name": "forward.0", "kind": "bottleneck",
                 "rate": {"kind": "constant", "rate": 12_000_000},
                 "queue": {"kind": "droptail", "bytes": 60_000, "packets": null}},
                {"kind": "delay", "delay": 20}, {"kind": "loss", "ratio": 0.5}],
              "backward": [{"kind": "delay", "delay": 30}]},
            "flows": [
                {"flow": 1, "scheme": "reno", "params": {}, "start_ns": 0, "stop_ns": 900,
                 "direction": "forward", "extra_rtt_ns": 5},
                {"flow": 2, "scheme": "reno", "start_ns": 300, "stop_ns": 2000}]
        }))
        .unwrap()
    }

    #[test]
    fn derived_quantities() {
        let cell = cell();
        assert_eq!(cell.propagation_ns(1, Direction::Forward), 22);
        assert_eq!(cell.propagation_ns(1, Direction::Backward), 33);
        assert_eq!(cell.propagation_ns(2, Direction::Backward), 30);
        assert_eq!(cell.capacity_bps(Direction::Forward), Ok(12_000_000));
        assert!(
            cell.capacity_bps(Direction::Backward)
                .unwrap_err()
                .contains("no bottleneck")
        );
        assert_eq!(cell.shared_span_ns(), Some((300, 900)));
        let limit = cell.elements(Direction::Forward)[0].limit();
        assert_eq!(
            limit,
            Limit {
                bytes: Some(60_000),
                packets: None
            }
        );
        assert_eq!(cell.elements(Direction::Forward)[1].label(), "forward.1");
        assert!(cell.unsteady(Direction::Forward).is_none());
    }

    #[test]
    fn a_cell_without_network_is_refused() {
        let error = Cell::parse(&json!({"scheme": "x"}))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("run.json: the cell cannot be read"),
            "{error}"
        );
    }
}
