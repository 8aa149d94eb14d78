//! Servers that release packets in groups keep to their described times and sizes.
//!
//! * `ticks`: every departure is at a multiple of the tick, and in every sequence of ticks no more leaves than their
//!   credit plus a possible remainder of earlier credit, which is less than the packet that it did not suffice for.
//!
//! * `wifi`: packets that leave together are one transmission; it keeps to the limits of an aggregate, unless it is a
//!   single frame, and the time since the previous transmission suffices for it, its overhead and its acknowledgement.
//!
//! Departures follow exactly from arrivals if only fixed delays are behind the bottleneck, in simulation and in
//! emulation.

use super::layout::StageNature;
use super::rate::departures_of;
use super::record_data::Queueing;
use super::timeline::NS;
use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck, bins_only};
use narrows_net::rates;
use serde_json::Value;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "bursts",
    claim: "servers that release packets in groups kept to their times and sizes",
    run,
};

/// A departure: time, bits on the wire, row.
type Left = (u64, i128, usize);

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    for queueing in &evidence.servers {
        let name = &evidence.stages[queueing.index].name;
        let Some(rate) = rate_of(evidence, name) else {
            continue;
        };
        let check = match rate.get("kind").and_then(Value::as_str) {
            Some("ticks") => ticks,
            Some("wifi") => wifi,
            _ => continue,
        };
        if evidence.packets.is_none() {
            return bins_only();
        }
        let mut changes = evidence.cell.changes_of(name);
        if changes.any(|change| change.set.contains_key("rate")) {
            faults.note(Err(format!("the timeline changes the rate of {name}")));
            continue;
        }
        let part = departures(evidence, queueing).map(|left| {
            check(name, rate, &left, &mut faults);
            format!("{} departures of {name}", left.len())
        });
        faults.note(part);
    }
    faults.conclude(CheckOutcome::Holds(
        "no server releases packets in groups".into(),
    ))
}

fn rate_of<'a>(evidence: &'a Evidence<'_>, name: &str) -> Option<&'a Value> {
    evidence.cell.network.element(name)?.params.get("rate")
}

fn departures(evidence: &Evidence<'_>, queueing: &Queueing) -> Result<Vec<Left>, String> {
    let StageNature::Bottleneck(server) = &evidence.stages[queueing.index].nature else {
        return Ok(Vec::new());
    };
    let rows = departures_of(evidence, queueing)?;
    let sizes = evidence.packets.as_ref().map(|packets| &packets.size);
    let bits = |row: usize| server.wire_bits(sizes.map_or(0, |sizes| sizes[row]));
    Ok(rows
        .into_iter()
        .map(|(at, row)| (at, bits(row), row))
        .collect())
}

/// A parameter of a rate, or its default if the cell does not name it.
fn number(rate: &Value, name: &str) -> u64 {
    let default = || {
        let kind = rate.get("kind")?.as_str()?;
        let mut entries = rates::ALL.iter().filter(|entry| entry.name == kind);
        let mut specs = entries.next()?.params.iter();
        let default = specs.find(|spec| spec.name == name)?.default_value()?;
        default.to_json().as_u64()
    };
    let written = rate.get(name).and_then(Value::as_u64);
    written.or_else(default).unwrap_or(0)
}

fn ticks(name: &str, rate: &Value, left: &[Left], faults: &mut CheckFaults) {
    let (bps, tick) = (number(rate, "rate"), number(rate, "tick").max(1));
    let each = i128::from(bps) * i128::from(tick);
    // Largest excess, in bits times 10^9, of any sequence of ticks that ends with the previous one.
    let mut maximum: Option<(u64, i128)> = None;
    for group in left.chunk_by(|a, b| a.0 == b.0) {
        let (at, _, row) = group[0];
        if at % tick != 0 {
            faults.add(format_args!(
                "the packet in row {} left {name} between two ticks, at {at} ns",
                row + 1
            ));
            continue;
        }
        let bits: i128 = group.iter().map(|left| left.1 * NS).sum();
        let kept = group.iter().map(|left| left.1 * NS).max().unwrap_or(0);
        let alone = bits - kept - each;
        let longer =
            maximum.map(|(last, excess)| excess + bits - i128::from((at - last) / tick) * each);
        let excess = longer.map_or(alone, |longer| longer.max(alone));
        if excess > 0 {
            let bits = excess / NS;
            faults.add(format_args!(
                "at the tick at {at} ns {name} had released {bits} bits more than its credit"
            ));
        }
        maximum = Some((at, excess.min(0)));
    }
}

fn wifi(name: &str, rate: &Value, left: &[Left], faults: &mut CheckFaults) {
    let of = |name| i128::from(number(rate, name));
    let bps = of("rate").max(1);
    let mut before: Option<u64> = None;
    for group in left.chunk_by(|a, b| a.0 == b.0) {
        let (at, _, row) = group[0];
        let count = group.len() as i128;
        let length = |left: &Left| (left.1 / 8 + of("frame") + 3) / 4 * 4;
        let bytes: i128 = group.iter().map(length).sum();
        let fits =
            count <= of("frames") && bytes <= of("bytes") && bytes * 8 * NS <= of("time") * bps;
        if count > 1 && !fits {
            faults.add(format_args!("{count} frames of {bytes} bytes left {name} together at {at} ns, which is beyond its limits"));
        }
        // Times are integers in nanoseconds, which the model rounds up: the time required here is never longer.
        let needed = of("overhead") + (bytes + of("ack")) * 8 * NS / bps;
        if before.is_some_and(|before| i128::from(at - before) < needed) {
            let row = row + 1;
            faults.add(format_args!("the transmission with the packet in row {row} by {name} was shorter than {needed} ns"));
        }
        before = Some(at);
    }
}
