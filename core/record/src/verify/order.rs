//! Packets leave a path of order-preserving elements in the order in which they entered it.
//!
//! Access links of different length change the order among flows, not within a flow. In emulation
//! the order among flows behind them is certain only for stamps that differ by more than the slack
//! (see [`Evidence::slack_ns`]).

use super::timeline::access_table;
use super::{
    CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, element_times, on_packets,
};

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "order",
    claim: "packets arrive in the order in which they entered the shared path",
    run: |evidence| on_packets(evidence, run),
};

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let mut checked = 0;
    for (lane, layout) in evidence.lanes.iter().enumerate() {
        if let Err(reason) = layout.keeps_order() {
            faults.note(Err(reason));
            continue;
        }
        let access = access_table(evidence.cell, layout);
        // Entry into the shared path, in the order of uids. A copy starts in the middle of the
        // path.
        let came = element_times::entries(evidence, packets, (lane, 0)).into_iter();
        let arrived = came.flatten().filter_map(|entry| {
            Some((entry.time_ns, packets.model_arrival(entry.row)?, entry.row))
        });
        let mut entries: Vec<(u64, i128, usize)> = arrived.collect();
        checked += entries.len() as u64;
        let mixed = access.iter().any(|&ns| ns > 0);
        let slack = if mixed { evidence.slack_ns() } else { 0 };
        let overtakes = |row: usize, other: usize| {
            let (first, second) = (packets.uid[other], packets.uid[row]);
            let direction = packets.direction[row];
            format!("packet {second} ({direction}) overtook packet {first} on its path")
        };
        // Each flow keeps its order, and without access links all packets do.
        let flows = packets.flow.iter().max().map_or(0, |&flow| usize::from(flow));
        let mut last: Vec<Option<(i128, usize)>> = vec![None; if mixed { flows + 1 } else { 1 }];
        for &(_, arrival, row) in &entries {
            let line = if mixed {
                usize::from(packets.flow[row])
            } else {
                0
            };
            if let Some((before, other)) = last[line]
                && arrival < before
            {
                faults.add(overtakes(row, other));
            }
            last[line] = Some((arrival, row));
        }
        if !mixed {
            continue;
        }
        // Behind the access links, no packet overtakes one that certainly entered before it.
        // Packets that enter at the same instant from different links may leave in any order.
        entries.sort_unstable();
        let mut sure = entries.iter().peekable();
        let mut latest: Option<(i128, usize)> = None;
        for &(entry, arrival, row) in &entries {
            while let Some(&(_, before, other)) =
                sure.next_if(|earlier| earlier.0.saturating_add(slack) < entry)
            {
                if latest.is_none_or(|(time, _)| before > time) {
                    latest = Some((before, other));
                }
            }
            if let Some((before, other)) = latest
                && arrival < before
            {
                faults.add(overtakes(row, other));
            }
        }
    }
    faults.conclude_counted(checked, "arrivals")
}
