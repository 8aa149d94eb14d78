//! No packet passes a link during an outage, and a link drops packets for that reason only during one.
//!
//! Gates are opened and closed by the timeline, outages follow from their parameters. For elements that drop packets
//! while closed, the time of passing follows from the stamps and the fixed delays in front of them; in emulation a
//! packet may have arrived later than its stamp, so only packets count that cannot have met another state. Elements
//! that hold packets release none before they open.

use super::{
    CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, element_times, on_packets,
};
use crate::cell::{Cell, CellElement};
use serde_json::Value;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "cuts",
    claim: "no packet passed a link while it was cut, and it dropped no packet otherwise",
    run: |evidence| on_packets(evidence, run),
};

/// The times at which an element lets no packet through.
struct Closed {
    /// Start and end of each interval, in order.
    times: Vec<(u64, u64)>,
    /// True if it holds packets while closed instead of dropping them.
    holds: bool,
}

impl Closed {
    fn new(cell: &Cell, element: &CellElement) -> Option<Self> {
        match element.kind.as_str() {
            "gate" => Some(Self::gate(cell, element)),
            // If a timeline changes an outage, its state in between is not known.
            "outage" if cell.changes_of(element.label()).next().is_none() => {
                Self::outage(cell, element)
            }
            _ => None,
        }
    }

    fn gate(cell: &Cell, element: &CellElement) -> Self {
        let open = |value: Option<&Value>| value.and_then(Value::as_bool);
        let mut is_open = open(element.params.get("open")).unwrap_or(true);
        let mut since = 0;
        let mut times = Vec::new();
        for change in cell.changes_of(element.label()) {
            let Some(now) = open(change.set.get("open")) else {
                continue;
            };
            if is_open && !now {
                since = change.at_ns;
            } else if !is_open && now {
                times.push((since, change.at_ns));
            }
            is_open = now;
        }
        if !is_open {
            times.push((since, u64::MAX));
        }
        Closed {
            times,
            holds: false,
        }
    }

    fn outage(cell: &Cell, element: &CellElement) -> Option<Self> {
        let number = |name: &str| element.params.get(name).and_then(Value::as_u64);
        let (start, length) = (number("start")?, number("length")?);
        let mut times = Vec::new();
        let mut from = start;
        // Until the end of the run, with a margin for packets that an emulation releases late.
        let end = cell.duration_ns.saturating_add(2_000_000_000);
        while from < end && times.len() < 1_000_000 {
            times.push((from, from.saturating_add(length)));
            match number("period").filter(|&period| period > length) {
                Some(period) => from = from.saturating_add(period),
                None => break,
            }
        }
        let mode = element.params.get("mode").and_then(Value::as_str);
        Some(Closed {
            times,
            holds: mode == Some("hold"),
        })
    }

    /// True if it is closed at `time`, and the time until which that does not change.
    fn at(&self, time: u64) -> (bool, u64) {
        let next = self.times.partition_point(|&(start, _)| start <= time);
        match next.checked_sub(1).map(|last| self.times[last].1) {
            Some(end) if time < end => (true, end),
            _ => (false, self.times.get(next).map_or(u64::MAX, |next| next.0)),
        }
    }
}

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    for (lane, layout) in evidence.lanes.iter().enumerate() {
        for (place, stage) in layout.stages.iter().enumerate() {
            let element = evidence.cell.network.element(&stage.name);
            let Some(closed) = element.and_then(|e| Closed::new(evidence.cell, e)) else {
                continue;
            };
            let at = (lane, place);
            let done = if closed.holds {
                departures(evidence, packets, at, &closed, &mut faults)
            } else {
                passages(evidence, packets, at, &closed, &mut faults)
            };
            faults.note(done.map(|count| format!("{count} packets at {}", stage.name)));
        }
    }
    faults.conclude(CheckOutcome::Holds("no link can be cut".into()))
}

/// Packets at an element that drops them while it is closed.
fn passages(
    evidence: &Evidence<'_>,
    packets: &Packets,
    (lane, place): (usize, usize),
    closed: &Closed,
    faults: &mut CheckFaults,
) -> Result<u64, String> {
    let name = &evidence.lanes[lane].stages[place].name;
    let slack = evidence.slack_ns();
    let slack = if evidence.simulated() { 0 } else { slack };
    let mut count = 0;
    for entry in element_times::entries(evidence, packets, (lane, place))? {
        let time = entry.time_ns;
        let (shut, until) = closed.at(time);
        if until <= time.saturating_add(slack) && slack > 0 {
            continue;
        }
        count += 1;
        let uid = packets.uid[entry.row];
        if shut && !entry.dropped {
            faults.add(format_args!(
                "packet {uid} passed {name} at {time} ns, while it was cut"
            ));
        } else if !shut && entry.dropped {
            faults.add(format_args!(
                "{name} dropped packet {uid} at {time} ns, while it was open"
            ));
        }
    }
    Ok(count)
}

/// Packets that left an element that holds packets while it is closed.
fn departures(
    evidence: &Evidence<'_>,
    packets: &Packets,
    at: (usize, usize),
    closed: &Closed,
    faults: &mut CheckFaults,
) -> Result<u64, String> {
    let name = &evidence.lanes[at.0].stages[at.1].name;
    let mut count = 0;
    for (left, row) in element_times::departures(evidence, packets, [at])? {
        let Some(left) = u64::try_from(left)
            .ok()
            .filter(|_| packets.copy_of[row] == 0)
        else {
            continue;
        };
        count += 1;
        if closed.at(left).0 {
            let uid = packets.uid[row];
            faults.add(format_args!(
                "packet {uid} left {name} at {left} ns, while it was cut"
            ));
        }
    }
    Ok(count)
}
