//! The sampled states of senders go forward in time, and what they count never shrinks.

use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::schema::StateRow;
use std::collections::BTreeMap;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "states",
    claim: "the states of each sender go forward in time, and its counters never shrink",
    run,
};

/// Columns that count since the start. (Packets declared lost are not among them: the kernel
/// reports those that are lost at present.)
type Counter = (&'static str, fn(&StateRow) -> Option<u64>);
const COUNTERS: [Counter; 2] = [
    ("delivered_bytes", |row| row.delivered_bytes),
    ("retransmitted_bytes", |row| row.retransmitted_bytes),
];

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.states.is_empty() {
        return CheckOutcome::Skipped("no state was sampled".into());
    }
    let mut faults = CheckFaults::default();
    let mut last: BTreeMap<u16, (u64, [u64; 2])> = BTreeMap::new();
    // A late sampler of an emulation takes its last sample a little after the end.
    let end = evidence.end_ns();
    for row in evidence.states.iter() {
        let flow = row.flow;
        if evidence.cell.flow(flow).is_none() {
            faults.add(format_args!(
                "flow {flow} was sampled, and the cell has no such flow"
            ));
            continue;
        }
        if row.time_ns > end {
            faults.add(format_args!(
                "flow {flow} was sampled after the end, at {} ns",
                row.time_ns
            ));
        }
        let (time, counts) = last.entry(flow).or_insert((0, [0; 2]));
        if row.time_ns < *time {
            let now = row.time_ns;
            faults.add(format_args!(
                "the states of flow {flow} go back in time at {now} ns"
            ));
        }
        *time = row.time_ns;
        for ((name, value), known) in COUNTERS.iter().zip(counts) {
            let Some(value) = value(row) else { continue };
            if value < *known {
                faults.add(format_args!(
                    "{name} of flow {flow} shrinks from {known} to {value}"
                ));
            }
            *known = value;
        }
    }
    faults.outcome(|| format!("{} states of {} flows", evidence.states.len(), last.len()))
}
