//! The transfers of applications belong to flows of the cell, end after they began, and carried no
//! more than their flow delivered.

use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::cell::KeptTransfers;
use std::collections::BTreeMap;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "transfers",
    claim: "transfers belong to flows of the cell, end after they began and carried no more than \
            the flow delivered",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.cell.transfers != KeptTransfers::All {
        return CheckOutcome::Skipped("the record does not keep single transfers".into());
    }
    if evidence.transfers.is_empty() {
        return CheckOutcome::Holds("no application made transfers".into());
    }
    let mut faults = CheckFaults::default();
    let mut complete: BTreeMap<u16, u64> = BTreeMap::new();
    // A late endpoint of an emulation reads its last bytes a little after the end.
    let end = evidence.end_ns();
    for row in evidence.transfers.iter() {
        let (flow, number) = (row.flow, row.transfer);
        let Some(known) = evidence.cell.flow(flow) else {
            faults.add(format_args!(
                "transfer {number} is of flow {flow}, which the cell lacks"
            ));
            continue;
        };
        let start = known.start_ns.saturating_sub(evidence.early_ns());
        if row.started_ns < start || row.started_ns > end {
            faults.add(format_args!(
                "transfer {number} of flow {flow} began while it did not run"
            ));
        }
        let Some(ended) = row.ended_ns else { continue };
        if ended < row.started_ns {
            faults.add(format_args!(
                "transfer {number} of flow {flow} ended before it began"
            ));
        }
        if ended > end {
            faults.add(format_args!(
                "transfer {number} of flow {flow} ended after the run"
            ));
        }
        *complete.entry(flow).or_default() += row.bytes;
    }
    if evidence.run.has_only_ends() {
        // Delivered bytes were not observed.
        complete.clear();
    }
    for (&flow, &bytes) in &complete {
        let delivered = delivered_bytes(evidence, flow);
        if bytes > delivered {
            faults.add(format_args!(
                "the complete transfers of flow {flow} have {bytes} bytes, but only {delivered} \
                     bytes were delivered"
            ));
        }
    }
    faults.outcome(|| format!("{} transfers", evidence.transfers.len()))
}

/// Bytes delivered to either end of a flow: the counted bytes of a transfer may travel in either
/// direction.
fn delivered_bytes(evidence: &Evidence<'_>, flow: u16) -> u64 {
    let packets = evidence.packets.iter().flat_map(|packets| {
        (0..packets.len())
            .filter(move |&row| packets.flow[row] == flow && packets.sound(row))
            .map(|row| u64::from(packets.size[row]))
    });
    let bins = evidence.bins.iter().flat_map(|(bins, _)| bins);
    let bins = bins.filter(|bin| bin.flow == flow);
    packets.sum::<u64>() + bins.map(|bin| bin.arrived_bytes).sum::<u64>()
}
