//! Why nothing of a flow arrived, where the cell and the counters of its elements show it.

use crate::bounds::in_words;
use narrows_record::{Cell, CellElement, CellFlow, ElementCounters, RunDocument};
use serde_json::Value;
use std::collections::BTreeMap;

/// The facts of a run about flows without arrivals.
pub struct Silence<'r> {
    /// `None` if the cell does not describe a network.
    cell: Option<Cell>,
    counters: BTreeMap<&'r str, &'r ElementCounters>,
    /// Mean size in bytes of the packets that each flow sent, if it is known.
    sizes: BTreeMap<u16, u64>,
}

impl<'r> Silence<'r> {
    /// Reads the cell, elements and flows of a run.
    pub fn new(run: &'r RunDocument) -> Self {
        let sizes = run.flows.iter().filter_map(|flow| {
            let bytes = flow.sender.sent_bytes?;
            Some((flow.flow, bytes.checked_div(flow.sender.sent_packets?)?))
        });
        let counters = run.elements.iter();
        Silence {
            cell: Cell::parse(&run.cell).ok(),
            counters: counters.map(|own| (own.name.as_str(), own)).collect(),
            sizes: sizes.collect(),
        }
    }

    /// The sentence that `missing`, such as "No data of flow 1", arrived, with the cause if it is known.
    pub fn sentence(&self, missing: &str, flow: u16) -> String {
        match self.cause(flow) {
            Some(cause) => format!("{missing} arrived: {cause}."),
            None => format!("{missing} arrived."),
        }
    }

    fn cause(&self, number: u16) -> Option<String> {
        let cell = self.cell.as_ref()?;
        let flow = cell.flow(number)?;
        let delay = cell.propagation_ns(number, flow.direction);
        let left = cell.duration_ns.saturating_sub(flow.start_ns);
        if delay >= left {
            return Some(format!(
                "the delays on its way are {}, and the run ended {} after its start",
                seconds(delay),
                seconds(left)
            ));
        }
        let mut way = cell.elements(number, flow.direction).peekable();
        let first = way
            .peek()
            .and_then(|first| self.counters.get(first.label()));
        // Between hosts without a tunnel nothing is counted.
        let counts = !cell.is_real(number, flow.direction);
        if counts && first.is_some_and(|first| first.in_packets == 0) {
            return Some("its sender sent nothing".into());
        }
        way.find_map(|element| self.obstacle(cell, flow, element))
    }

    /// Why an element let no packet of a flow pass; `None` if it may have.
    fn obstacle(&self, cell: &Cell, flow: &CellFlow, element: &CellElement) -> Option<String> {
        let label = element.label();
        let counted = self.counters.get(label);
        let closed = counted.filter(|own| own.in_packets > 0 && own.out_packets == 0);
        let size = closed
            .map(|own| own.in_bytes / own.in_packets)
            .or_else(|| self.sizes.get(&flow.flow).copied());
        let planned = if cell.changes_of(label).next().is_none() {
            size.and_then(|size| by_size(element, size))
                .or_else(|| by_time(cell, flow, element))
        } else {
            None
        };
        let observed = || {
            let own = closed?;
            let size = own.in_bytes / own.in_packets;
            no_capacity(cell, flow, element, own, size).or_else(|| Some(by_count(own)))
        };
        planned.or_else(observed)
    }
}

/// The element never lets packets of `size` bytes pass.
fn by_size(element: &CellElement, size: u64) -> Option<String> {
    let label = element.label();
    let number = |name: &str| element.params.get(name).and_then(Value::as_u64);
    let packets = in_words(size, "B");
    let below = |room: Option<u64>| {
        room.filter(|room| *room < size)
            .map(|room| in_words(room, "B"))
    };
    match element.kind.as_str() {
        "bottleneck" => below(element.limit().bytes).map(|room| {
            format!("the queue of {label} has room for {room}, and its packets have {packets}")
        }),
        "mtu" => below(number("bytes")).map(|most| {
            format!("{label} drops packets above {most}, and its packets have {packets}")
        }),
        "policer"
            if element
                .params
                .get("action")
                .is_none_or(|action| action == "drop") =>
        {
            below(number("burst")).map(|burst| {
                format!("the bucket of {label} has {burst}, and its packets have {packets}")
            })
        }
        _ => None,
    }
}

/// The element is closed from the start of the flow to the end of the run.
fn by_time(cell: &Cell, flow: &CellFlow, element: &CellElement) -> Option<String> {
    let number = |name: &str| element.params.get(name).and_then(Value::as_u64);
    if element.kind != "outage" {
        return None;
    }
    let (start, length) = (number("start")?, number("length")?);
    let end = start.saturating_add(length);
    (start <= flow.start_ns && end >= cell.duration_ns).then(|| {
        format!(
            "the outage {} lasts from {} to the end of the run",
            element.label(),
            seconds(start)
        )
    })
}

/// The server of a bottleneck could not carry one packet in the time of the flow.
fn no_capacity(
    cell: &Cell,
    flow: &CellFlow,
    element: &CellElement,
    counted: &ElementCounters,
    size: u64,
) -> Option<String> {
    if !element.is_bottleneck() || counted.held_packets == 0 {
        return None;
    }
    let law = cell.rate_law(element).ok();
    let (bytes, since) = match &law {
        Some(law) => {
            let bits = law.bits(flow.start_ns, cell.duration_ns);
            ((bits / 8.0) as u64, "from the start of the flow to the end")
        }
        None => (counted.capacity_bytes?, "in the whole run"),
    };
    (bytes < size).then(|| {
        format!(
            "{} could carry {} {since}, and its packets have {}",
            element.label(),
            in_words(bytes, "B"),
            in_words(size, "B")
        )
    })
}

/// A time for people: `1.5 s`.
fn seconds(ns: u64) -> String {
    format!("{} s", ns as f64 / 1e9)
}

/// All that entered an element is lost or still there.
fn by_count(counted: &ElementCounters) -> String {
    let (name, kind) = (&counted.name, &counted.kind);
    let (entered, dropped) = (counted.in_packets, counted.dropped_packets);
    match counted.held_packets {
        0 => format!("{name} ({kind}) dropped all packets that entered it ({entered})"),
        held if dropped == 0 => {
            format!("all packets that entered {name} ({kind}) were still there at the end ({held})")
        }
        held => format!(
            "{name} ({kind}) dropped {dropped} of the {entered} packets that entered it, and {held} were still there \
             at the end"
        ),
    }
}

#[cfg(test)]
mod tests;
