//! Properties of a course that rewards are relative to, from its cell.

use crate::step_counters::Facts;
use narrows_cell::CellError;
use narrows_record::{Cell, CellElement};

impl Facts {
    /// The properties of the path of the flow with this index; the best window is not known.
    ///
    /// # Errors
    /// A cell without network.
    pub(crate) fn from_cell(whole: &narrows_cell::Cell, flow: usize) -> Result<Self, CellError> {
        let cell = Cell::parse(&whole.json).map_err(|error| CellError::Shape(error.to_string()))?;
        let agent = &whole.flows[flow];
        let (number, direction) = (agent.flow, agent.direction);
        let packet = whole.transport(agent, agent.from).packet_size.get() as f64;
        let bottlenecks = cell.elements(number, direction);
        let bottlenecks = bottlenecks.filter(|element| element.is_bottleneck());
        let rates = bottlenecks.map(|element| (mean_bps(&cell, element), element));
        let slowest = rates.min_by(|(one, _), (other, _)| one.total_cmp(other));
        let (capacity_bps, buffer) = match slowest {
            Some((bps, element)) => (bps, buffer_bytes(element, packet)),
            None => (f64::INFINITY, f64::INFINITY),
        };
        let round_trip = cell.propagation_ns(number, direction)
            + cell.propagation_ns(number, direction.reverse());
        let sharing = cell
            .flows
            .iter()
            .filter(|other| !other.background && other.direction == direction);
        Ok(Facts {
            capacity_bps,
            base_rtt_ns: (round_trip as f64).max(1.0),
            buffer_bytes: buffer,
            best_window: f64::NAN,
            flows: sharing.count().max(1) as f64,
        })
    }
}

/// Mean rate over the run; of a random link its mean; NaN if neither follows from the cell.
fn mean_bps(cell: &Cell, element: &CellElement) -> f64 {
    match cell.rate_law(element) {
        Ok(law) => match law.steady() {
            Some(bps) => bps as f64,
            None => law.bits(0, cell.duration_ns) * 1e9 / cell.duration_ns.max(1) as f64,
        },
        Err(_) => element.params["rate"]["rate"].as_f64().unwrap_or(f64::NAN),
    }
}

/// Limit of the queue in bytes; infinite if it has none.
fn buffer_bytes(element: &CellElement, packet: f64) -> f64 {
    let limit = element.limit();
    let packets = limit.packets.map(|packets| packets as f64 * packet);
    let bytes = limit.bytes.map(|bytes| bytes as f64);
    packets
        .into_iter()
        .chain(bytes)
        .fold(f64::INFINITY, f64::min)
}
