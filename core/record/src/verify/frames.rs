//! Frames of video are numbered without gaps, arrive once, after they were captured, and together carry no
//! more than their flow delivered.

use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::schema::FrameRow;
use std::collections::BTreeMap;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "frames",
    claim: "frames of video belong to flows of the cell, are numbered without gaps in the order of \
            their capture, arrive at most once and not before they were captured, and carried no \
            more than the flow delivered",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.frames.is_empty() {
        return CheckOutcome::Holds("no flow sent frames of video".into());
    }
    let mut faults = CheckFaults::default();
    let mut flows: BTreeMap<u16, Vec<&FrameRow>> = BTreeMap::new();
    for row in evidence.frames.iter() {
        flows.entry(row.flow).or_default().push(row);
    }
    for (&flow, rows) in &flows {
        check_flow(evidence, flow, rows, &mut faults);
    }
    faults.outcome(|| format!("{} frames of {} flows", evidence.frames.len(), flows.len()))
}

fn check_flow(evidence: &Evidence<'_>, flow: u16, rows: &[&FrameRow], faults: &mut CheckFaults) {
    let Some(known) = evidence.cell.flow(flow) else {
        let count = rows.len();
        faults.add(format_args!(
            "{count} frames are of flow {flow}, which the cell lacks"
        ));
        return;
    };
    // A late endpoint of an emulation captures and reads its last frames a little after the end.
    let end = evidence.end_ns();
    let mut complete = 0_u64;
    let mut captured = known.start_ns.saturating_sub(evidence.early_ns());
    for (expected, row) in (0_u64..).zip(rows) {
        let number = row.frame;
        if number != expected {
            faults.add(format_args!(
                "frame {number} of flow {flow} is in the place of frame {expected}"
            ));
            // Continue from this number: otherwise all later frames would count as wrong.
            return;
        }
        if row.captured_ns < captured || row.captured_ns > end {
            faults.add(format_args!("frame {number} of flow {flow} was captured before the one before it or while the flow did not run"));
        }
        captured = row.captured_ns;
        let Some(arrived) = row.arrived_ns else {
            continue;
        };
        if arrived < row.captured_ns {
            faults.add(format_args!(
                "frame {number} of flow {flow} arrived before it was captured"
            ));
        }
        if arrived > end {
            faults.add(format_args!(
                "frame {number} of flow {flow} arrived after the run"
            ));
        }
        if row.discarded {
            faults.add(format_args!(
                "frame {number} of flow {flow} arrived, though not all of it was sent"
            ));
        }
        complete += u64::from(row.bytes);
    }
    if evidence.run.has_only_ends() {
        // Delivered bytes were not observed.
        return;
    }
    let delivered = delivered_bytes(evidence, flow, known.direction);
    if complete > delivered {
        faults.add(format_args!(
            "the complete frames of flow {flow} have {complete} bytes, but only {delivered} \
                 bytes were delivered"
        ));
    }
}

/// Bytes of the flow's media that reached the receiver undamaged.
fn delivered_bytes(evidence: &Evidence<'_>, flow: u16, direction: crate::Direction) -> u64 {
    let packets = evidence.packets.iter().flat_map(|packets| {
        (0..packets.len())
            .filter(move |&row| {
                packets.flow[row] == flow
                    && packets.direction[row] == direction
                    && packets.sound(row)
            })
            .map(|row| u64::from(packets.size[row]))
    });
    let bins = evidence.bins.iter().flat_map(|(bins, _)| bins);
    let bins = bins.filter(|bin| bin.flow == flow && bin.direction == direction);
    packets.sum::<u64>() + bins.map(|bin| bin.arrived_bytes).sum::<u64>()
}
