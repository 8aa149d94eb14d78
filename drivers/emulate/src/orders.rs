//! Orders that change a run while it is under way, as lines of JSON on standard input:
//!
//! ```text
//! {"order": "change", "element": "forward.0", "set": {"rate": {"kind": "constant", "rate": 5000000}}}
//! {"order": "start", "flow": 2}
//! {"order": "stop", "flow": 1}
//! ```
//!
//! A flow that starts exists in the cell already, with a later start. A change of an element becomes an entry of the cell's timeline at a time slightly in the future. The changed cell is built and
//! checked as a whole before a thread of the emulator takes over its timeline, so that a run of the changed cell, from
//! its beginning, has the same network at any time.

use super::live::LiveEvent;
use super::testbed::Testbed;
use narrows_cell::{Cell, Flow, SchemeRef};
use narrows_emulator::{Course, Settled, Steering};
use narrows_endpoints::supervisor::Supervisor;
use narrows_units::Time;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Time from an order until it takes effect: the thread has to be woken before.
const AHEAD_NS: u64 = 30_000_000;
/// Changes take effect at multiples of this time, which is short to write.
const GRID_NS: u64 = 1_000_000;
/// Longest line of standard input.
const MAX_LINE: usize = 1 << 16;

/// An order in its written form.
#[derive(Debug, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
enum Order {
    /// Set values of an element.
    Change {
        element: String,
        set: Map<String, Value>,
    },
    /// Start a flow that would start later.
    Start { flow: u16 },
    /// Stop a flow that would stop later.
    Stop { flow: u16 },
}

/// A change that a thread of the emulator has not decided about yet.
struct Awaited {
    settled: Settled,
    cell: Cell,
    /// The flow whose times change.
    flow: Option<u16>,
    event: LiveEvent,
}

/// Reads orders and carries them out, one after the other.
#[derive(Default)]
pub(super) struct Orders {
    /// The beginning of a line.
    rest: Vec<u8>,
    waiting: VecDeque<Vec<u8>>,
    awaited: Option<Awaited>,
    /// The cell with all changes so far.
    pub(super) changed: Option<Cell>,
}

impl Orders {
    /// Takes bytes of standard input.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if !line.trim_ascii().is_empty() {
                self.waiting.push_back(line);
            }
        }
        if self.rest.len() > MAX_LINE {
            self.waiting.push_back(std::mem::take(&mut self.rest));
        }
    }

    /// True if a change awaits its outcome.
    pub(super) fn is_busy(&self) -> bool {
        self.awaited.is_some()
    }

    /// Goes on at `now_ns` of the run; returns an event, if there is news.
    pub(super) fn step(
        &mut self,
        now_ns: u64,
        testbed: &Testbed,
        supervisor: &mut Supervisor,
    ) -> Option<LiveEvent> {
        if self.awaited.is_none() {
            let line = self.waiting.pop_front()?;
            match self.begin(&line, now_ns, testbed) {
                Ok(awaited) => self.awaited = Some(awaited),
                Err(message) => return Some(LiveEvent::Refused { message }),
            }
        }
        let outcome = self.awaited.as_ref()?.settled.outcome()?;
        let awaited = self.awaited.take()?;
        if !outcome {
            let message = "the emulator was late, so that the change could not take effect in time; try again";
            return Some(LiveEvent::Refused {
                message: message.to_owned(),
            });
        }
        let flows = awaited.cell.flows.iter();
        for flow in flows.filter(|flow| Some(flow.flow) == awaited.flow) {
            let stop = flow.stop.min(awaited.cell.duration);
            supervisor.reschedule(flow.flow, flow.start.ns(), stop.ns());
        }
        self.changed = Some(awaited.cell);
        Some(awaited.event)
    }

    /// Hands an order to the thread that it concerns.
    ///
    /// # Errors
    /// The reason for which it is refused.
    fn begin(&self, line: &[u8], now_ns: u64, testbed: &Testbed) -> Result<Awaited, String> {
        let order = serde_json::from_slice(line);
        let order: Order = order.map_err(|error| format!("the order cannot be read: {error}"))?;
        let at_ns = (now_ns + AHEAD_NS).next_multiple_of(GRID_NS);
        let before = self.changed.as_ref().unwrap_or(&testbed.cell);
        if at_ns >= before.duration.ns() {
            return Err("the run is almost over, so that nothing can change any more".to_owned());
        }
        let (cell, settled, flow) = match &order {
            Order::Change { element, set } => {
                let cell = change_at(before, at_ns, element, set)?;
                let settled = hand_over(testbed, &cell, element, at_ns)?;
                (cell, settled, None)
            }
            Order::Start { flow } => {
                let cell = start_at(before, at_ns, *flow)?;
                (cell, Settled::by_itself(), Some(*flow))
            }
            Order::Stop { flow } => {
                let cell = stop_at(before, now_ns, at_ns, *flow)?;
                let from = flow_of(&cell, *flow)?.from;
                let (flow, at) = (*flow, Time::from_ns(at_ns));
                let thread = testbed.thread_of(from);
                (
                    cell,
                    steer(testbed, thread, Course::Stop { flow, at }),
                    Some(flow),
                )
            }
        };
        let event = match order {
            Order::Change { element, set } => LiveEvent::Changed {
                at_ns,
                element: Some(element),
                set: Some(set),
                start: None,
                stop: None,
            },
            Order::Start { flow } | Order::Stop { flow } => LiveEvent::Changed {
                at_ns,
                element: None,
                set: None,
                start: matches!(order, Order::Start { .. }).then_some(flow),
                stop: matches!(order, Order::Stop { .. }).then_some(flow),
            },
        };
        Ok(Awaited {
            settled,
            cell,
            flow,
            event,
        })
    }
}

/// The flow with this number, whose times may change.
///
/// # Errors
/// The flow does not exist, or its program has a plan of its times.
fn flow_of(cell: &Cell, number: u16) -> Result<&Flow, String> {
    let found = cell.flows.iter().find(|flow| flow.flow == number);
    let flow = found.ok_or_else(|| format!("flow {number} does not exist"))?;
    if let SchemeRef::Program(_) = flow.scheme {
        return Err(format!(
            "flow {number} is a program, which is started and stopped at the times of the scenario"
        ));
    }
    Ok(flow)
}

/// `cell` with a flow that starts at `at_ns` already.
///
/// # Errors
/// A flow that does not exist or starts before.
fn start_at(cell: &Cell, at_ns: u64, number: u16) -> Result<Cell, String> {
    if flow_of(cell, number)?.start.ns() <= at_ns {
        return Err(format!("flow {number} has started already"));
    }
    with_time(cell, number, "start_ns", at_ns)
}

/// `cell` with a flow that stops at `at_ns` already.
///
/// # Errors
/// A flow that does not exist, has not started or stops before.
fn stop_at(cell: &Cell, now_ns: u64, at_ns: u64, number: u16) -> Result<Cell, String> {
    let flow = flow_of(cell, number)?;
    if flow.start.ns() >= now_ns {
        return Err(format!("flow {number} has not started yet"));
    }
    if flow.stop.ns() <= at_ns {
        return Err(format!("flow {number} has stopped already"));
    }
    with_time(cell, number, "stop_ns", at_ns)
}

fn with_time(cell: &Cell, number: u16, member: &str, at_ns: u64) -> Result<Cell, String> {
    let mut json = cell.json.clone();
    let flows = json["flows"].as_array_mut().into_iter().flatten();
    for flow in flows.filter(|flow| flow["flow"] == number) {
        flow[member] = at_ns.into();
    }
    parse(cell, &json)
}

/// A cell like `cell` with other content.
fn parse(cell: &Cell, json: &Value) -> Result<Cell, String> {
    let files = cell.files.clone();
    Cell::parse_with(&json.to_string(), |_| Ok(files)).map_err(|error| error.to_string())
}

/// Hands a decision to a thread of the emulator, and wakes it.
fn steer(testbed: &Testbed, thread: usize, course: Course) -> Settled {
    let settled = Settled::default();
    if let Some(gauges) = &testbed.gauges {
        let settled = settled.clone();
        gauges.steer(thread, Steering { course, settled });
    }
    testbed.control.wake();
    settled
}

/// `cell` with another entry of its timeline.
///
/// # Errors
/// A cell that is invalid then.
fn change_at(
    cell: &Cell,
    at_ns: u64,
    element: &str,
    set: &Map<String, Value>,
) -> Result<Cell, String> {
    let mut json = cell.json.clone();
    let timeline = &mut json["timeline"];
    if timeline.is_null() {
        *timeline = json!([]);
    }
    let Some(entries) = timeline.as_array_mut() else {
        return Err("the timeline of the cell is not a list".to_owned());
    };
    let later = |entry: &Value| entry["at_ns"].as_u64().is_some_and(|at| at > at_ns);
    let place = entries.iter().position(later).unwrap_or(entries.len());
    let entry = json!({"at_ns": at_ns, "element": element, "set": set});
    entries.insert(place, entry);
    parse(cell, &json)
}

/// Hands the timeline of `cell` from `at_ns` on to the thread that keeps `element`, and wakes it.
///
/// # Errors
/// An element that does not exist, values that it does not take.
fn hand_over(testbed: &Testbed, cell: &Cell, element: &str, at_ns: u64) -> Result<Settled, String> {
    for thread in 0..testbed.threads {
        let network = testbed
            .network_of(cell, thread)
            .map_err(|error| error.to_string())?;
        let stage = network.stages().find(|stage| stage.name == element);
        let link = stage.map(|stage| stage.link_index);
        if link.is_none_or(|link| !network.keeps(link)) {
            continue;
        }
        let course = Course::Timeline {
            changes: network.into_changes(Time::from_ns(at_ns)),
            replaced_rates: cell.replaced_rates(),
            unknown_rates: cell.unknown_rates(),
        };
        return Ok(steer(testbed, thread, course));
    }
    Err(format!("the element '{element}' carries no packets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> Cell {
        let text = json!({
            "format": "narrows/cell/1", "id": "a", "seed": 1, "duration_ns": 1_000_000_000, "record": "packets",
            "bin_ns": 10_000_000, "sample_ns": 10_000_000,
            "network": {
                "forward": [
                    {"kind": "bottleneck", "name": "forward.0", "rate": {"kind": "constant", "rate": 8_000_000},
                     "queue": {"kind": "droptail", "bytes": 30_000}},
                    {"kind": "delay", "name": "forward.1", "delay": 10_000_000},
                ],
                "backward": [{"kind": "delay", "name": "backward.0", "delay": 10_000_000}],
            },
            "flows": [{"flow": 1, "scheme": "reno", "stop_ns": 1_000_000_000}],
        });
        Cell::parse(&text.to_string()).unwrap()
    }

    fn delay(delay: u64) -> Map<String, Value> {
        let set = json!({"delay": delay});
        set.as_object().cloned().unwrap()
    }

    #[test]
    fn changes_enter_the_timeline_in_order_of_time() {
        let late = change_at(&cell(), 700, "forward.1", &delay(5)).unwrap();
        let both = change_at(&late, 300, "forward.1", &delay(7)).unwrap();
        let times = both.json["timeline"].as_array().unwrap().iter();
        let times: Vec<u64> = times
            .map(|entry| entry["at_ns"].as_u64().unwrap())
            .collect();
        assert_eq!(times, [300, 700]);
    }

    #[test]
    fn flows_start_and_stop_once() {
        let mut json = cell().json;
        json["flows"][0]["start_ns"] = 500.into();
        let late = Cell::parse(&json.to_string()).unwrap();
        let started = start_at(&late, 300, 1).unwrap();
        assert_eq!(started.flows[0].start.ns(), 300);
        assert!(start_at(&started, 400, 1).is_err());
        assert!(
            stop_at(&started, 200, 400, 1).is_err(),
            "it has not started"
        );
        let stopped = stop_at(&started, 350, 400, 1).unwrap();
        assert_eq!(stopped.flows[0].stop.ns(), 400);
        assert!(stop_at(&stopped, 450, 500, 1).is_err());
        assert!(stop_at(&stopped, 450, 500, 2).is_err());
    }

    #[test]
    fn lines_become_orders_when_they_are_complete_and_endless_ones_too() {
        let mut orders = Orders::default();
        orders.add(b"{\"order\": \"ch");
        assert!(orders.waiting.is_empty());
        orders.add(b"ange\"}\n\n{}\n");
        assert_eq!(orders.waiting.len(), 2);
        orders.add(&vec![b'x'; MAX_LINE + 1]);
        assert_eq!((orders.waiting.len(), orders.rest.len()), (3, 0));
    }
}
