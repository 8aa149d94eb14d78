//! The sampled states of senders advance in time, and their counters never decrease.

use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::RecordError;
use crate::read::Record;
use crate::rows::for_each;
use crate::schema::StateRow;
use std::collections::BTreeMap;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "states",
    claim: "the states of each sender advance in time, and its counters never decrease",
    run,
};

/// Columns that count since the start. (Packets declared lost are not among them: the kernel reports those that are
/// currently lost.)
type Counter = (&'static str, fn(&StateRow) -> Option<u64>);
const COUNTERS: [Counter; 2] = [
    ("delivered_bytes", |row| row.delivered_bytes),
    ("retransmitted_bytes", |row| row.retransmitted_bytes),
];

/// Results of checking the states, computed while they are read: thousands of flows have millions of states.
pub(super) struct StatesSeen {
    pub(super) rows: u64,
    flows: usize,
    faults: CheckFaults,
}

impl StatesSeen {
    /// Checks all states. Those after `end_ns` are faults.
    pub(super) fn read(record: &Record, end_ns: u64) -> Result<Self, RecordError> {
        let mut seen = StatesSeen {
            rows: 0,
            flows: 0,
            faults: CheckFaults::default(),
        };
        let mut last: BTreeMap<u16, (u64, [u64; 2])> = BTreeMap::new();
        for_each(record.states.as_ref(), |row: &StateRow| {
            seen.rows += 1;
            if record.cell.flow(row.flow).is_none() {
                seen.faults.add(format_args!(
                    "flow {} was sampled, but the cell does not contain it",
                    row.flow
                ));
                return;
            }
            seen.faults.look_at(row, end_ns, last.entry(row.flow).or_default());
        })?;
        seen.flows = last.len();
        Ok(seen)
    }
}

impl CheckFaults {
    /// Compares a state with the time and the counters of the last one of its flow.
    fn look_at(&mut self, row: &StateRow, end_ns: u64, last: &mut (u64, [u64; 2])) {
        let (flow, now) = (row.flow, row.time_ns);
        if now > end_ns {
            self.add(format_args!(
                "flow {flow} was sampled after the end, at {now} ns"
            ));
        }
        let (time, counts) = last;
        if now < *time {
            self.add(format_args!(
                "the states of flow {flow} go back in time at {now} ns"
            ));
        }
        *time = now;
        for ((name, value), known) in COUNTERS.iter().zip(counts) {
            let Some(value) = value(row) else { continue };
            if value < *known {
                self.add(format_args!(
                    "{name} of flow {flow} decreases from {known} to {value}"
                ));
            }
            *known = value;
        }
    }
}

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    let StatesSeen {
        rows,
        flows,
        faults,
    } = &evidence.states;
    if *rows == 0 {
        return CheckOutcome::Skipped("no state was sampled".into());
    }
    let faults = faults.clone();
    faults.outcome(|| format!("{rows} states of {flows} flows"))
}
