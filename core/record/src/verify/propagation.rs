//! No packet was faster than the fixed delays of its path.
//!
//! Exact to the nanosecond in simulation and in emulation, because the model's time (the real
//! arrival less the lateness) is compared with the stamp that the model started from. A stamp that
//! was raised (see [`Evidence::slack_ns`]) only makes the packet slower.

use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::schema::{BinRow, Direction};
use std::collections::BTreeMap;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "propagation",
    claim: "no packet arrived earlier than it was sent plus the fixed delays of its path",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.run.saw_one_end() {
        return CheckOutcome::Skipped("only one end of the flows was measured".into());
    }
    let mut faults = CheckFaults::default();
    let cell = evidence.cell;
    if let Some(packets) = &evidence.packets {
        let mut known: BTreeMap<(u16, Direction), u64> = BTreeMap::new();
        let mut checked = 0_u64;
        for row in 0..packets.len() {
            let Some(arrival) = packets.model_arrival(row) else {
                continue;
            };
            checked += 1;
            let direction = packets.direction[row];
            let flow = packets.flow[row];
            let minimum = if packets.copy_of[row] > 0 {
                behind_copier(evidence, packets.lane[row])
            } else {
                let minimum = || cell.propagation_ns(flow, direction);
                *known.entry((flow, direction)).or_insert_with(minimum)
            };
            let delay = arrival - i128::from(packets.sent[row]);
            if delay < i128::from(minimum) {
                let uid = packets.uid[row];
                faults.add(format_args!(
                    "packet {uid} ({direction}) took {delay} ns where propagation alone takes \
                         {minimum} ns"
                ));
            }
        }
        return faults.outcome(|| format!("{checked} arrivals"));
    }
    let Some((bins, delays)) = &evidence.bins else {
        return CheckOutcome::Skipped("the record holds neither packets nor bins".into());
    };
    // The delays of copies count from the time at which they were made.
    let copies = evidence.run.elements.iter().any(|e| e.copied_packets > 0);
    for row in delays.iter().filter(|row| row.packets > 0 && !copies) {
        let minimum = cell.propagation_ns(row.flow, row.direction);
        if row.low_ns < minimum {
            faults.add(format_args!(
                "{} packets of flow {} ({}) took as little as {} ns where propagation alone \
                     takes {minimum} ns",
                row.packets, row.flow, row.direction, row.low_ns
            ));
        }
    }
    // The histogram must contain the packets that the bins count.
    let width = cell.bin_ns.unwrap_or(0);
    let kept = |bin: &&BinRow| cell.measure.counts_bin(bin.bin_ns, width);
    let counted: u64 = bins
        .iter()
        .filter(kept)
        .map(|bin| bin.arrived_packets)
        .sum();
    let measured: u64 = delays.iter().map(|row| row.packets).sum();
    if counted != measured {
        faults.add(format_args!(
            "{counted} packets arrived, but {measured} delays are recorded"
        ));
    }
    faults.outcome(|| format!("{measured} delays in {} buckets", delays.len()))
}

/// The minimum delay of a copy; zero if the element that made it is not known.
fn behind_copier(evidence: &Evidence<'_>, lane: u16) -> u64 {
    let Some(layout) = evidence.lanes.get(usize::from(lane)) else {
        return 0;
    };
    let Some(place) = layout.only_copier() else {
        return 0;
    };
    let elements = layout.stages[place + 1..].iter();
    let elements = elements.filter_map(|stage| evidence.cell.network.element(&stage.name));
    elements
        .map(|element| evidence.cell.least_delay_ns(element))
        .sum()
}
