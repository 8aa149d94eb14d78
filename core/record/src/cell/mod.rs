//! The part of a cell (the input of a run) that metrics and the verifier need.

use crate::RecordError;
use crate::schema::{Direction, RUN_FILE};
use serde::Deserialize;
use serde_json::{Map, Value};

mod measure;
mod network;
mod rate;
mod requirement;
mod run_effects;

pub use measure::Measure;
pub(crate) use network::CellFraming;
pub use network::{CellElement, CellLink, CellNetwork, CellQueueLimit, CellRoute};
pub use rate::RateLaw;
pub use requirement::{DelayBounds, Requirement, ScoreBounds};
pub use run_effects::REAL;

/// The parts of a cell that its record depends on. All quantities are in base units.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Label of the cell.
    pub scheme: String,
    /// Length of the run.
    pub duration_ns: u64,
    /// Width of the bins of `record: bins`.
    #[serde(default)]
    pub bin_ns: Option<u64>,
    /// The network.
    pub network: CellNetwork,
    /// Planned changes of elements, in order of time.
    #[serde(default)]
    pub timeline: Vec<PlannedChange>,
    /// The flows.
    pub flows: Vec<CellFlow>,
    /// The measured part of the run.
    #[serde(default)]
    pub measure: Measure,
    /// How transfers are recorded.
    #[serde(default)]
    pub transfers: KeptTransfers,
}

/// How transfers of applications are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeptTransfers {
    /// Every transfer.
    #[default]
    All,
    /// Their number and histograms of their completion times.
    Bins,
    /// Nothing.
    None,
}

/// One flow.
#[derive(Clone, Debug, Deserialize)]
pub struct CellFlow {
    /// Number, from 1.
    pub flow: u16,
    /// Name of the scheme.
    pub scheme: String,
    /// When it starts.
    #[serde(default)]
    pub start_ns: u64,
    /// When it stops.
    pub stop_ns: u64,
    /// Direction of its data.
    #[serde(default)]
    pub direction: Direction,
    /// Host that sends the data; absent in a dumbbell, where the direction implies it.
    #[serde(default)]
    pub from: Option<String>,
    /// Host that receives the data.
    #[serde(default)]
    pub to: Option<String>,
    /// Its application.
    #[serde(default)]
    pub traffic: Traffic,
    /// True if it is traffic that is not under test.
    #[serde(default)]
    pub background: bool,
    /// Round-trip time in addition to the path's.
    #[serde(default)]
    pub extra_rtt_ns: u64,
}

/// The application of a flow.
#[derive(Clone, Debug, Deserialize)]
pub struct Traffic {
    /// Its kind, as in the registry.
    pub kind: String,
    /// For exchanges: whether they follow each other over one open connection.
    #[serde(default)]
    pub persistent: Option<bool>,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            kind: "bulk".to_owned(),
            persistent: None,
        }
    }
}

/// One planned change of one element.
#[derive(Clone, Debug, Deserialize)]
pub struct PlannedChange {
    /// When.
    pub at_ns: u64,
    /// Name of the element.
    pub element: String,
    /// Parameters with their new values.
    pub set: Map<String, Value>,
}

/// Size of a table that can be indexed by any of these flow numbers.
pub(crate) fn table_size(flows: impl Iterator<Item = u16>) -> usize {
    flows.map(|flow| usize::from(flow) + 1).max().unwrap_or(0)
}

impl Cell {
    /// The cell inside `run.json`.
    ///
    /// # Errors
    /// A cell without network, flows or duration.
    pub fn parse(json: &Value) -> Result<Self, RecordError> {
        let mut cell = Cell::deserialize(json)
            .map_err(|e| RecordError::data(RUN_FILE, format!("the cell cannot be read ({e})")))?;
        cell.timeline.sort_by_key(|change| change.at_ns);
        Ok(cell)
    }

    /// The flow with this number.
    pub fn flow(&self, number: u16) -> Option<&CellFlow> {
        // Flows are numbered from 1 in most cells.
        let likely = self.flows.get(usize::from(number).wrapping_sub(1));
        let likely = likely.filter(|flow| flow.flow == number);
        likely.or_else(|| self.flows.iter().find(|flow| flow.flow == number))
    }

    /// The delay of the access link of flow `number` in `direction`: half of its extra round-trip time, with the odd
    /// nanosecond in the backward direction.
    pub fn access_ns(&self, number: u16, direction: Direction) -> u64 {
        let extra = self.flow(number).map_or(0, |flow| flow.extra_rtt_ns);
        match direction {
            Direction::Forward => extra / 2,
            Direction::Backward => extra - extra / 2,
        }
    }

    /// The route, by index, of packets recorded for flow `number` in `direction`; `None` if the cell does not say.
    pub fn route_of(&self, number: u16, direction: Direction) -> Option<usize> {
        let routes = &self.network.routes;
        if self.network.dumbbell {
            return Some(direction as usize);
        }
        let Some(flow) = self.flow(number) else {
            let mut fitting = (0..routes.len()).filter(|&i| routes[i].direction == direction);
            return fitting.next().filter(|_| fitting.next().is_none());
        };
        let hosts = &self.network.hosts;
        let host = |name: &Option<String>, index: usize| match name {
            Some(name) => Some(name.clone()),
            None if hosts.len() == 2 => Some(hosts[index].clone()),
            None => None,
        };
        let (from, to) = (host(&flow.from, 0)?, host(&flow.to, 1)?);
        let (from, to) = if direction == flow.direction {
            (from, to)
        } else {
            (to, from)
        };
        routes
            .iter()
            .position(|route| route.from == from && route.to == to)
    }

    /// The elements that packets of flow `number` meet in `direction`, without the access links.
    pub fn elements(
        &self,
        number: u16,
        direction: Direction,
    ) -> impl Iterator<Item = &CellElement> {
        let route = self.route_of(number, direction).unwrap_or(usize::MAX);
        self.network.path(route)
    }

    /// The changes of the element called `name`, in order of time.
    pub fn changes_of(&self, name: &str) -> impl Iterator<Item = &PlannedChange> {
        self.timeline
            .iter()
            .filter(move |change| change.element == name)
    }

    /// The sum of the minimum delays that a packet of flow `number` experiences in `direction`. No packet can be
    /// faster.
    pub fn propagation_ns(&self, number: u16, direction: Direction) -> u64 {
        let path = self
            .elements(number, direction)
            .map(|element| self.least_delay_ns(element))
            .sum::<u64>();
        path.saturating_add(self.access_ns(number, direction))
    }

    /// True if packets of flow `number` travel in `direction` over a path about which nothing is known except what was
    /// sent and what arrived.
    pub fn is_real(&self, number: u16, direction: Direction) -> bool {
        let mut way = self.elements(number, direction);
        way.any(|element| element.kind == REAL)
    }

    /// The first element on the path of flow `number` in `direction` that delays packets by an amount that is neither
    /// fixed, nor queueing, nor a variation that starts at zero, so that its share of the propagation delay changes
    /// over time. Without such an element, delay less the smallest possible delay is the time due to queues and
    /// variation.
    pub fn unsteady(&self, number: u16, direction: Direction) -> Option<&CellElement> {
        let mut way = self.elements(number, direction);
        way.find(|element| self.is_unsteady(element))
    }

    /// The rate of a bottleneck over time.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn rate_law(&self, element: &CellElement) -> Result<RateLaw, String> {
        let rate = element.params.get("rate").unwrap_or(&Value::Null);
        let changes: Vec<(u64, &Value)> = self
            .changes_of(element.label())
            .filter_map(|change| Some((change.at_ns, change.set.get("rate")?)))
            .collect();
        // Emulated packets may still leave a little after the end.
        RateLaw::read(
            rate,
            &changes,
            self.duration_ns.saturating_add(2_000_000_000),
        )
        .map_err(|why| format!("{} {why}", element.label()))
    }

    /// The flows under test.
    pub fn flows_under_test(&self) -> impl Iterator<Item = &CellFlow> {
        self.flows.iter().filter(|flow| !flow.background)
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
        let first = cell.elements(1, Direction::Forward).next().unwrap();
        assert_eq!(cell.rate_law(first), Ok(RateLaw::constant(12_000_000)));
        assert_eq!(cell.shared_span_ns(), Some((300, 900)));
        let limit = first.limit();
        assert_eq!(
            limit,
            CellQueueLimit {
                bytes: Some(60_000),
                packets: None
            }
        );
        let second = cell.elements(2, Direction::Forward).nth(1).unwrap();
        assert_eq!(second.label(), "forward.1");
        assert!(cell.unsteady(1, Direction::Forward).is_none());
    }

    #[test]
    fn outages_are_no_queues_and_make_none_unknown_unless_they_hold() {
        let with = |outage: Value, timeline: Value| {
            let cell = Cell::parse(&json!({
                "format": "narrows/cell/1", "id": "x", "scheme": "reno", "duration_ns": 1000,
                "network": {"kind": "dumbbell", "forward": [outage], "backward": []},
                "timeline": timeline,
                "flows": [{"flow": 1, "scheme": "reno", "start_ns": 0, "stop_ns": 900}]
            }));
            let cell = cell.unwrap();
            cell.unsteady(1, Direction::Forward).is_some()
        };
        let outage = |mode: &str| json!({"kind": "outage", "name": "o", "start": 1, "length": 2, "mode": mode});
        assert!(!with(
            json!({"kind": "outage", "start": 1, "length": 2}),
            json!([])
        ));
        assert!(!with(outage("drop"), json!([])));
        assert!(with(outage("hold"), json!([])));
        let later = json!([{"at_ns": 5, "element": "o", "set": {"mode": "hold"}}]);
        assert!(with(outage("drop"), later));
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
