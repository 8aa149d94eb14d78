//! Orders that change a run while it is under way, as lines of JSON on standard input:
//! `{"order": "change", "element": "forward.0", "set": {"rate": {"kind": "constant", "rate": 5000000}}}`.
//!
//! An order becomes an entry of the cell's timeline at a time slightly in the future. The changed cell is built and
//! checked as a whole before a thread of the emulator takes over its timeline, so that a run of the changed cell, from
//! its beginning, has the same network at any time.

use super::live::LiveEvent;
use super::testbed::Testbed;
use narrows_cell::Cell;
use narrows_emulator::{Settled, Steering};
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

/// An order as it is written.
#[derive(Debug, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
enum Order {
    /// Set values of an element.
    Change {
        element: String,
        set: Map<String, Value>,
    },
}

/// A change that a thread of the emulator has not decided about yet.
struct Awaited {
    settled: Settled,
    cell: Cell,
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
    pub(super) fn step(&mut self, now_ns: u64, testbed: &Testbed) -> Option<LiveEvent> {
        if let Some(awaited) = self.awaited.take() {
            match awaited.settled.outcome() {
                None => {
                    self.awaited = Some(awaited);
                    return None;
                }
                Some(true) => {
                    self.changed = Some(awaited.cell);
                    return Some(awaited.event);
                }
                Some(false) => {
                    return Some(refuse(
                        "the emulator was late, so that the change could not take effect in time; try again",
                    ));
                }
            }
        }
        let line = self.waiting.pop_front()?;
        match self.begin(&line, now_ns, testbed) {
            Ok(awaited) => {
                self.awaited = Some(awaited);
                None
            }
            Err(message) => Some(refuse(&message)),
        }
    }

    /// Hands an order to the thread that it concerns.
    ///
    /// # Errors
    /// The reason for which it is refused.
    fn begin(&self, line: &[u8], now_ns: u64, testbed: &Testbed) -> Result<Awaited, String> {
        let order = serde_json::from_slice(line);
        let Order::Change { element, set } =
            order.map_err(|error| format!("the order cannot be read: {error}"))?;
        if testbed.gauges.is_none() {
            return Err("this run takes no orders".to_owned());
        }
        let at_ns = (now_ns + AHEAD_NS).next_multiple_of(GRID_NS);
        let before = self.changed.as_ref().unwrap_or(&testbed.cell);
        if at_ns >= before.duration.ns() {
            return Err("the run is almost over, so that nothing can change any more".to_owned());
        }
        let cell = change_at(before, at_ns, &element, &set)?;
        let settled = hand_over(testbed, &cell, &element, at_ns)?;
        Ok(Awaited {
            settled,
            cell,
            event: LiveEvent::Changed {
                at_ns,
                element,
                set,
            },
        })
    }
}

fn refuse(message: &str) -> LiveEvent {
    LiveEvent::Refused {
        message: message.to_owned(),
    }
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
    let files = cell.files.clone();
    Cell::parse_with(&json.to_string(), |_| Ok(files)).map_err(|error| error.to_string())
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
        let settled = Settled::default();
        let steering = Steering {
            changes: network.into_changes(Time::from_ns(at_ns)),
            replaced_rates: cell.replaced_rates(),
            unknown_rates: cell.unknown_rates(),
            settled: settled.clone(),
        };
        if let Some(gauges) = &testbed.gauges {
            gauges.steer(thread, steering);
        }
        testbed.control.wake();
        return Ok(settled);
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
            "flows": [{"flow": 1, "scheme": {"kind": "native", "name": "reno"}, "start_ns": 0}],
        });
        Cell::parse(&text.to_string()).unwrap()
    }

    fn set(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn changes_enter_the_timeline_in_order_of_time() {
        let late = change_at(&cell(), 700, "forward.1", &set(json!({"delay": 5}))).unwrap();
        let both = change_at(&late, 300, "forward.1", &set(json!({"delay": 7}))).unwrap();
        let times = both.json["timeline"].as_array().unwrap().iter();
        let times: Vec<u64> = times
            .map(|entry| entry["at_ns"].as_u64().unwrap())
            .collect();
        assert_eq!(times, [300, 700]);
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
