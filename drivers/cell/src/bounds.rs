//! Bounds of flows, which guarantee that a run needs finite memory and time.
//!
//! Real machines always have some limit. A simulation does not: a sender without limit doubles its window until the
//! memory is exhausted, or sends an infinite amount at one instant. A flow is bounded by
//!
//! | what | because |
//! | --- | --- |
//! | its application | it offers a rate, or no more data than [`MAX_BYTES`]; answers wait for requests |
//! | its window | with a non-zero round-trip time, window / RTT is a rate |
//! | a real-time scheme | its encoder, or its model, has a maximum rate |
//! | a link with a rate in the direction of its data | acknowledgements arrive no faster |
//! | a policer that drops, in the same direction | the same, for schemes that react to losses or follow the delivery rate |
//! | a delay line with a limit, in the same direction | at most its limit arrives within its delay |
//! | loss of at least [`MIN_LOSS`], in the same direction | a scheme that is `loss_based` in its registration reduces its window by more than it adds |
//!
//! A server in the direction of acknowledgements alone is not a bound: its queue overflows, and each remaining
//! acknowledgement covers more data. Neither are delays, outages, a list of losses (it ends), marks without a queue,
//! loss for schemes that do not react to each loss, or huge token buckets. A bound may still be high (a link of 10
//! Tbit/s); the agent's memory limit covers these cases.

use crate::cell::Cell;
use crate::flow::{Flow, SchemeRef};
use narrows_net::{DataLimit, MIN_LOSS};
use narrows_record::CellElement as Element;
use narrows_traffic::Class;
use narrows_units::Span;
use serde_json::{Map, Value};

/// Data that may safely be in flight: a million packets, whose traces take some 100 MB.
const MAX_BYTES: u64 = 1_000_000_000;
/// Maximum rate in bit/s that counts as a bound: the maximum rate of links.
const MAX_RATE: f64 = 1e13;
/// The bound of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The flow.
    pub flow: u16,
    /// Its bound, as part of a sentence; `None` if it is unbounded.
    pub by: Option<String>,
}

impl Cell {
    /// The bound of each flow, in the order of the flows.
    pub fn bounds(&self) -> Vec<Bound> {
        let Ok(path) = narrows_record::Cell::parse(&self.json) else {
            return Vec::new();
        };
        let bound = |flow: &Flow| Bound {
            flow: flow.flow,
            by: own(&path, flow)
                .or_else(|| window(self, &path, flow))
                .or_else(|| way(&path, flow)),
        };
        self.flows.iter().map(bound).collect()
    }

    /// The reason why this cell must not be simulated: its unbounded flows, and what to add.
    pub fn unbounded(&self) -> Option<String> {
        let bounds = self.bounds().into_iter();
        let free: Vec<u16> = bounds.filter(|b| b.by.is_none()).map(|b| b.flow).collect();
        let first = free.first()?;
        let flow = self.flows.iter().find(|flow| flow.flow == *first)?;
        let others = match free.len() {
            1 => String::new(),
            2 => " (nor one other flow)".into(),
            more => format!(" (nor {} other flows)", more - 1),
        };
        Some(format!(
            "nothing bounds flow {first} ({}){others}, so that a simulation of it would take all memory: add a link \
             with a rate in the direction of its data (rate: 100 Mbit/s), or give its hosts a window, or its traffic \
             a rate or a size",
            flow.name
        ))
    }
}

/// A bound that is independent of the path.
fn own(path: &narrows_record::Cell, flow: &Flow) -> Option<String> {
    let (kind, params) = (flow.traffic.kind, &flow.traffic.params);
    let name = kind.entry.name;
    let takes_time = !round_trip(path, flow).is_zero();
    if let SchemeRef::Media(scheme, _) = &flow.scheme {
        return Some(format!("the largest rate of {}", scheme.name));
    }
    if let SchemeRef::Program(program) = &flow.scheme {
        return Some(format!("what {} sends", program.name));
    }
    if let SchemeRef::Native(_, params) = &flow.scheme
        && let Some(packets) = params.integer("max_window").filter(|&packets| packets > 0)
        && packets.saturating_mul(1500 * u64::from(flow.connections)) <= MAX_BYTES
        && takes_time
    {
        return Some(format!("its largest window, {packets} packets"));
    }
    let size = |name| params.integer(name).filter(|&bytes| bytes <= MAX_BYTES);
    match name {
        _ if kind.class == Class::Datagrams => Some(format!("its application ({name})")),
        "transfer" => size("bytes")
            .filter(|bytes| bytes.saturating_mul(u64::from(flow.connections)) <= MAX_BYTES)
            .map(|bytes| format!("its application (a transfer of {})", in_words(bytes, "B"))),
        "arrivals" => size("size").map(|_| "its application (arrivals)".into()),
        "onoff" => params.rate("rate").map(|rate| {
            format!(
                "its application (onoff at {})",
                in_words(rate.bps(), "bit/s")
            )
        }),
        "requests" => {
            let waits = params.span("think").is_some_and(|think| !think.is_zero());
            size("response")
                .filter(|_| waits || takes_time)
                .map(|_| "its application (requests)".into())
        }
        "web" => takes_time.then(|| "its application (web)".into()),
        _ => None,
    }
}

/// The minimum round-trip time; at least a nanosecond if some element has an unknown delay.
fn round_trip(path: &narrows_record::Cell, flow: &Flow) -> Span {
    let minimum = |direction| path.propagation_ns(flow.flow, direction);
    let (there, back) = (flow.direction, flow.direction.reverse());
    let takes_time = |element: &&Element| match element.effects() {
        Some(effects) => effects.takes_time,
        None => element.is_bottleneck(),
    };
    let way = |direction| {
        let slow = path.elements(flow.flow, direction).filter(takes_time);
        1_000 * slow.count() as u64
    };
    let sum = minimum(there).saturating_add(minimum(back));
    Span::from_ns(sum.max(way(there)).max(way(back)))
}

/// A bound by the buffers of its hosts.
fn window(cell: &Cell, path: &narrows_record::Cell, flow: &Flow) -> Option<String> {
    if !matches!(flow.scheme, SchemeRef::Native(..)) {
        return None;
    }
    let window = cell.transport(flow, flow.from).window;
    let all = window.checked_mul(u64::from(flow.connections))?;
    let rtt = round_trip(path, flow);
    let fits = all <= MAX_BYTES && !rtt.is_zero() && all as f64 * 8.0 / rtt.secs() <= MAX_RATE;
    fits.then(|| format!("its window of {}", in_words(window, "B")))
}

/// A bound by the elements on the path of its data.
fn way(path: &narrows_record::Cell, flow: &Flow) -> Option<String> {
    let elements = path.elements(flow.flow, flow.direction);
    let found = elements.filter_map(|element| by_element(path, element, flow));
    // A link is the most meaningful bound, loss the least.
    found.min_by_key(|(rank, _)| *rank).map(|(_, by)| by)
}

/// An element through the whole run: its parameters, and those after each change.
fn states(path: &narrows_record::Cell, element: &Element) -> Vec<Map<String, Value>> {
    let mut now = element.params.clone();
    let mut all = vec![now.clone()];
    for change in path.changes_of(element.label()) {
        now.extend(change.set.clone());
        all.push(now.clone());
    }
    all
}

fn by_element(path: &narrows_record::Cell, element: &Element, flow: &Flow) -> Option<(u8, String)> {
    let name = element.label();
    if element.kind == narrows_record::REAL {
        return Some((0, "the real path".into()));
    }
    let states = states(path, element);
    let Some(effects) = element.effects() else {
        return link(element, &states).map(|by| (0, by));
    };
    let limits: Vec<DataLimit> = states.iter().map(effects.limit).collect();
    let all = |small: fn(&DataLimit) -> bool| limits.iter().all(small);
    if all(|limit| *limit == DataLimit::Rate) {
        return Some((0, format!("groups at {name}")));
    }
    if all(|limit| matches!(limit, DataLimit::Excess(burst) if *burst <= MAX_BYTES as f64)) {
        return Some((1, format!("{} {name}", element.kind)));
    }
    if all(
        |limit| matches!(limit, DataLimit::Room(packets) if packets * 1500.0 <= MAX_BYTES as f64),
    ) {
        return Some((1, format!("the limit of {name}")));
    }
    let share = |limit: &DataLimit| match limit {
        DataLimit::Loss(share) => *share,
        _ => 0.0,
    };
    let minimum = limits.iter().map(share).fold(1.0, f64::min);
    let answers = match &flow.scheme {
        SchemeRef::Native(scheme, _) => scheme.loss_based,
        _ => true,
    };
    (answers && minimum >= MIN_LOSS)
        .then(|| (2, format!("loss of {:.3} % at {name}", minimum * 100.0)))
}

/// The bound by a bottleneck, unless a huge bucket may pass at one instant.
fn link(element: &Element, states: &[Map<String, Value>]) -> Option<String> {
    let is_small = |state: &Map<String, Value>| {
        let rate = state.get("rate").and_then(Value::as_object);
        rate.is_none_or(|rate| {
            let burst = rate.get("burst").and_then(Value::as_f64).unwrap_or(0.0);
            rate.get("peak").is_some_and(|peak| !peak.is_null()) || burst <= MAX_BYTES as f64
        })
    };
    if !element.is_bottleneck() || !states.iter().all(is_small) {
        return None;
    }
    let constant = element.params.get("rate").filter(|_| states.len() == 1);
    let constant = constant.filter(|rate| rate["kind"] == "constant");
    let rate = constant.and_then(|rate| rate["rate"].as_u64());
    let rate = rate.map_or(String::new(), |bps| {
        format!(" ({})", in_words(bps, "bit/s"))
    });
    Some(format!("link {}{rate}", element.label()))
}

/// An amount for people: `12 Mbit/s`, `64 kB`.
pub fn in_words(value: u64, unit: &str) -> String {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let fitting = scales.iter().find(|(scale, _)| value as f64 >= *scale);
    let (scale, prefix) = fitting.copied().unwrap_or((1.0, ""));
    let number = (value as f64 / scale * 1000.0).round() / 1000.0;
    format!("{number} {prefix}{unit}")
}

#[cfg(test)]
mod tests;
