//! Packets leave a path of first-in-first-out elements in the order in which they entered it.

use super::evidence::DIRECTIONS;
use super::timeline::access_table;
use super::{Check, Evidence, Faults, Outcome, bins_only};

pub(super) const CHECK: Check = Check {
    name: "order",
    claim: "packets arrive in the order in which they entered the shared path",
    run,
};

fn run(evidence: &Evidence<'_>) -> Outcome {
    let Some(packets) = &evidence.packets else { return bins_only() };
    let mut faults = Faults::default();
    let mut skipped = Vec::new();
    let mut checked = 0;
    for direction in DIRECTIONS {
        let layout = evidence.layout(direction);
        if let Err(reason) = layout.keeps_order() {
            skipped.push(reason);
            continue;
        }
        let access = access_table(evidence.cell, layout);
        // Entry into the shared path, in the order of uids; see the time line for `raised`.
        let mut raised = 0;
        let mut entries: Vec<(u64, i128, usize)> = Vec::new();
        for row in (0..packets.len()).filter(|&row| packets.direction[row] == direction) {
            raised = packets.sent[row].max(raised);
            let extra = access.get(usize::from(packets.flow[row])).copied().unwrap_or(0);
            if let Some(arrival) = packets.model_arrival(row) {
                entries.push((raised.saturating_add(extra), arrival, row));
            }
        }
        if access.iter().any(|&ns| ns > 0) {
            // By entry; what enters at the same instant by different access links may leave in
            // any order, so it is put into the order of arrival.
            entries.sort_unstable();
        }
        checked += entries.len();
        for pair in entries.windows(2) {
            if pair[1].1 < pair[0].1 {
                let (first, second) = (packets.uid[pair[0].2], packets.uid[pair[1].2]);
                faults.add(|| {
                    format!("packet {second} ({direction}) overtook packet {first} on the way")
                });
            }
        }
    }
    if checked == 0 && !skipped.is_empty() {
        return Outcome::Skipped(skipped.join("; "));
    }
    faults.outcome(|| {
        let mut parts = vec![format!("{checked} arrivals")];
        parts.extend(skipped.iter().map(|reason| format!("not checked: {reason}")));
        parts.join("; ")
    })
}
